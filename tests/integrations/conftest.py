"""Settings come before Django's tasks: `test_django.py` imports them, and nobody else may."""

collect_ignore = ["django_shop"]
