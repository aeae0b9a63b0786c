"""What was agreed of a month stands with its invoice, and why a month cannot close stands with the month."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0052_decided_taxes")]

    operations = [
        migrations.AddField(
            model_name="billingperiod",
            name="held_up",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.AddField(model_name="invoice", name="agreed", field=models.TextField(null=True)),
        migrations.AddIndex(
            model_name="priceversion",
            index=models.Index(
                condition=models.Q(("model", "flat"), _negated=True), fields=["tenant_id"], name="price_in_tiers"
            ),
        ),
    ]
