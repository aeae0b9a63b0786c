"""An index of what operators did, which is little of the audit log."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Index operators' audit events, newest first."""

    dependencies = [("tenants", "0004_parents_of_tokens")]

    operations = [
        migrations.AddIndex(
            "auditevent", models.Index(fields=["-id"], name="audit_of_operators", condition=Q(actor_kind="staff"))
        )
    ]
