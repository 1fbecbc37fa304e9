"""A Django application with tasks, for the tests."""
