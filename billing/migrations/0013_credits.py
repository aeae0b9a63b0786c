"""Credit notes with their lines, what was drawn from a balance, and what of an invoice they settled."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

import billing.models.keys

TO_TENANT = {"on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "to": "tenants.tenant"}


class Migration(migrations.Migration):
    dependencies = [("billing", "0012_quotes"), ("tenants", "0008_makers")]
    operations = [
        migrations.AddField("invoice", "settled", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddConstraint(
            "invoice",
            models.CheckConstraint(
                condition=Q(settled=0) | Q(settled__gt=0, settled__lte=F("total"), number__isnull=False),
                name="settled_is_a_part_of_it",
            ),
        ),
        migrations.AlterField(
            "ledgertransfer",
            "kind",
            models.CharField(
                choices=[
                    ("invoice", "Invoice"),
                    ("payment", "Payment"),
                    ("void", "Void"),
                    ("credit", "Credit"),
                    ("draw", "Draw"),
                ],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            "CreditNote",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=billing.models.keys.credit_note_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("series", models.CharField(max_length=20)),
                ("number", models.PositiveIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("total", models.BigIntegerField()),
                ("off_due", models.BigIntegerField()),
                ("reason", models.CharField(max_length=200)),
                ("issued_at", models.DateTimeField()),
                ("issued_by", models.CharField(max_length=40)),
                (
                    "invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="credit_notes",
                        to="billing.invoice",
                    ),
                ),
                ("tenant", models.ForeignKey(**TO_TENANT)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("series", "number"), name="credit_note_number_once"),
                    models.CheckConstraint(
                        condition=Q(total__gt=0, off_due__gte=0, off_due__lte=F("total")),
                        name="credit_of_something",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            "CreditNoteLine",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("minor", models.BigIntegerField()),
                (
                    "credit_note",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="lines", to="billing.creditnote"
                    ),
                ),
                (
                    "line",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="credits", to="billing.invoiceline"
                    ),
                ),
                ("tenant", models.ForeignKey(**TO_TENANT)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("credit_note", "line"), name="line_credited_once_a_note"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="credit_line_of_something"),
                ]
            },
        ),
        migrations.CreateModel(
            "BalanceDraw",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=billing.models.keys.draw_id, max_length=40, primary_key=True, serialize=False
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "invoice",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="draw", to="billing.invoice"
                    ),
                ),
                ("tenant", models.ForeignKey(**TO_TENANT)),
            ],
            options={"constraints": [models.CheckConstraint(condition=Q(minor__gt=0), name="draw_of_something")]},
        ),
    ]
