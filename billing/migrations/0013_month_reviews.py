"""Review of months before their invoices are final.

Months also close without leases that nobody observed.
"""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add operators' decisions about a month.

    And the leases that an invoice leaves to a later one.
    """

    dependencies = [("billing", "0012_withdrawals")]

    operations = [
        migrations.AddField("billingperiod", "review_since", models.DateTimeField(null=True)),
        migrations.AddField(
            "billingperiod", "held_reason", models.CharField(blank=True, db_default="", default="", max_length=300)
        ),
        migrations.AddField("billingperiod", "held_at", models.DateTimeField(null=True)),
        migrations.AddField("billingperiod", "approved_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "billingperiod", "decided_by", models.CharField(blank=True, db_default="", default="", max_length=254)
        ),
        migrations.AddField("billingperiod", "revision", models.PositiveSmallIntegerField(db_default=0, default=0)),
        migrations.AddConstraint(
            "billingperiod",
            models.CheckConstraint(
                condition=models.Q(("held_at", None), ("held_reason", ""))
                | models.Q(
                    ("approved_at", None), ("held_at__isnull", False), models.Q(("held_reason", ""), _negated=True)
                ),
                name="period_held_for_a_reason",
            ),
        ),
        migrations.AddField(
            "invoice",
            "unobserved_leases",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40), db_default=[], default=list, size=None
            ),
        ),
    ]
