"""The numbers of each exchange of a vertical federation.

A client's block is averaged in `averaging.py`, over groups in `groups.py`, over branches in `branches.py`.
"""
