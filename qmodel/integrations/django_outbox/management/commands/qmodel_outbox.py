"""`manage.py qmodel_outbox`: put the jobs that transactions have written into the outbox."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from qmodel.integrations.django import app_of
from qmodel.integrations.django_outbox import jobs
from qmodel.integrations.outbox import EVERY


class Command(BaseCommand):  # type: ignore[misc]
    """Put the jobs that transactions have written into the outbox, and delete the rows."""

    help = "Put the jobs that transactions have written into the outbox. Any number of these may run at once."

    def add_arguments(self, parser: Any) -> None:
        """Declare the options."""
        parser.add_argument("--alias", default="default", help="The backend of TASKS whose server gets the jobs.")
        parser.add_argument("--database", default="default", help="The alias of the database.")
        parser.add_argument("--every", type=float, default=EVERY, help="Seconds between two looks at the table.")
        parser.add_argument("--once", action="store_true", help="Put what is there, and end.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Relay until a signal ends it, or once."""
        relay = jobs.relay(app_of(given["alias"]).client, given["database"], given["every"])
        if given["once"]:
            moved = relay.once()
            self.stdout.write(str(moved))
            if moved.refused:
                raise CommandError("The column `refused` of the table qmodel_outbox says why.")
            return
        relay.run_until_signal()
