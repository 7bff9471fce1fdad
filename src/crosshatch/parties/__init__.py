"""Every party from inside: its own half of each exchange, over a line to the others.

Labels that one silo holds are kept back in three places: of training rows in `vertical_parties.py`, of rows held out in
`evaluation/with_evaluation.py`, and on disk in `runs/launching/own_rows.py`. What happens when a party dies:
`recovery/`.
"""
