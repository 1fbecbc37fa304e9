"""An installed application of Django with tasks, for the tests."""
