"""An index of what operators changed, which is little of what they visited."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Index operators' changes, newest first."""

    dependencies = [("tenants", "0008_new_tenants")]

    operations = [
        migrations.AddIndex(
            "auditevent",
            models.Index(
                fields=["-id"],
                name="audit_changes_of_operators",
                condition=Q(actor_kind="staff") & ~Q(action__startswith="ops."),
            ),
        )
    ]
