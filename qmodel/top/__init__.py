"""`qmodel top`: a live view of the queues in a terminal."""
