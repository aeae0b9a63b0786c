"""Lease schedules and their runs."""

from pathlib import Path

from django.db import migrations, models

from broker.models import keys

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "lease_schedules.sql").read_text()


class Migration(migrations.Migration):
    """Add schedules that repeat a lease request, with row-level security."""

    dependencies = [
        ("broker", "0009_lease_end_and_batch_terms"),
        ("tenants", "0003_ssh_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="extend_with_token",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.CreateModel(
            name="LeaseSchedule",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.lease_schedule_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=100)),
                ("cron", models.CharField(max_length=100)),
                ("time_zone", models.CharField(max_length=64)),
                (
                    "overlap",
                    models.CharField(choices=[("skip", "Skip"), ("allow", "Allow")], default="skip", max_length=5),
                ),
                ("request", models.JSONField()),
                ("next_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("requested_by_kind", models.CharField(max_length=20)),
                ("requested_by", models.CharField(max_length=40)),
                ("requested_by_label", models.CharField(max_length=254)),
                ("requested_with_token", models.CharField(blank=True, default="", max_length=40)),
                ("version", models.PositiveIntegerField(default=1)),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduledRun",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.scheduled_run_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("due_at", models.DateTimeField()),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("started", "Started"),
                            ("skipped", "Skipped"),
                            ("refused", "Refused"),
                            ("missed", "Missed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("text", models.CharField(blank=True, default="", max_length=500)),
                ("made_at", models.DateTimeField()),
                (
                    "lease",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=models.PROTECT, related_name="+", to="broker.lease"
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="runs", to="broker.leaseschedule"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="leaseschedule",
            index=models.Index(fields=["tenant", "-id"], name="lease_schedule_newest"),
        ),
        migrations.AddIndex(
            model_name="leaseschedule",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="lease_schedule_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="leaseschedule",
            constraint=models.UniqueConstraint(fields=("tenant", "project", "name"), name="lease_schedule_named_once"),
        ),
        migrations.AddConstraint(
            model_name="scheduledrun",
            constraint=models.UniqueConstraint(fields=("tenant", "schedule", "due_at"), name="scheduled_run_once"),
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
