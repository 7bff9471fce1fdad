"""What a party keeps so that it can go on after a crash: its messages and its state.

A process that died, a hub's too, is started again by `runs/launching/party_processes.py`, and reads its state in
`runtime/beginning.py`. The others wait for it (`runtime/joined.py`), and both sides send again what the other has not
stored (`mail.py`).
"""
