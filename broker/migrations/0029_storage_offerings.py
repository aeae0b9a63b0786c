"""Storage is sold as well: an offering of no card for every region that volumes lie in."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

STATES = ["draft", "published", "retired", "metered"]


class Migration(migrations.Migration):
    dependencies = [("broker", "0028_ill_since")]

    operations = [
        migrations.AlterField(
            model_name="offering",
            name="gpu_model",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, to="broker.gpumodel"
            ),
        ),
        migrations.AlterField(
            model_name="offering",
            name="state",
            field=models.CharField(
                choices=[(state, state.capitalize()) for state in STATES], default="draft", max_length=10
            ),
        ),
        migrations.RemoveConstraint(model_name="offering", name="offering_state_known"),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.CheckConstraint(condition=Q(state__in=STATES), name="offering_state_known"),
        ),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.CheckConstraint(
                condition=Q(gpu_model__isnull=True, state="metered")
                | Q(Q(gpu_model__isnull=False), ~Q(state="metered")),
                name="offering_of_cards_or_storage",
            ),
        ),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.UniqueConstraint(
                condition=Q(state="metered"), fields=["region"], name="storage_once_a_region"
            ),
        ),
    ]
