"""The table of the outbox."""

from __future__ import annotations

from django.db import models


class OutboxJob(models.Model):  # type: ignore[misc]
    """A job that is put once its transaction has committed; one that is refused stays, with the reason."""

    jid = models.CharField(max_length=128)
    put = models.TextField()
    refused = models.TextField(null=True)

    class Meta:
        """The name of the table, as that of `qmodel.integrations.sqlalchemy`."""

        db_table = "qmodel_outbox"

    def __str__(self) -> str:
        return f"{self.jid}: {self.refused or 'to be put'}"
