"""Logs and exit codes of leases."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "lease_logs.sql").read_text()


class Migration(migrations.Migration):
    """Add logs with their chunks and row-level security, and the exit codes of leases."""

    dependencies = [("broker", "0006_lost_gpus"), ("tenants", "0002_database_rules")]

    operations = [
        migrations.AddField("lease", "exit_code", models.IntegerField(null=True)),
        migrations.CreateModel(
            name="LeaseLog",
            fields=[
                (
                    "lease",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="log",
                        serialize=False,
                        to="broker.lease",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                ("first_line", models.PositiveBigIntegerField(default=1)),
                ("next_line", models.PositiveBigIntegerField(default=1)),
                ("size_bytes", models.PositiveBigIntegerField(default=0)),
                ("generation", models.PositiveIntegerField(default=0)),
                ("cursor", models.JSONField(default=dict)),
                ("transition_seq", models.IntegerField(default=-1)),
                ("fault", models.CharField(blank=True, default="", max_length=300)),
                ("quiet_reads", models.PositiveSmallIntegerField(default=0)),
                ("claims", models.PositiveBigIntegerField(default=0)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("followed_until", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="lease_log_due"
                    ),
                    models.Index(
                        condition=models.Q(("completed_at__isnull", False)), fields=["completed_at"], name="lease_log_complete"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LeaseLogChunk",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "lease_id", "first_line", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                (
                    "lease",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.lease"),
                ),
                ("first_line", models.PositiveBigIntegerField()),
                ("line_count", models.PositiveIntegerField()),
                ("size_bytes", models.PositiveIntegerField()),
                ("body", models.TextField()),
            ],
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
