"""Every party from inside: its own half of each exchange, over a line to the others.

Labels that one silo holds are kept back in `vertical_parties.py` (training rows) and `evaluation/with_evaluation.py`
(rows held out). What of them a process finds in its folder is decided in `runs/launching/own_rows.py` and
`runs/evaluating/own_test_rows.py`. What happens when a party dies: `recovery/`.
"""
