"""Subjects: what is compared with the model."""
