"""Rates of tax, whose invoices are made out to whom, and what of an invoice, a line or a credit note is tax."""

import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import billing.models.keys

CATEGORIES = [("standard", "Standard"), ("reduced", "Reduced"), ("exempt", "Exempt")]
KNOWN = Q(category__in=["standard", "reduced", "exempt"])
PROTECT = django.db.models.deletion.PROTECT


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0017_stripe"),
        ("broker", "0027_held_once_free"),
        ("tenants", "0008_makers"),
    ]
    operations = [
        migrations.CreateModel(
            "BillingDetails",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("street", models.CharField(max_length=120)),
                ("extra", models.CharField(blank=True, default="", max_length=120)),
                ("postcode", models.CharField(blank=True, default="", max_length=20)),
                ("city", models.CharField(max_length=120)),
                ("country", models.CharField(max_length=2)),
                ("vat_id", models.CharField(blank=True, default="", max_length=20)),
                ("email", models.EmailField(blank=True, default="", max_length=254)),
                ("version", models.PositiveIntegerField(default=1)),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            "TaxedAs",
            fields=[
                (
                    "offering",
                    models.OneToOneField(
                        on_delete=PROTECT,
                        primary_key=True,
                        related_name="taxed_as",
                        serialize=False,
                        to="broker.offering",
                    ),
                ),
                ("category", models.CharField(choices=CATEGORIES, max_length=10)),
            ],
            options={"constraints": [models.CheckConstraint(condition=KNOWN, name="taxed_as_known")]},
        ),
        migrations.CreateModel(
            "TaxRate",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=billing.models.keys.tax_rate_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("jurisdiction", models.CharField(max_length=2)),
                ("category", models.CharField(choices=CATEGORIES, max_length=10)),
                ("rate_bp", models.PositiveIntegerField()),
                ("valid", django.contrib.postgres.fields.ranges.DateRangeField()),
                ("created_by", models.CharField(blank=True, default="", max_length=254)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    django.contrib.postgres.constraints.ExclusionConstraint(
                        expressions=[("jurisdiction", "="), ("category", "="), ("valid", "&&")],
                        name="one_tax_rate_at_a_time",
                    ),
                    models.CheckConstraint(condition=Q(rate_bp__lte=10000), name="tax_takes_no_more_than_all"),
                    models.CheckConstraint(condition=KNOWN, name="tax_category_known"),
                ]
            },
        ),
        migrations.CreateModel(
            "InvoiceTax",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("category", models.CharField(choices=CATEGORIES, max_length=10)),
                ("rate_bp", models.PositiveIntegerField(null=True)),
                ("net", models.BigIntegerField()),
                ("tax", models.BigIntegerField()),
                (
                    "invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="taxes", to="billing.invoice"
                    ),
                ),
                (
                    "rate",
                    models.ForeignKey(null=True, on_delete=PROTECT, related_name="+", to="billing.taxrate"),
                ),
                ("tenant", models.ForeignKey(on_delete=PROTECT, related_name="+", to="tenants.tenant")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("invoice", "category"), name="one_tax_per_category"),
                    models.CheckConstraint(condition=KNOWN, name="invoice_tax_known"),
                    models.CheckConstraint(
                        condition=Q(rate_bp__isnull=False) | Q(tax=0), name="no_tax_without_rate"
                    ),
                ]
            },
        ),
        migrations.AddField("creditnote", "tax", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("creditnoteline", "tax_minor", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("invoice", "customer", models.JSONField(null=True)),
        migrations.AddField("invoice", "supplier", models.JSONField(null=True)),
        migrations.AddField("invoice", "due_at", models.DateTimeField(null=True)),
        migrations.AddField("invoice", "tax", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "invoice", "treatment", models.CharField(blank=True, db_default="", default="", max_length=14)
        ),
        migrations.AddConstraint(
            "invoice",
            models.CheckConstraint(
                condition=Q(treatment__in=["", "domestic", "destination", "reverse_charge", "outside"]),
                name="treatment_known",
            ),
        ),
        migrations.AddField(
            "invoiceline",
            "tax_category",
            models.CharField(db_default="standard", default="standard", max_length=10),
        ),
        migrations.AddField("invoiceline", "tax_minor", models.BigIntegerField(db_default=0, default=0)),
    ]
