"""Tables of the current jobs, failures, statistics, queues and workers."""
