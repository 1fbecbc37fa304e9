"""Plan capacity: simulate queues and workers with the model itself."""
