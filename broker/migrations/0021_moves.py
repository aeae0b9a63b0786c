"""Leases that may be moved, plans of moves, and the places that are held for a move beside a lease's own."""

import django.db.models.deletion
from django.db import migrations, models

import broker.models.keys
from tenants.models.walls import append_only, tenant_wall


class Migration(migrations.Migration):
    dependencies = [("broker", "0020_what_changed")]

    operations = [
        migrations.AddField(
            model_name="allocation",
            name="for_move",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lease",
            name="movable",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="MovePlan",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=broker.models.keys.move_plan_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("reason", models.CharField(max_length=300)),
                ("cost_s", models.PositiveIntegerField()),
                ("gain_milli", models.IntegerField()),
                ("cards", models.JSONField()),
                ("state", models.CharField(default="proposed", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("seq", models.PositiveIntegerField(default=0)),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("proposed_at", models.DateTimeField()),
                ("not_before", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="move_plans",
                        to="broker.cluster",
                    ),
                ),
                (
                    "gpu_model",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="broker.gpumodel",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="MoveEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                ("n", models.PositiveIntegerField(null=True)),
                ("state", models.CharField(max_length=12)),
                ("at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="broker.moveplan",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Move",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=broker.models.keys.move_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("n", models.PositiveIntegerField()),
                ("profile", models.CharField(max_length=30)),
                ("size", models.PositiveSmallIntegerField()),
                ("from_start", models.PositiveSmallIntegerField()),
                ("to_start", models.PositiveSmallIntegerField()),
                ("cost_s", models.PositiveIntegerField()),
                ("gain_milli", models.IntegerField()),
                ("state", models.CharField(default="planned", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("not_before", models.DateTimeField(null=True)),
                (
                    "from_gpu",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="broker.gpu",
                    ),
                ),
                (
                    "lease",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="moves", to="broker.lease"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "to_gpu",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="broker.gpu",
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="moves",
                        to="broker.moveplan",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="moveplan",
            index=models.Index(
                condition=models.Q(("state__in", ["cancelled", "declined", "done", "failed"]), _negated=True),
                fields=["due_at"],
                name="move_plan_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="moveplan",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["cancelled", "declined", "done", "failed"]), _negated=True),
                fields=("cluster", "gpu_model"),
                name="one_open_plan_per_pool",
            ),
        ),
        migrations.AddConstraint(
            model_name="moveplan",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "proposed",
                            "accepted",
                            "running",
                            "cancelling",
                            "done",
                            "cancelled",
                            "failed",
                            "declined",
                        ],
                    )
                ),
                name="move_plan_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="moveentry",
            constraint=models.UniqueConstraint(fields=("plan", "seq"), name="move_entry_once"),
        ),
        migrations.AddConstraint(
            model_name="move",
            constraint=models.UniqueConstraint(fields=("tenant", "plan", "n"), name="move_has_its_turn"),
        ),
        migrations.AddConstraint(
            model_name="move",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["moving", "noticed", "returning"])),
                fields=("tenant", "lease"),
                name="one_open_move_per_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="move",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["planned", "noticed", "moving", "returning", "done", "undone", "failed"])
                ),
                name="move_state_known",
            ),
        ),
        tenant_wall("broker_move"),
        append_only("broker_moveentry"),
    ]
