"""Language of a tenant's invoices, credit notes and statements."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0005_invariant_runs")]

    operations = [
        migrations.AddField("billingdetails", "language", models.CharField(db_default="en", default="en", max_length=2)),
        migrations.AddConstraint(
            "billingdetails",
            models.CheckConstraint(condition=models.Q(language__in=["en", "de"]), name="billing_language_known"),
        ),
    ]
