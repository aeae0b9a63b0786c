"""What was done about invoices that are overdue."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from tenants.models.walls import append_only, tenant_wall

PROTECT = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    dependencies = [("billing", "0032_topup_walls"), ("tenants", "0008_makers")]
    operations = [
        migrations.CreateModel(
            "DunningStep",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("n", models.PositiveSmallIntegerField()),
                ("action", models.CharField(max_length=10)),
                ("minor", models.BigIntegerField()),
                ("done_at", models.DateTimeField()),
                (
                    "invoice",
                    models.ForeignKey(on_delete=PROTECT, related_name="reminders", to="billing.invoice"),
                ),
                ("tenant", models.ForeignKey(on_delete=PROTECT, related_name="+", to="tenants.tenant")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "invoice", "n"), name="dunning_step_once"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="dunning_of_something"),
                    models.CheckConstraint(
                        condition=Q(action__in=["remind", "suspend", "end"]), name="dunning_action_known"
                    ),
                ]
            },
        ),
        tenant_wall("billing_dunningstep"),
        append_only("billing_dunningstep"),
    ]
