"""Make the table of the outbox."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc]
    """Make the table of the outbox."""

    initial = True
    operations = (
        migrations.CreateModel(
            "OutboxJob",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
                ("jid", models.CharField(max_length=128)),
                ("put", models.TextField()),
                ("refused", models.TextField(null=True)),
            ],
            options={"db_table": "qmodel_outbox"},
        ),
    )
