"""Capacity planning: the queue is simulated with the model itself."""
