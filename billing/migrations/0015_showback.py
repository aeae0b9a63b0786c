"""Show-back: tenants that get monthly reports instead of invoices."""

from django.db import migrations, models

STATUSES = ["draft", "closing", "finalized", "paid", "partially_paid", "uncollectible", "reported", "void"]
TERMS = ["invoice", "prepaid", "showback"]


class Migration(migrations.Migration):
    """Add the payment terms of show-back, and the state of its reports."""

    dependencies = [("billing", "0014_rebilling")]

    operations = [
        migrations.RemoveConstraint("accountterms", "terms_payment_known"),
        migrations.AlterField(
            "accountterms",
            "payment",
            models.CharField(
                choices=[("invoice", "Invoice"), ("prepaid", "Prepaid"), ("showback", "Show-back")],
                default="invoice",
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            "accountterms",
            models.CheckConstraint(condition=models.Q(("payment__in", TERMS)), name="terms_payment_known"),
        ),
        migrations.RemoveConstraint("invoice", "invoice_status_known"),
        migrations.AlterField(
            "invoice",
            "status",
            models.CharField(
                choices=[(each, each.replace("_", " ").title()) for each in STATUSES], default="draft", max_length=14
            ),
        ),
        migrations.AddConstraint(
            "invoice",
            models.CheckConstraint(condition=models.Q(("status__in", STATUSES)), name="invoice_status_known"),
        ),
    ]
