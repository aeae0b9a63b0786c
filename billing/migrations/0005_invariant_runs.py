"""Stored results of the invariant checks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add runs of the invariant checks, which only operators see."""

    dependencies = [("billing", "0004_commitments_add_up")]

    operations = [
        migrations.CreateModel(
            name="InvariantRun",
            fields=[
                ("checked_at", models.DateTimeField(primary_key=True, serialize=False)),
                ("results", models.JSONField()),
            ],
        ),
    ]
