"""Create the tables of inventory, offerings, leases, volumes and clusters."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from broker.models import keys
from ports.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="GpuModel",
            fields=[
                ("name", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("memory_gb", models.PositiveIntegerField()),
                ("memory_grid", models.PositiveSmallIntegerField()),
                ("compute_slices", models.PositiveSmallIntegerField()),
                ("spec", models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.CharField(default=keys.cluster_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60, unique=True)),
                ("region", models.CharField(max_length=60)),
                ("provisioner", models.CharField(default="simulated", max_length=20)),
                ("driver", models.CharField(blank=True, default="", max_length=20)),
                ("driver_options", models.JSONField(default=dict)),
                ("address", models.CharField(blank=True, default="", max_length=300)),
                ("domain", models.CharField(blank=True, default="", max_length=200)),
                ("ingress", models.CharField(blank=True, default="", max_length=200)),
                ("bastion", models.CharField(blank=True, default="", max_length=200)),
                ("allowed_namespaces", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("uid", models.CharField(blank=True, default="", max_length=40)),
                ("unreachable_since", models.DateTimeField(null=True)),
                ("unreachable_reason", models.CharField(blank=True, default="", max_length=200)),
                ("frozen", models.CharField(blank=True, default="", max_length=200)),
                ("inventory_paused_reason", models.CharField(blank=True, default="", max_length=200)),
                ("accept_next_inventory", models.BooleanField(default=False)),
                ("allow_shared_gpus", models.BooleanField(default=False)),
                ("auto_repartition", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("version", models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                ("id", models.CharField(default=keys.node_id, max_length=40, primary_key=True, serialize=False)),
                ("cluster", models.ForeignKey(on_delete=models.PROTECT, related_name="nodes", to="broker.cluster")),
                ("name", models.CharField(max_length=253)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ready", "Ready"),
                            ("cordoned", "Cordoned"),
                            ("draining", "Draining"),
                            ("lost", "Lost"),
                        ],
                        default="ready",
                        max_length=10,
                    ),
                ),
                ("state_since", models.DateTimeField()),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "name"), name="node_once_per_cluster"),
                    models.CheckConstraint(
                        condition=Q(state__in=["ready", "cordoned", "draining", "lost"]), name="node_state_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Gpu",
            fields=[
                ("id", models.CharField(default=keys.gpu_id, max_length=40, primary_key=True, serialize=False)),
                ("node", models.ForeignKey(on_delete=models.PROTECT, related_name="gpus", to="broker.node")),
                ("index", models.PositiveSmallIntegerField()),
                ("gpu_model", models.ForeignKey(on_delete=models.PROTECT, to="broker.gpumodel")),
                ("uuid", models.CharField(max_length=300, unique=True)),
                (
                    "layout_policy",
                    models.CharField(
                        choices=[("fixed", "Fixed"), ("dynamic", "Dynamic")], default="dynamic", max_length=8
                    ),
                ),
                ("fixed_layout", models.JSONField(default=list)),
                ("published", models.JSONField(null=True)),
                ("fabric", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("numa", models.CharField(blank=True, db_default="", default="", max_length=64)),
                (
                    "health",
                    models.CharField(
                        choices=[("healthy", "Healthy"), ("unhealthy", "Unhealthy")], default="healthy", max_length=10
                    ),
                ),
                ("health_reason", models.CharField(blank=True, default="", max_length=200)),
                ("health_since", models.DateTimeField()),
                ("out_of_service_since", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("node", "index"), name="gpu_once_per_node"),
                    models.CheckConstraint(condition=Q(health__in=["healthy", "unhealthy"]), name="gpu_health_known"),
                ]
            },
        ),
        migrations.CreateModel(
            name="InventoryChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("node", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="broker.node")),
                ("gpu", models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="broker.gpu")),
                ("before", models.CharField(max_length=10)),
                ("after", models.CharField(max_length=10)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
            ],
            options={"indexes": [models.Index(fields=["gpu", "at"], name="change_of_gpu")]},
        ),
        migrations.CreateModel(
            name="Offering",
            fields=[
                ("id", models.CharField(default=keys.offering_id, max_length=40, primary_key=True, serialize=False)),
                ("gpu_model", models.ForeignKey(null=True, on_delete=models.PROTECT, to="broker.gpumodel")),
                ("profile", models.CharField(max_length=30)),
                ("isolation", models.CharField(max_length=10)),
                ("price_class", models.CharField(max_length=10)),
                ("region", models.CharField(max_length=60)),
                ("label", models.CharField(max_length=120)),
                ("milli_units", models.PositiveIntegerField()),
                ("memory_gb", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("published", "Published"),
                            ("retired", "Retired"),
                            ("metered", "Metered"),
                        ],
                        default="draft",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("gpu_model", "profile", "isolation", "price_class", "region"), name="offering_once"
                    ),
                    models.CheckConstraint(
                        condition=Q(isolation__in=["device", "hardware", "soft", "none"]),
                        name="offering_isolation_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(price_class__in=["on_demand", "spot", "reserved"]), name="offering_class_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(state__in=["draft", "published", "retired", "metered"]), name="offering_state_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("gpu_model__isnull", True), ("state", "metered")),
                            Q(Q(gpu_model__isnull=False), ~Q(state="metered")),
                            _connector="OR",
                        ),
                        name="offering_of_gpus_or_storage",
                    ),
                    models.UniqueConstraint(
                        condition=Q(state="metered"), fields=("region",), name="storage_once_a_region"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "lease_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("lease_id", models.CharField(max_length=40)),
                ("seq", models.PositiveIntegerField()),
                ("tenant_id", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("prev_seq", models.PositiveIntegerField(null=True)),
                ("prev_at", models.DateTimeField(null=True)),
                ("before", models.CharField(blank=True, default="", max_length=12)),
                ("after", models.CharField(max_length=12)),
                ("reason", models.CharField(default="none", max_length=20)),
                ("cause", models.CharField(blank=True, default="", max_length=200)),
                ("offering_id", models.CharField(max_length=40)),
                ("project_id", models.CharField(max_length=40)),
                ("quantity", models.PositiveIntegerField()),
                ("price_class", models.CharField(max_length=10)),
                ("generation", models.PositiveIntegerField()),
                ("actor_kind", models.CharField(max_length=16)),
                ("actor_id", models.CharField(blank=True, default="", max_length=40)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                ("position", models.BigIntegerField(db_default=0)),
                ("xid", models.BigIntegerField(db_default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Volume",
            fields=[
                ("id", models.CharField(default=keys.volume_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
                ("name", models.CharField(max_length=120)),
                ("size_gib", models.PositiveIntegerField()),
                ("state", models.CharField(default="ready", max_length=12)),
                (
                    "cluster",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="broker.cluster"),
                ),
                ("used_at", models.DateTimeField(null=True)),
                ("remaining_clusters", models.JSONField(default=list)),
                ("created_at", models.DateTimeField()),
                ("deleted_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("requested_by", models.CharField(max_length=40)),
                ("requested_by_label", models.CharField(max_length=254)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="volume_newest_first"),
                    models.Index(condition=Q(due_at__isnull=False), fields=["due_at"], name="volume_due"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(state__in=["ready", "deleting", "deleted"]), name="volume_state_known"
                    ),
                    models.CheckConstraint(condition=Q(size_gib__gte=1), name="volume_holds_something"),
                    models.UniqueConstraint(
                        condition=~Q(state="deleted"), fields=("tenant", "project", "name"), name="volume_named_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VolumeSizeChange",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "volume_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("volume_id", models.CharField(max_length=40)),
                ("seq", models.PositiveIntegerField()),
                ("tenant_id", models.CharField(max_length=40)),
                ("project_id", models.CharField(max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("prev_seq", models.PositiveIntegerField(null=True)),
                ("prev_at", models.DateTimeField(null=True)),
                ("prev_gib", models.PositiveIntegerField(null=True)),
                ("size_gib", models.PositiveIntegerField()),
                ("cause", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                ("xid", models.BigIntegerField(db_default=0)),
            ],
            options={"indexes": [models.Index(fields=["tenant_id", "xid"], name="volume_step_news")]},
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.CharField(default=keys.lease_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
                ("offering", models.ForeignKey(on_delete=models.PROTECT, to="broker.offering")),
                ("name", models.CharField(max_length=120)),
                ("quantity", models.PositiveIntegerField(default=1)),
                ("same_node", models.BooleanField(default=False)),
                ("topology", models.CharField(blank=True, db_default="", default="", max_length=10)),
                ("image", models.CharField(blank=True, default="", max_length=300)),
                ("command", models.CharField(blank=True, default="", max_length=2000)),
                ("workload", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("env", models.JSONField(db_default={}, default=dict)),
                ("ssh_keys", models.JSONField(db_default=[], default=list)),
                (
                    "volume",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=models.PROTECT, related_name="leases", to="broker.volume"
                    ),
                ),
                ("relocatable", models.BooleanField(db_default=False, default=False)),
                ("tags", models.JSONField(default=dict)),
                ("quote_id", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("state", models.CharField(default="requested", max_length=12)),
                ("seq", models.PositiveIntegerField(default=0)),
                ("state_since", models.DateTimeField()),
                ("generation", models.PositiveIntegerField(default=1)),
                ("conditions", models.JSONField(default=dict)),
                ("degraded_since", models.DateTimeField(null=True)),
                ("progress", models.JSONField(default=dict)),
                ("pending_reason", models.CharField(blank=True, default="", max_length=300)),
                ("created_at", models.DateTimeField()),
                ("requeued_at", models.DateTimeField(null=True)),
                ("active_at", models.DateTimeField(null=True)),
                ("active_seconds", models.PositiveIntegerField(db_default=0, default=0)),
                ("seen_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("end_reason", models.CharField(default="none", max_length=20)),
                ("max_duration_s", models.PositiveIntegerField()),
                ("end_date", models.DateTimeField(null=True)),
                ("ends_at", models.DateTimeField(null=True)),
                ("quota_uses", models.JSONField(default=dict)),
                ("requested_by", models.CharField(max_length=40)),
                ("requested_by_label", models.CharField(max_length=254)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("unfinished_claims", models.PositiveSmallIntegerField(default=0)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="lease_newest_first"),
                    models.Index(fields=["project", "-id"], name="lease_of_project"),
                    models.Index(condition=Q(due_at__isnull=False), fields=["due_at"], name="lease_due"),
                    models.Index(condition=Q(state="queued"), fields=["offering", "id"], name="lease_queue"),
                    models.Index(fields=["ended_at"], name="lease_ended"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            (
                                "state__in",
                                [
                                    "requested",
                                    "queued",
                                    "provisioning",
                                    "active",
                                    "stopping",
                                    "stopped",
                                    "releasing",
                                    "released",
                                    "failed",
                                ],
                            )
                        ),
                        name="lease_state_known",
                    ),
                    models.CheckConstraint(condition=Q(quantity__gte=1), name="lease_wants_something"),
                    models.UniqueConstraint(
                        condition=Q(~Q(state="released"), ("volume__isnull", False)),
                        fields=("tenant", "volume"),
                        name="volume_of_one_lease",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Allocation",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=keys.allocation_id, max_length=40, primary_key=True, serialize=False)),
                ("lease", models.ForeignKey(on_delete=models.PROTECT, related_name="allocations", to="broker.lease")),
                ("generation", models.PositiveIntegerField()),
                ("gpu", models.ForeignKey(on_delete=models.PROTECT, to="broker.gpu")),
                ("placement", IntegerRangeField()),
                ("profile", models.CharField(max_length=30)),
                ("isolation", models.CharField(max_length=10)),
                ("may_share", models.BooleanField(default=False)),
                ("held_at", models.DateTimeField()),
                ("leaving_since", models.DateTimeField(null=True)),
                ("is_relocation", models.BooleanField(db_default=False, default=False)),
                ("released_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(released_at__isnull=True), fields=["gpu"], name="allocation_held"),
                    models.Index(fields=["gpu", "released_at"], name="allocation_freed"),
                    models.Index(fields=["released_at"], name="allocation_lately"),
                    models.Index(
                        condition=Q(("released_at__isnull", True), ("leaving_since__isnull", False)),
                        fields=["leaving_since"],
                        name="allocation_leaving",
                    ),
                ],
                "constraints": [
                    ExclusionConstraint(
                        condition=Q(released_at__isnull=True),
                        expressions=[("gpu", "="), ("placement", "&&")],
                        name="one_lease_per_place",
                    ),
                    ExclusionConstraint(
                        condition=Q(released_at__isnull=True),
                        expressions=[("gpu", "="), ("isolation", "<>")],
                        name="one_isolation_per_gpu",
                    ),
                    ExclusionConstraint(
                        condition=Q(
                            ("released_at__isnull", True), ("isolation__in", ["soft", "none"]), ("may_share", False)
                        ),
                        expressions=[("gpu", "="), (F("tenant"), "<>")],
                        name="one_tenant_per_soft_gpu",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterCredential",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="credential",
                        serialize=False,
                        to="broker.cluster",
                    ),
                ),
                ("sealed", models.BinaryField()),
                ("updated_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ClusterExamination",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="examination",
                        serialize=False,
                        to="broker.cluster",
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("asked_by", models.CharField(blank=True, default="", max_length=254)),
                ("done_at", models.DateTimeField(null=True)),
                ("findings", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="ClusterObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cluster",
                    models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name="+", to="broker.cluster"),
                ),
                ("kind", models.CharField(max_length=60)),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("uid", models.CharField(max_length=40)),
                ("version", models.BigIntegerField()),
                ("spec_name", models.CharField(blank=True, default="", max_length=63)),
                ("body", models.JSONField(default=dict)),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "spec_name"], name="object_of_order")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "kind", "namespace", "name"), name="object_once_per_cluster"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterWatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="watches", to="broker.cluster"
                    ),
                ),
                ("kind", models.CharField(max_length=60)),
                ("version", models.BigIntegerField()),
                ("synced_at", models.DateTimeField()),
                ("last_event_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "kind"), name="watch_once_per_cluster")]
            },
        ),
        migrations.CreateModel(
            name="Repartition",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.repartition_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("node", models.ForeignKey(on_delete=models.PROTECT, related_name="layout_changes", to="broker.node")),
                ("wanted", models.JSONField()),
                ("before", models.JSONField()),
                ("gain_milli", models.IntegerField(default=0)),
                ("step", models.CharField(default="planned", max_length=14)),
                ("step_at", models.DateTimeField()),
                ("seq", models.PositiveIntegerField(default=0)),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("checks", models.PositiveIntegerField(default=0)),
                ("planned_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["node", "planned_at"], name="layout_change_of_node"),
                    models.Index(
                        condition=~Q(step__in=["cancelled", "done", "quarantined"]),
                        fields=["due_at"],
                        name="layout_change_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=~Q(step__in=["cancelled", "done", "quarantined"]),
                        fields=("node",),
                        name="one_layout_change_per_node",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            (
                                "step__in",
                                [
                                    "planned",
                                    "closing",
                                    "draining",
                                    "configuring",
                                    "repartitioning",
                                    "retrying",
                                    "reopening",
                                    "done",
                                    "quarantined",
                                    "cancelling",
                                    "cancelled",
                                ],
                            )
                        ),
                        name="layout_change_step_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RepartitionLogEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "change",
                    models.ForeignKey(
                        db_index=False, on_delete=models.PROTECT, related_name="steps", to="broker.repartition"
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                ("step", models.CharField(max_length=14)),
                ("at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("change", "seq"), name="layout_step_once")]},
        ),
        migrations.CreateModel(
            name="RelocationPlan",
            fields=[
                ("id", models.CharField(default=keys.relocation_plan_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "cluster",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="move_plans", to="broker.cluster"),
                ),
                (
                    "gpu_model",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.gpumodel"),
                ),
                ("reason", models.CharField(max_length=300)),
                ("cost_s", models.PositiveIntegerField()),
                ("gain_milli", models.IntegerField()),
                ("gpus", models.JSONField()),
                ("state", models.CharField(default="proposed", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("seq", models.PositiveIntegerField(default=0)),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("proposed_at", models.DateTimeField()),
                ("not_before", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=Q(("state__in", ["cancelled", "declined", "done", "failed"]), _negated=True),
                        fields=["due_at"],
                        name="move_plan_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("state__in", ["cancelled", "declined", "done", "failed"]), _negated=True),
                        fields=("cluster", "gpu_model"),
                        name="one_open_plan_per_pool",
                    ),
                    models.CheckConstraint(
                        condition=Q(
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
                ],
            },
        ),
        migrations.CreateModel(
            name="Relocation",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=keys.relocation_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False, on_delete=models.PROTECT, related_name="moves", to="broker.relocationplan"
                    ),
                ),
                ("n", models.PositiveIntegerField()),
                ("lease", models.ForeignKey(on_delete=models.PROTECT, related_name="moves", to="broker.lease")),
                ("profile", models.CharField(max_length=30)),
                ("size", models.PositiveSmallIntegerField()),
                (
                    "from_gpu",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.gpu"),
                ),
                ("from_start", models.PositiveSmallIntegerField()),
                (
                    "to_gpu",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.gpu"),
                ),
                ("to_start", models.PositiveSmallIntegerField()),
                ("cost_s", models.PositiveIntegerField()),
                ("gain_milli", models.IntegerField()),
                ("state", models.CharField(default="planned", max_length=12)),
                ("state_at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("not_before", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "plan", "n"), name="move_has_its_turn"),
                    models.UniqueConstraint(
                        condition=Q(state__in=["moving", "noticed", "returning"]),
                        fields=("tenant", "lease"),
                        name="one_open_move_per_lease",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("state__in", ["planned", "noticed", "moving", "returning", "done", "undone", "failed"])
                        ),
                        name="move_state_known",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="RelocationLogEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False, on_delete=models.PROTECT, related_name="entries", to="broker.relocationplan"
                    ),
                ),
                ("seq", models.PositiveIntegerField()),
                ("n", models.PositiveIntegerField(null=True)),
                ("state", models.CharField(max_length=12)),
                ("at", models.DateTimeField()),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("plan", "seq"), name="move_entry_once")]},
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("mark", models.CharField(default=keys.installation_id, max_length=40)),
            ],
            options={"constraints": [models.CheckConstraint(condition=Q(id=1), name="installation_once")]},
        ),
        migrations.CreateModel(
            name="Orphan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cluster",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="orphans", to="broker.cluster"),
                ),
                ("name", models.CharField(max_length=80)),
                ("known", models.BooleanField(default=False)),
                ("found_at", models.DateTimeField()),
                ("held_at", models.DateTimeField(null=True)),
                ("deletion_approved_at", models.DateTimeField(null=True)),
                ("deletion_requested_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="orphan_once_per_cluster", nulls_distinct=False
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="SimulatedPod",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("nodes", models.JSONField(default=list)),
                ("created_at", models.DateTimeField()),
                ("ready_at", models.DateTimeField(null=True)),
                ("slow", models.BooleanField(default=False)),
                ("refused", models.CharField(blank=True, default="", max_length=200)),
                ("gone_at", models.DateTimeField(null=True)),
            ],
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
        migrations.CreateModel(
            name="SimulatedNode",
            fields=[
                ("node", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("config", models.CharField(blank=True, default="", max_length=63)),
                ("configured_at", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
                ("tainted", models.BooleanField(default=False)),
                ("known", models.JSONField(default=dict)),
                ("cuts", models.JSONField(default=dict)),
                ("pending_faults", models.JSONField(default=list)),
                ("fault", models.CharField(blank=True, default="", max_length=10)),
            ],
        ),
    ]
