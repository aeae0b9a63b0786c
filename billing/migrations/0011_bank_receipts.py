"""Money by bank transfer: receipts, imported statements, write-offs, and what invoices say about paying."""

import re
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import functools
import ports.ids
from django.db import migrations, models

FOLDER = Path(__file__).parent / "sql"
ADDED = """
DROP TRIGGER paid_by_a_payment ON billing_invoice;
CREATE TRIGGER paid_by_a_payment BEFORE UPDATE ON billing_invoice FOR EACH ROW
  WHEN ((OLD.status, OLD.paid_at, OLD.settled) IS DISTINCT FROM (NEW.status, NEW.paid_at, NEW.settled))
  EXECUTE FUNCTION refuse_unpaid();
DROP FUNCTION refuse_odd_receipt_part() CASCADE;
DROP FUNCTION refuse_odd_write_off() CASCADE;
"""
REPLACED = {
    "triggers_invoices": ("refuse_final_invoice_change", "refuse_unpaid"),
    "triggers_payments": ("refuse_odd_payment",),
    "triggers_credit_notes": ("refuse_odd_parts", "refuse_overcredit"),
    "triggers_grants": ("refuse_granted_money",),
}


def _before() -> str:
    """Return the functions as they were before this migration."""
    texts = []
    for name, functions in REPLACED.items():
        text = (FOLDER / f"{name}.sql").read_text()
        for function in functions:
            found = re.search(rf"CREATE FUNCTION {function}\(\).*?\nEND \$\$;", text, re.DOTALL)
            texts.append(found[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    return "\n".join([*texts, ADDED])


class Migration(migrations.Migration):
    """Add receipts, statements and write-offs with their rules; invoices count what they received."""

    dependencies = [
        ("billing", "0010_approvals"),
        ("tenants", "0004_parents_of_tokens"),
    ]

    operations = [
        migrations.CreateModel(
            name="BankStatement",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(ports.ids.new, *("bks",), **{}),
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("file_name", models.CharField(max_length=200)),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("format", models.CharField(max_length=8)),
                ("entries_found", models.PositiveIntegerField()),
                ("entries_new", models.PositiveIntegerField()),
                ("imported_at", models.DateTimeField()),
                ("imported_by", models.CharField(max_length=254)),
            ],
        ),
        migrations.CreateModel(
            name="BankEntry",
            fields=[
                (
                    "statement",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="billing.bankstatement"
                    ),
                ),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(ports.ids.new, *("bke",), **{}),
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("key", models.CharField(max_length=64, unique=True)),
                ("account", models.CharField(blank=True, default="", max_length=500)),
                ("booked_on", models.DateField()),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("incoming", models.BooleanField()),
                ("returned", models.BooleanField(default=False)),
                ("counterparty", models.CharField(blank=True, default="", max_length=500)),
                ("counterparty_account", models.CharField(blank=True, default="", max_length=40)),
                ("end_to_end_id", models.CharField(blank=True, default="", max_length=140)),
                ("bank_reference", models.CharField(blank=True, default="", max_length=140)),
                (
                    "references",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=500), default=list, size=None
                    ),
                ),
                ("remittance", models.CharField(blank=True, default="", max_length=500)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("booked", "Booked"),
                            ("dismissed", "Dismissed"),
                            ("outgoing", "Outgoing"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("receipt", models.CharField(blank=True, default="", max_length=40)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=254)),
            ],
        ),
        migrations.CreateModel(
            name="BankReceipt",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(ports.ids.new, *("bkr",), **{}),
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("minor", models.BigIntegerField()),
                ("received_on", models.DateField()),
                ("reference", models.CharField(blank=True, default="", max_length=500)),
                ("payer", models.CharField(blank=True, default="", max_length=140)),
                ("payer_account", models.CharField(blank=True, default="", max_length=40)),
                (
                    "wanted",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
                ),
                ("waits", models.BooleanField(default=False)),
                ("idem", models.CharField(max_length=120)),
                ("recorded_at", models.DateTimeField()),
                ("recorded_by", models.CharField(max_length=254)),
                ("reversed_at", models.DateTimeField(null=True)),
                ("reversed_by", models.CharField(blank=True, default="", max_length=254)),
                ("reversal_reason", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="BankReceiptPart",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "receipt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="parts", to="billing.bankreceipt"
                    ),
                ),
                (
                    "invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="bank_parts", to="billing.invoice"
                    ),
                ),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(ports.ids.new, *("bkp",), **{}),
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("from_balance", models.BooleanField(default=False)),
                ("recovered", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="WriteOff",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "invoice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="write_offs", to="billing.invoice"
                    ),
                ),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(ports.ids.new, *("wro",), **{}),
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("minor", models.BigIntegerField()),
                ("reason", models.CharField(max_length=200)),
                ("at", models.DateTimeField()),
                ("by", models.CharField(max_length=254)),
                ("undone_at", models.DateTimeField(null=True)),
                ("undone_minor", models.BigIntegerField(default=0)),
                ("undone_by", models.CharField(blank=True, default="", max_length=254)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="ledgeraccount",
            name="ledger_account_is_somebodys",
        ),
        migrations.RemoveIndex(
            model_name="invoice",
            name="invoice_to_be_paid",
        ),
        migrations.AddField(
            model_name="billingdetails",
            name="po_number",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="invoice",
            name="bank_account",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="invoice",
            name="po_number",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="invoice",
            name="received",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name="ledgeraccount",
            name="type",
            field=models.CharField(
                choices=[
                    ("receivable", "receivable"),
                    ("wallet_paid", "wallet_paid"),
                    ("wallet_promo", "wallet_promo"),
                    ("accrued", "accrued"),
                    ("revenue", "revenue"),
                    ("tax_payable", "tax_payable"),
                    ("slo_expense", "slo_expense"),
                    ("promotion", "promotion"),
                    ("cash", "cash"),
                    ("bank", "bank"),
                    ("bad_debt", "bad_debt"),
                    ("breakage", "breakage"),
                    ("fx", "fx"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="ledgertransfer",
            name="kind",
            field=models.CharField(
                choices=[
                    ("invoice", "Invoice"),
                    ("payment", "Payment"),
                    ("void", "Void"),
                    ("credit", "Credit"),
                    ("draw", "Draw"),
                    ("grant", "Grant"),
                    ("topup", "Topup"),
                    ("refund", "Refund"),
                    ("lapse", "Lapse"),
                    ("receipt", "Receipt"),
                    ("reversal", "Reversal"),
                    ("write_off", "Write Off"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="invoice",
            index=models.Index(
                condition=models.Q(("status__in", ("finalized", "partially_paid"))),
                fields=["finalized_at"],
                name="invoice_still_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="invoice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("received__gte", 0),
                        (
                            "received__lte",
                            django.db.models.expressions.CombinedExpression(
                                models.F("total"), "-", models.F("settled")
                            ),
                        ),
                    ),
                    ("received", 0),
                    _connector="OR",
                ),
                name="received_is_a_part_of_it",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgeraccount",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("tenant__isnull", False),
                        ("type__in", ["accrued", "receivable", "wallet_paid", "wallet_promo"]),
                    ),
                    models.Q(
                        ("tenant__isnull", True),
                        (
                            "type__in",
                            [
                                "bad_debt",
                                "bank",
                                "breakage",
                                "cash",
                                "fx",
                                "promotion",
                                "revenue",
                                "slo_expense",
                                "tax_payable",
                            ],
                        ),
                    ),
                    _connector="OR",
                ),
                name="ledger_account_is_somebodys",
            ),
        ),
        migrations.AddIndex(
            model_name="bankreceipt",
            index=models.Index(fields=["tenant", "-recorded_at"], name="bank_receipts_of_tenant"),
        ),
        migrations.AddIndex(
            model_name="bankreceipt",
            index=models.Index(condition=models.Q(("waits", True)), fields=["recorded_at"], name="bank_receipt_waits"),
        ),
        migrations.AddConstraint(
            model_name="bankreceipt",
            constraint=models.UniqueConstraint(fields=("tenant", "idem"), name="bank_receipt_recorded_once"),
        ),
        migrations.AddConstraint(
            model_name="bankreceipt",
            constraint=models.CheckConstraint(condition=models.Q(("minor__gt", 0)), name="bank_receipt_of_something"),
        ),
        migrations.AddConstraint(
            model_name="bankreceipt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("reversal_reason", ""), ("reversed_at", None)),
                    models.Q(("reversed_at__isnull", False), models.Q(("reversal_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="bank_receipt_reversed_for_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankreceiptpart",
            constraint=models.CheckConstraint(
                condition=models.Q(("minor__gt", 0)), name="bank_receipt_part_of_something"
            ),
        ),
        migrations.AddIndex(
            model_name="bankentry",
            index=models.Index(fields=["-booked_on", "-id"], name="bank_entries_by_day"),
        ),
        migrations.AddIndex(
            model_name="bankentry",
            index=models.Index(condition=models.Q(("status", "open")), fields=["booked_on"], name="bank_entry_waits"),
        ),
        migrations.AddConstraint(
            model_name="bankentry",
            constraint=models.CheckConstraint(condition=models.Q(("minor__gt", 0)), name="bank_entry_of_something"),
        ),
        migrations.AddConstraint(
            model_name="bankentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "booked", "dismissed", "outgoing"])),
                name="bank_entry_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at", None), ("status__in", ["open", "outgoing"])),
                    models.Q(
                        ("decided_at__isnull", False), ("status", "booked"), models.Q(("receipt", ""), _negated=True)
                    ),
                    models.Q(
                        ("decided_at__isnull", False), ("status", "dismissed"), models.Q(("reason", ""), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="bank_entry_decided_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="writeoff",
            constraint=models.UniqueConstraint(
                condition=models.Q(("undone_at", None)), fields=("invoice",), name="one_write_off_in_force"
            ),
        ),
        migrations.AddConstraint(
            model_name="writeoff",
            constraint=models.CheckConstraint(condition=models.Q(("minor__gt", 0)), name="write_off_of_something"),
        ),
        migrations.AddConstraint(
            model_name="writeoff",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("undone_at", None), ("undone_minor", 0)),
                    models.Q(
                        ("undone_at__isnull", False), ("undone_minor__gt", 0), ("undone_minor__lte", models.F("minor"))
                    ),
                    _connector="OR",
                ),
                name="write_off_undone_in_part",
            ),
        ),
        migrations.RunSQL((FOLDER / "bank_receipts.sql").read_text(), _before()),
    ]
