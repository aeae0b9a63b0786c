"""A quota for the room that volumes take."""

from django.db import migrations, models

KINDS = [("units", "Units"), ("gpu_seconds", "Gpu Seconds"), ("storage", "Storage"), ("burn", "Burn")]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_fewer_indexes")]

    operations = [
        migrations.AlterField("quota", "kind", models.CharField(choices=KINDS, max_length=12)),
        migrations.RemoveConstraint("quota", "quota_kind_known"),
        migrations.AddConstraint(
            "quota",
            models.CheckConstraint(
                condition=models.Q(("kind__in", [kind for kind, _ in KINDS])), name="quota_kind_known"
            ),
        ),
    ]
