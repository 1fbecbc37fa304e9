"""Django's settings must precede its tasks: only `test_django.py` may import them."""

collect_ignore = ["django_shop"]
