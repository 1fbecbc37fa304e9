"""The audit: archived journals are executed again on the model, and differences are reported."""
