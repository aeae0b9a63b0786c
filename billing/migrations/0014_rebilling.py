"""Invoices that are cancelled and issued again."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

FOLDER = Path(__file__).parent / "sql"
KEY = "tenant_id, billed_period_id, {}kind, source, project_id, offering_id, price_version_id"
# Django changes no composite keys.
NEW_KEY = f"""
ALTER TABLE billing_invoiceadjustment ADD COLUMN revision smallint NOT NULL DEFAULT 0 CHECK (revision >= 0);
ALTER TABLE billing_invoiceadjustment DROP CONSTRAINT billing_invoiceadjustment_pkey;
ALTER TABLE billing_invoiceadjustment ADD PRIMARY KEY ({KEY.format("revision, ")});
"""
OLD_KEY = f"""
ALTER TABLE billing_invoiceadjustment DROP CONSTRAINT billing_invoiceadjustment_pkey;
ALTER TABLE billing_invoiceadjustment ADD PRIMARY KEY ({KEY.format("")});
ALTER TABLE billing_invoiceadjustment DROP COLUMN revision;
"""


class Migration(migrations.Migration):
    """Number the revisions of a month, and keep the bundles of cancelled invoices."""

    dependencies = [("billing", "0013_month_reviews"), ("tenants", "0004_parents_of_tokens")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(NEW_KEY, OLD_KEY)],
            state_operations=[
                migrations.AddField(
                    "invoiceadjustment", "revision", models.PositiveSmallIntegerField(db_default=0, default=0)
                ),
                migrations.AlterField(
                    "invoiceadjustment",
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "billed_period_id",
                        "revision",
                        "kind",
                        "source",
                        "project_id",
                        "offering_id",
                        "price_version_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
        ),
        migrations.AddField("invoice", "revision", models.PositiveSmallIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "invoice", "rebills", models.CharField(blank=True, db_default="", default="", max_length=40)
        ),
        migrations.CreateModel(
            name="StoredBundle",
            fields=[
                (
                    "invoice",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="billing.invoice",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                ("content", models.BinaryField()),
                ("sha256", models.CharField(max_length=64)),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL((FOLDER / "stored_bundles.sql").read_text(), migrations.RunSQL.noop),
    ]
