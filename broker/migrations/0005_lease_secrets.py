"""Saved secrets of projects, and the secrets of leases."""

from pathlib import Path

from django.db import migrations, models

from broker.models import keys

ROW_LEVEL_SECURITY = (Path(__file__).parent / "sql" / "secrets.sql").read_text()


class Migration(migrations.Migration):
    """Add secrets with their encrypted values, row-level security, and their use by leases."""

    dependencies = [("broker", "0004_offering_resources"), ("tenants", "0002_database_rules")]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="secrets",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                ("id", models.CharField(default=keys.secret_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=40)),
                ("created_by_label", models.CharField(max_length=254)),
                ("updated_at", models.DateTimeField()),
                ("updated_by", models.CharField(max_length=40)),
                ("updated_by_label", models.CharField(max_length=254)),
                ("project", models.ForeignKey(db_index=False, on_delete=models.PROTECT, to="tenants.project")),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-id"], name="secret_newest_first")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "project", "name"), name="secret_named_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SecretVersion",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                (
                    "id",
                    models.CharField(default=keys.secret_version_id, max_length=40, primary_key=True, serialize=False),
                ),
                ("version", models.PositiveIntegerField()),
                ("sealed", models.BinaryField()),
                ("size_bytes", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "secret",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="versions", to="broker.secret"),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "secret", "version"), name="secret_version_stored_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(ROW_LEVEL_SECURITY, migrations.RunSQL.noop),  # undone with the tables
    ]
