"""New tenants, which operators release; people by their mailboxes; wishes of who signs up."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# A person's mailbox as `tenants/domain/mailboxes.py` writes it; unicode domains stay as they are.
FILL_MAILBOXES = """
UPDATE tenants_user
   SET mailbox = lower(coalesce(nullif(split_part(split_part(email, '@', 1), '+', 1), ''), split_part(email, '@', 1))
                       || '@' || split_part(email, '@', 2))
"""
# Row-level security binds the owner too. Nothing else is known of who created a tenant before.
RELEASE_ALL = """
ALTER TABLE tenants_tenant NO FORCE ROW LEVEL SECURITY;
UPDATE tenants_tenant SET released_at = created_at;
ALTER TABLE tenants_tenant FORCE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    """Add the limits of new tenants; tenants of before are released."""

    dependencies = [("tenants", "0007_operator_tokens")]

    operations = [
        migrations.AddField("tenant", "released_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "tenant", "founder", models.CharField(blank=True, db_default="", default="", max_length=254)
        ),
        migrations.AddField(
            "tenant", "founder_network", models.CharField(blank=True, db_default="", default="", max_length=45)
        ),
        migrations.AddField(
            "user",
            "mailbox",
            models.CharField(blank=True, db_default="", db_index=True, default="", max_length=254),
        ),
        migrations.RunSQL(RELEASE_ALL, migrations.RunSQL.noop),
        migrations.RunSQL(FILL_MAILBOXES, migrations.RunSQL.noop),
        migrations.AddIndex(
            "tenant",
            models.Index(
                condition=models.Q(("released_at", None)), fields=["founder"], name="new_tenants_of_person"
            ),
        ),
        migrations.AddIndex(
            "tenant",
            models.Index(
                condition=models.Q(("released_at", None)), fields=["founder_network"], name="new_tenants_of_network"
            ),
        ),
        migrations.CreateModel(
            name="SignUp",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("organisation", models.CharField(max_length=120)),
                ("country", models.CharField(blank=True, default="", max_length=2)),
                ("currency", models.CharField(max_length=3)),
                ("time_zone", models.CharField(max_length=60)),
                ("made_at", models.DateTimeField()),
            ],
        ),
    ]
