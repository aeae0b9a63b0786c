"""Volumes, which outlive leases: one lease at a time has one, and the database sees to it."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import broker.models.keys
from tenants.models.walls import tenant_wall

PROTECT = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    dependencies = [("broker", "0015_orphans"), ("tenants", "0007_storage_quota")]

    operations = [
        migrations.CreateModel(
            name="Volume",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=broker.models.keys.volume_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("size_gib", models.PositiveIntegerField()),
                ("state", models.CharField(default="ready", max_length=12)),
                ("used_at", models.DateTimeField(null=True)),
                ("left_in", models.JSONField(default=list)),
                ("created_at", models.DateTimeField()),
                ("deleted_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("requested_by", models.CharField(max_length=40)),
                ("requested_by_label", models.CharField(max_length=254)),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "cluster",
                    models.ForeignKey(null=True, on_delete=PROTECT, related_name="+", to="broker.cluster"),
                ),
                (
                    "project",
                    models.ForeignKey(db_index=False, on_delete=PROTECT, to="tenants.project"),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False, on_delete=PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="volume_newest_first"),
                    models.Index(
                        condition=Q(("due_at__isnull", False)), fields=["due_at"], name="volume_due"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("state__in", ["ready", "deleting", "deleted"])),
                        name="volume_state_known",
                    ),
                    models.CheckConstraint(condition=Q(("size_gib__gte", 1)), name="volume_holds_something"),
                    models.UniqueConstraint(
                        condition=Q(("state", "deleted"), _negated=True),
                        fields=("tenant", "project", "name"),
                        name="volume_named_once",
                    ),
                ],
            },
        ),
        tenant_wall("broker_volume"),
        migrations.AddField(
            "lease",
            "volume",
            models.ForeignKey(
                db_index=False, null=True, on_delete=PROTECT, related_name="leases", to="broker.volume"
            ),
        ),
        migrations.AddConstraint(
            "lease",
            models.UniqueConstraint(
                condition=Q(("state", "released"), _negated=True) & Q(("volume__isnull", False)),
                fields=("tenant", "volume"),
                name="volume_of_one_lease",
            ),
        ),
        migrations.CreateModel(
            name="SimulatedVolume",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("size_gib", models.PositiveIntegerField()),
                ("made_at", models.DateTimeField()),
                ("last_used_by", models.CharField(blank=True, default="", max_length=80)),
                ("gone_at", models.DateTimeField(null=True)),
            ],
        ),
    ]
