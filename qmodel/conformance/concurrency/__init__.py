"""Many clients at once: recorded calls, and the check that they are linearizable."""
