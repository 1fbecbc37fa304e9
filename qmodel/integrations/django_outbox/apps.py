"""The application, as Django's settings name it."""

from __future__ import annotations

from django.apps import AppConfig


class OutboxConfig(AppConfig):  # type: ignore[misc]
    """Jobs that are put once their transaction has committed."""

    name = "qmodel.integrations.django_outbox"
    label = "qmodel_outbox"
    verbose_name = "qmodel outbox"
    default_auto_field = "django.db.models.BigAutoField"
