"""Terms of a lease"s end and of batch leases, with notices, attempts and arrays."""

from pathlib import Path

from django.db import migrations, models

from broker.models import keys

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "lease_terms.sql").read_text()


class Migration(migrations.Migration):
    """Add end terms, retries and arrays of leases, with row-level security."""

    dependencies = [
        ("broker", "0008_spot_reclaims"),
        ("tenants", "0003_ssh_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="LeaseArray",
            fields=[
                ("id", models.CharField(default=keys.lease_array_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("size", models.PositiveSmallIntegerField()),
                ("created_at", models.DateTimeField()),
                ("requested_by", models.CharField(max_length=40)),
                ("requested_by_label", models.CharField(max_length=254)),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LeaseAttempt",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.lease_attempt_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("generation", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField()),
                ("exit_code", models.SmallIntegerField(null=True)),
                ("text", models.CharField(max_length=300)),
                ("counted", models.BooleanField()),
                ("retry_at", models.DateTimeField(null=True)),
                (
                    "lease",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="attempts", to="broker.lease"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LeaseNotice",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.lease_notice_id, max_length=40, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ends_soon", "ends_soon"),
                            ("extended", "extended"),
                            ("extension_refused", "extension_refused"),
                            ("ended", "ended"),
                        ],
                        max_length=20,
                    ),
                ),
                ("lead_s", models.PositiveIntegerField(default=0)),
                ("ends_at", models.DateTimeField()),
                ("text", models.CharField(blank=True, default="", max_length=500)),
                ("made_at", models.DateTimeField()),
                (
                    "lease",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="notices", to="broker.lease"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
        ),
        migrations.AddField(
            model_name="lease",
            name="array_index",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="attempt",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="lease",
            name="attempt_limit_s",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="lease",
            name="extend_by_s",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="lease",
            name="extend_limit_s",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="lease",
            name="notify_on_end",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lease",
            name="retries",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="lease",
            name="starts_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="array",
            field=models.ForeignKey(
                db_index=False, null=True, on_delete=models.PROTECT, related_name="leases", to="broker.leasearray"
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=models.Q(("notify_on_end", True)), fields=["ended_at"], name="lease_end_to_report"
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(condition=models.Q(("state", "active")), fields=["ends_at"], name="lease_end_known"),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=models.Q(("array__isnull", False)), fields=["array", "array_index"], name="lease_of_array"
            ),
        ),
        migrations.AddIndex(
            model_name="leasearray",
            index=models.Index(fields=["tenant", "-id"], name="lease_array_newest"),
        ),
        migrations.AddConstraint(
            model_name="leaseattempt",
            constraint=models.UniqueConstraint(fields=("tenant", "lease", "generation"), name="lease_attempt_once"),
        ),
        migrations.AddIndex(
            model_name="leasenotice",
            index=models.Index(fields=["made_at"], name="lease_notice_newest"),
        ),
        migrations.AddConstraint(
            model_name="leasenotice",
            constraint=models.UniqueConstraint(
                fields=("tenant", "lease", "kind", "lead_s", "ends_at"), name="lease_notice_once"
            ),
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
