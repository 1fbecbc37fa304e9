"""Comparing a subject with the model: run a history, shrink a difference, report it."""
