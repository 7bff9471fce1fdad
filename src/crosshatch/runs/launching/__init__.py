"""A config's parties as processes of one machine: their folders, the processes, and the run that follows them.

A process that dies, a hub's too, is started again by `party_processes.py`; what it then does is told in
`parties/recovery/__init__.py`.
"""
