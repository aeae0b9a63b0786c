"""Tokens of operators, and stored responses to their keyed requests."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from tenants.models import default_ids

# An operator's responses hold rows of tenants: only transactions of that operator see them.
OWN_RESPONSES_SQL = """
ALTER TABLE tenants_operatoridempotencyrecord ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own_responses ON tenants_operatoridempotencyrecord
  USING (bearer = (SELECT nullif(current_setting('app.operator', true), '')))
  WITH CHECK (bearer = (SELECT nullif(current_setting('app.operator', true), '')));
CREATE POLICY expiry ON tenants_operatoridempotencyrecord FOR SELECT TO gpubroker_system USING (true);
"""
UNDO_SQL = """
DROP POLICY own_responses ON tenants_operatoridempotencyrecord;
DROP POLICY expiry ON tenants_operatoridempotencyrecord;
ALTER TABLE tenants_operatoridempotencyrecord NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    """Add the tables of operators' tokens and of their responses."""

    dependencies = [("tenants", "0006_request_counts")]

    operations = [
        migrations.CreateModel(
            name="OperatorToken",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=default_ids.operator_token_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("digest", models.CharField(max_length=64)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), size=None
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="operator_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OperatorIdempotencyRecord",
            fields=[
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
                        fields=("bearer", "method", "path", "key"), name="operator_answer_once_per_key"
                    )
                ]
            },
        ),
        migrations.RunSQL(OWN_RESPONSES_SQL, UNDO_SQL),
    ]
