"""The model: what every operation means. `engine.step(store, now, operation)` is the definition of the queue."""
