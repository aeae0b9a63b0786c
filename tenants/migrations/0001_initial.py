"""Create the tables of tenants, people, credentials, quotas and the audit trail."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import F, Q

from ports.initial_migration import InitialMigration
from tenants.models import default_ids


class Migration(InitialMigration):
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Tenant",
            fields=[
                ("id", models.CharField(default=default_ids.tenant_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("time_zone", models.CharField(default="UTC", max_length=60)),
                ("currency", models.CharField(default="EUR", max_length=3)),
                ("created_at", models.DateTimeField()),
                ("suspended_at", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("bearer", models.CharField(max_length=40)),
                ("method", models.CharField(max_length=7)),
                ("path", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=255)),
                ("body_digest", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("headers", models.JSONField(default=dict)),
                ("body", models.TextField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "bearer", "method", "path", "key"), name="answer_once_per_key"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.CharField(default=default_ids.audit_id, max_length=40, primary_key=True, serialize=False)),
                ("tenant_id", models.CharField(blank=True, db_index=True, default="", max_length=40)),
                ("at", models.DateTimeField()),
                ("actor_kind", models.CharField(max_length=16)),
                ("actor_id", models.CharField(blank=True, default="", max_length=40)),
                ("actor_label", models.CharField(blank=True, default="", max_length=254)),
                ("action", models.CharField(max_length=60)),
                ("subject_id", models.CharField(blank=True, default="", max_length=40)),
                ("subject_label", models.CharField(blank=True, default="", max_length=254)),
                ("detail", models.JSONField(default=dict)),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
            ],
            options={"indexes": [models.Index(fields=["tenant_id", "-at", "-id"], name="audit_newest_first")]},
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.project_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "parent",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="children", to="tenants.project"
                    ),
                ),
                ("path", ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ("name", models.CharField(max_length=120)),
                ("created_at", models.DateTimeField()),
                ("archived_at", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "parent", "name"), name="project_name_once", nulls_distinct=False
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                ("id", models.CharField(default=default_ids.user_id, max_length=40, primary_key=True, serialize=False)),
                ("email", models.EmailField(max_length=254, unique=True)),
                ("name", models.CharField(blank=True, max_length=120)),
                ("is_active", models.BooleanField(default=True)),
                ("is_staff", models.BooleanField(default=False)),
                ("joined_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.member_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="memberships", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("project", models.ForeignKey(null=True, on_delete=models.CASCADE, to="tenants.project")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("billing", "Billing"),
                            ("member", "Member"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "user", "project"), name="member_once", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=Q(role__in=["owner", "admin", "billing", "member", "viewer"]),
                        name="member_role_known",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="ServiceAccount",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "id",
                    models.CharField(default=default_ids.service_account_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("project", models.ForeignKey(null=True, on_delete=models.CASCADE, to="tenants.project")),
                ("name", models.CharField(max_length=120)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("billing", "Billing"),
                            ("member", "Member"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("made_by", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("made_by_label", models.CharField(blank=True, db_default="", default="", max_length=254)),
                ("closed_at", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="service_account_name_once"),
                    models.CheckConstraint(
                        condition=Q(role__in=["owner", "admin", "billing", "member", "viewer"]),
                        name="service_account_role_known",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.invitation_id, max_length=40, primary_key=True, serialize=False)),
                ("project", models.ForeignKey(null=True, on_delete=models.CASCADE, to="tenants.project")),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("billing", "Billing"),
                            ("member", "Member"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=10,
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(role__in=["owner", "admin", "billing", "member", "viewer"]),
                        name="invitation_role_known",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.quota_id, max_length=40, primary_key=True, serialize=False)),
                ("project", models.ForeignKey(on_delete=models.CASCADE, related_name="quotas", to="tenants.project")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("units", "Units"),
                            ("gpu_seconds", "Gpu Seconds"),
                            ("storage", "Storage"),
                            ("burn", "Burn"),
                        ],
                        max_length=12,
                    ),
                ),
                ("limit", models.BigIntegerField()),
                ("soft_limit", models.BigIntegerField()),
                ("used", models.BigIntegerField(default=0)),
                ("window_start", models.DateTimeField(null=True)),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "project", "kind"), name="quota_once_per_node"),
                    models.CheckConstraint(
                        condition=Q(("used__gte", 0), ("used__lte", F("limit"))), name="quota_never_exceeded"
                    ),
                    models.CheckConstraint(
                        condition=Q(("soft_limit__gte", 0), ("soft_limit__lte", F("limit"))),
                        name="quota_soft_below_hard",
                    ),
                    models.CheckConstraint(
                        condition=Q(kind__in=["units", "gpu_seconds", "storage", "burn"]), name="quota_kind_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.token_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "service_account",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="+", to="tenants.serviceaccount"
                    ),
                ),
                ("project", models.ForeignKey(null=True, on_delete=models.CASCADE, to="tenants.project")),
                ("name", models.CharField(max_length=120)),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("scopes", ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ("made_by", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("made_by_label", models.CharField(blank=True, db_default="", default="", max_length=254)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("user", None), ("service_account", None), _connector="XOR"),
                        name="token_has_one_bearer",
                    )
                ]
            },
        ),
    ]
