"""Launch templates, image registries' logins, and images kept on nodes."""

from pathlib import Path

from django.db import migrations, models

from broker.models import keys

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "launch_templates.sql").read_text()


class Migration(migrations.Migration):
    """Add templates with row-level security, their copy on leases, and image pre-pulls."""

    dependencies = [
        ("broker", "0010_lease_schedules"),
        ("tenants", "0003_ssh_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="launch_template",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="lease",
            name="pull_secret",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="secret",
            name="kind",
            field=models.CharField(
                choices=[("variable", "Variable"), ("registry", "Registry")],
                db_default="variable",
                default="variable",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="secret",
            name="registry",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.CreateModel(
            name="OperatorTemplate",
            fields=[
                ("id", models.CharField(default=keys.template_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("icon", models.CharField(max_length=30)),
                ("shape", models.CharField(max_length=10)),
                ("image", models.CharField(max_length=300)),
                ("entrypoint", models.CharField(blank=True, default="", max_length=2000)),
                ("command", models.CharField(blank=True, default="", max_length=2000)),
                ("ports", models.JSONField(default=list)),
                ("env", models.JSONField(default=dict)),
                ("mount_path", models.CharField(default="/home/gpubroker", max_length=200)),
                ("needs_volume", models.BooleanField(default=False)),
                ("readiness_path", models.CharField(blank=True, default="", max_length=200)),
                ("token_variable", models.CharField(blank=True, default="", max_length=128)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=40)),
                ("created_by_label", models.CharField(max_length=254)),
                ("updated_at", models.DateTimeField()),
                ("updated_by", models.CharField(max_length=40)),
                ("updated_by_label", models.CharField(max_length=254)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="operator_template_named_once"),
                    models.CheckConstraint(
                        condition=models.Q(("shape__in", ("session", "batch", "service"))),
                        name="operator_template_shape_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImagePrepull",
            fields=[
                (
                    "id",
                    models.CharField(default=keys.image_prepull_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("image", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=40)),
                ("created_by_label", models.CharField(max_length=254)),
                ("nodes_total", models.PositiveIntegerField(default=0)),
                ("nodes_ready", models.PositiveIntegerField(default=0)),
                ("problem", models.CharField(blank=True, default="", max_length=300)),
                ("checked_at", models.DateTimeField(null=True)),
                ("ready_since", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="image_prepulls", to="broker.cluster"),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "image"), name="image_prepulled_once")],
            },
        ),
        migrations.CreateModel(
            name="LaunchTemplate",
            fields=[
                ("id", models.CharField(default=keys.template_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("icon", models.CharField(max_length=30)),
                ("shape", models.CharField(max_length=10)),
                ("image", models.CharField(max_length=300)),
                ("entrypoint", models.CharField(blank=True, default="", max_length=2000)),
                ("command", models.CharField(blank=True, default="", max_length=2000)),
                ("ports", models.JSONField(default=list)),
                ("env", models.JSONField(default=dict)),
                ("mount_path", models.CharField(default="/home/gpubroker", max_length=200)),
                ("needs_volume", models.BooleanField(default=False)),
                ("readiness_path", models.CharField(blank=True, default="", max_length=200)),
                ("token_variable", models.CharField(blank=True, default="", max_length=128)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=40)),
                ("created_by_label", models.CharField(max_length=254)),
                ("updated_at", models.DateTimeField()),
                ("updated_by", models.CharField(max_length=40)),
                ("updated_by_label", models.CharField(max_length=254)),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
                (
                    "pull_secret",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="templates", to="broker.secret"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-id"], name="template_newest_first")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "project", "name"), name="template_named_once"),
                    models.CheckConstraint(
                        condition=models.Q(("shape__in", ("session", "batch", "service"))), name="template_shape_known"
                    ),
                ],
            },
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
