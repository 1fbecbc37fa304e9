"""The contract: what can be asked of the queue, what it replies, refuses and reports."""
