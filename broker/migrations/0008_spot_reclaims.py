"""Reclaims of spot leases, and the terms that spot leases are promised."""

from pathlib import Path

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField
from django.db import migrations, models

from broker.models import keys

SQL = Path(__file__).parent / "sql"
DATABASE_RULES, WITHOUT_RULES = (
    (SQL / f"{name}.sql").read_text() for name in ("spot_reclaims", "spot_reclaims_reverse")
)


class Migration(migrations.Migration):
    """Add notices, promised slots, and spot terms of offerings and leases."""

    dependencies = [
        ("broker", "0007_lease_logs"),
        ("tenants", "0003_ssh_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="checkpoint_command",
            field=models.CharField(blank=True, db_default="", default="", max_length=2000),
        ),
        migrations.AddField(
            model_name="lease",
            name="reclaim_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="requeue_when_preempted",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lease",
            name="spot_min_runtime_s",
            field=models.PositiveIntegerField(db_default=600, default=0),  # leases of before have the usual terms
        ),
        migrations.AddField(
            model_name="lease",
            name="spot_notice_s",
            field=models.PositiveIntegerField(db_default=300, default=0),
        ),
        migrations.AddField(
            model_name="offering",
            name="spot_min_runtime_s",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="offering",
            name="spot_notice_s",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="simulatedpod",
            name="last_command",
            field=models.CharField(blank=True, db_default="", default="", max_length=2000),
        ),
        migrations.AddField(
            model_name="simulatedpod",
            name="last_command_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="SpotReclaim",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.spot_reclaim_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("region", models.CharField(max_length=60)),
                ("waiting_lease", models.CharField(max_length=40)),
                ("noticed_at", models.DateTimeField()),
                ("reclaim_at", models.DateTimeField()),
                ("state", models.CharField(default="noticed", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                (
                    "gpu_model",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.gpumodel"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ReclaimNotice",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.reclaim_notice_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("noticed_at", models.DateTimeField()),
                ("reclaim_at", models.DateTimeField()),
                ("state", models.CharField(default="given", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("checkpoint_at", models.DateTimeField(null=True)),
                ("checkpoint_text", models.CharField(blank=True, default="", max_length=200)),
                (
                    "lease",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="reclaim_notices", to="broker.lease"),
                ),
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "reclaim",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="notices", to="broker.spotreclaim"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PromisedSlot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lease", models.CharField(max_length=40)),
                ("placement", IntegerRangeField()),
                ("profile", models.CharField(max_length=30)),
                ("isolation", models.CharField(max_length=10)),
                ("gpu", models.ForeignKey(on_delete=models.CASCADE, to="broker.gpu")),
                ("reclaim", models.ForeignKey(on_delete=models.CASCADE, related_name="slots", to="broker.spotreclaim")),
            ],
        ),
        migrations.AddConstraint(
            model_name="spotreclaim",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "noticed")),
                fields=("waiting_lease",),
                name="one_reclaim_per_waiting_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="spotreclaim",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["noticed", "done", "withdrawn"])), name="spot_reclaim_state_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="reclaimnotice",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "given")), fields=("tenant", "lease"), name="one_open_notice_per_lease"
            ),
        ),
        migrations.AddConstraint(
            model_name="reclaimnotice",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["given", "preempted", "ended_early", "withdrawn"])),
                name="reclaim_notice_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="promisedslot",
            constraint=ExclusionConstraint(
                expressions=[("gpu", "="), ("placement", "&&")], name="one_promise_per_place"
            ),
        ),
        migrations.RunSQL(DATABASE_RULES, WITHOUT_RULES),
    ]
