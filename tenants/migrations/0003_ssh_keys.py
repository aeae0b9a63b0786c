"""Saved public SSH keys of users."""

from django.conf import settings
from django.db import migrations, models

from tenants.models import default_ids


class Migration(migrations.Migration):
    """Add the table of saved SSH keys."""

    dependencies = [("tenants", "0002_database_rules")]

    operations = [
        migrations.CreateModel(
            name="SshKey",
            fields=[
                ("id", models.CharField(default=default_ids.ssh_key_id, max_length=40, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("public_key", models.CharField(max_length=8192)),
                ("fingerprint", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "name"), name="ssh_key_named_once"),
                    models.UniqueConstraint(fields=("user", "fingerprint"), name="ssh_key_saved_once"),
                ]
            },
        ),
    ]
