"""The simulator: the real client, worker, App and `qmodel serve` in one process, in virtual time.

Network, disk, clock and scheduler are simulated, and they fail. A seed decides everything: which thread runs next, how
long a packet takes, when a server crashes and what its disk loses. So a run can be repeated byte for byte.
docs/simulator.md describes it.
"""
