"""Build a row of any tenant's table from its fields.

A new model needs nothing here unless one of its constraints asks for more: then say so in PARTICULAR.
"""

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, IntegerRangeField
from django.db import models
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange

from tenants.models import Tenant

_names = itertools.count(1)
APPS = ("ports", "tenants", "broker", "billing")
AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)

WITHOUT_TENANT_POLICY = {
    "ports_outboxmessage": "the outbox: names of tasks and ids only; the relay must read all of it",
    "stream_seats": "how many live streams each process has open; an events process writes those of all its tenants",
}


def a_lease(tenant_id: str, number: int) -> str:
    """Create a lease that other rows refer to at once."""
    lease = sample(apps.get_model("broker.Lease"), tenant_id, number=number)
    lease.save(force_insert=True)
    return str(lease.pk)


def a_volume(tenant_id: str, number: int) -> str:
    """Store a volume, for its transition."""
    volume = sample(apps.get_model("broker.Volume"), tenant_id, number=number)
    volume.save(force_insert=True)
    return str(volume.pk)


def a_final_invoice(tenant_id: str, number: int) -> str:
    """Create an invoice with a currency called x that is due."""
    invoice = sample(apps.get_model("billing.Invoice"), tenant_id, number=number)
    invoice.__dict__.update(status="finalized", total=1)
    invoice.save(force_insert=True)
    return str(invoice.pk)


def an_issued_invoice(tenant_id: str, number: int) -> str:
    """Store a final invoice, for its document."""
    invoice = sample(apps.get_model("billing.Invoice"), tenant_id, number=number)
    invoice.__dict__.update(status="finalized", finalized_at=AT)
    invoice.save(force_insert=True)
    return str(invoice.pk)


def a_succeeded_payment(tenant_id: str, number: int) -> str:
    """Store a succeeded payment, for its refund."""
    payment = sample(apps.get_model("billing.Payment"), tenant_id, number=number)
    payment.save(force_insert=True)
    rows = type(payment)._default_manager.filter(pk=payment.pk)
    rows.update(status="succeeded", settled_at=AT, due_at=None)
    return str(payment.pk)


def a_receipt(tenant_id: str, number: int) -> str:
    """Store a bank receipt in a currency called x."""
    receipt = sample(apps.get_model("billing.BankReceipt"), tenant_id, number=number)
    receipt.save(force_insert=True)
    return str(receipt.pk)


def a_draft(tenant_id: str, number: int) -> str:
    """Store a draft invoice."""
    invoice = sample(apps.get_model("billing.Invoice"), tenant_id, number=number)
    invoice.__dict__.update(total=1)
    invoice.save(force_insert=True)
    return str(invoice.pk)


def a_hold(tenant_id: str, number: int) -> str:
    """Store a hold, for its parts."""
    hold = sample(apps.get_model("billing.Hold"), tenant_id, number=number)
    hold.save(force_insert=True)
    return str(hold.pk)


def a_month_of_a_budget(tenant_id: str, number: int) -> int:
    """Store a budget month, for its holds."""
    month = sample(apps.get_model("billing.BudgetMonth"), tenant_id, number=number)
    month.save(force_insert=True)
    return int(month.pk)


def a_capped_lease(tenant_id: str, number: int) -> int:
    """Create a lease of a capped token, and a day of that cap."""
    token = f"tok_{number}{next(_names)}"
    lease = sample(apps.get_model("billing.TokenCapLease"), tenant_id, number=number)
    lease.__dict__.update(cap_id=token)
    lease.save(force_insert=True)
    day = sample(apps.get_model("billing.TokenCapDay"), tenant_id, number=number)
    day.__dict__.update(cap_id=token)
    day.save(force_insert=True)
    return int(lease.pk)


def the_day_of_it(tenant_id: str, number: int) -> int:
    return int(apps.get_model("billing.TokenCapDay")._default_manager.latest("pk").pk)


def a_credited_invoice(tenant_id: str, number: int) -> str:
    """Create a final invoice with a currency called x and one line."""
    invoice = sample(apps.get_model("billing.Invoice"), tenant_id, number=number)
    invoice.__dict__.update(total=1)
    invoice.save(force_insert=True)
    line = sample(apps.get_model("billing.InvoiceLine"), tenant_id, number=number)
    line.__dict__.update(invoice_id=invoice.pk)
    line.save(force_insert=True)
    type(invoice)._default_manager.filter(pk=invoice.pk).update(status="finalized", number=number, series="x")
    return str(invoice.pk)


def a_credit_note(tenant_id: str, number: int) -> str:
    """Store a credit note, for its lines."""
    note = sample(apps.get_model("billing.CreditNote"), tenant_id, number=number)
    note.save(force_insert=True)
    return str(note.pk)


def the_line_of_it(tenant_id: str, number: int) -> int:
    """Return the line of the invoice with the last credit note."""
    note = apps.get_model("billing.CreditNote")._default_manager.latest("pk")
    return int(note.invoice.lines.get().pk)


def a_grant(tenant_id: str, number: int) -> str:
    """Store a grant in a currency called x."""
    grant = sample(apps.get_model("billing.Grant"), tenant_id, number=number)
    grant.save(force_insert=True)
    return str(grant.pk)


def a_grant_that_ended(tenant_id: str, number: int) -> str:
    grant = sample(apps.get_model("billing.Grant"), tenant_id, number=number)
    grant.__dict__.update(given_at=AT - timedelta(days=2), expires_at=AT - timedelta(days=1))
    grant.save(force_insert=True)
    return str(grant.pk)


def a_draft_with_a_line(tenant_id: str, number: int) -> str:
    """Store a draft invoice in a currency called x, for a grant."""
    invoice = a_draft(tenant_id, number)
    line = sample(apps.get_model("billing.InvoiceLine"), tenant_id, number=number)
    line.__dict__.update(invoice_id=invoice)
    line.save(force_insert=True)
    return invoice


def the_line_of_the_draft(tenant_id: str, number: int) -> int:
    return int(apps.get_model("billing.InvoiceLine")._default_manager.latest("pk").pk)


def a_note_to_a_grant(tenant_id: str, number: int) -> str:
    """Store a credit note on an amount paid by a grant."""
    draw = sample(apps.get_model("billing.GrantDraw"), tenant_id, number=number)
    draw.save(force_insert=True)
    apps.get_model("billing.Invoice")._default_manager.filter(pk=draw.invoice_id).update(
        status="finalized", number=number, series="x", settled=1
    )
    terms = {
        "series": tenant_id[-20:],
        "number": number,
        "currency": "x",
        "total": 1,
        "reduced_due": 0,
        "to_grants": 1,
    }
    note = apps.get_model("billing.CreditNote")(
        tenant_id=tenant_id, invoice_id=draw.invoice_id, reason="x", issued_at=AT, issued_by="x", **terms
    )
    note.save(force_insert=True)
    return str(note.pk)


def the_grant_of_it(tenant_id: str, number: int) -> str:
    return str(apps.get_model("billing.GrantDraw")._default_manager.latest("pk").grant_id)


def a_wallet(tenant_id: str, number: int) -> int:
    model = apps.get_model("billing.Wallet")
    found = model._default_manager.filter(tenant_id=tenant_id).first()
    if found is None:
        found = sample(model, tenant_id, number=number)
        found.save(force_insert=True)
    return int(found.pk)


def an_account(kind: str) -> Any:
    """Create the accounts that a transfer of the tenant needs."""

    def opened(tenant_id: str, number: int) -> int:
        account = sample(apps.get_model("billing.LedgerAccount"), tenant_id, number=number)
        account.__dict__.update(type=kind, currency="x", ref=str(number))
        account.save(force_insert=True)
        return int(account.pk)

    return opened


def a_card(tenant_id: str, number: int) -> int:
    """Store a rate card of the tenant, for its prices."""
    card = sample(apps.get_model("billing.RateCard"), tenant_id, number=number)
    card.__dict__.update(name=f"{number} {tenant_id}"[:60])
    card.save(force_insert=True)
    return int(card.pk)


def a_price(tenant_id: str, number: int) -> int:
    """Store the price of a missing offering, for its quote."""
    version = sample(apps.get_model("billing.PriceVersion"), tenant_id, number=number)
    version.save(force_insert=True)
    return int(version.pk)


# Label of a model: fields that its constraints want otherwise than `value` guesses, or what makes them.
PARTICULAR: dict[str, dict[str, Any]] = {
    "tenants.ApiToken": {"user_id": "usr_x", "expires_at": AT + timedelta(days=1)},
    "broker.LaunchTemplate": {"shape": "session"},
    "broker.Transition": {
        "lease_id": a_lease,
        "seq": 0,
        "prev_seq": None,
        "prev_at": None,
        "after": "requested",
    },
    "broker.VolumeSizeChange": {
        "volume_id": a_volume,
        "seq": 0,
        "prev_seq": None,
        "prev_at": None,
        "prev_gib": None,
    },
    "billing.StoredDocument": {"invoice_id": an_issued_invoice, "credit_note_id": None},
    "billing.TopUp": {"due_at": AT},
    "billing.Refund": {"payment_id": a_succeeded_payment, "gateway": "x", "due_at": AT},
    "billing.Payment": {"invoice_id": a_final_invoice, "due_at": AT},
    "billing.BankReceipt": {"idem": lambda _, number: f"{number} {next(_names)}"},
    "billing.BankReceiptPart": {"receipt_id": a_receipt, "invoice_id": a_final_invoice},
    "billing.WriteOff": {"invoice_id": a_final_invoice},
    "billing.CreditNote": {
        "invoice_id": a_credited_invoice,
        "series": lambda of, _: of[-20:],
        "number": lambda _, n: n,
    },
    "billing.CreditNoteLine": {"credit_note_id": a_credit_note, "line_id": the_line_of_it},
    "billing.InvoiceTax": {"rate_bp": 1900},
    "billing.DunningStep": {"action": "remind"},
    "billing.Grant": {"idem": lambda _, number: f"{number} {next(_names)}"},
    "billing.GrantDraw": {
        "grant_id": a_grant,
        "invoice_id": a_draft_with_a_line,
        "line_id": the_line_of_the_draft,
    },
    "billing.Correction": {
        "kind": "lease",
        "lease_id": "lse_x",
        "price_version_id": None,
        "nano_per_hour": None,
        "until": AT + timedelta(days=1),
        "approver_id": None,
        "second_approver_id": None,
    },
    "billing.CorrectedInterval": {"e": AT + timedelta(days=1)},
    "billing.DisputeStep": {"n": 0, "status": "open"},
    "billing.GrantReturn": {"credit_note_id": a_note_to_a_grant, "grant_id": the_grant_of_it},
    "billing.GrantExpiry": {"grant_id": a_grant_that_ended, "minor": 0},
    "billing.BalanceDraw": {"invoice_id": a_draft},
    "billing.TokenCap": {"token_id": lambda tenant_id, number: f"tok_{number}{next(_names)}"},
    "billing.TokenCapPart": {"of_id": a_capped_lease, "day_id": the_day_of_it},
    "billing.BudgetAlert": {"measure": "spent"},
    "billing.BudgetStop": {"what": "all"},
    "billing.HoldPart": {"hold_id": a_hold, "month_id": a_month_of_a_budget},
    "billing.WalletPart": {"hold_id": None, "wallet_id": a_wallet},
    "billing.AccountBalance": {"account_id": lambda tenant_id, number: 10**6 + number},
    "billing.LedgerTransfer": {
        "debit_account_id": an_account("receivable"),
        "credit_account_id": an_account("accrued"),
        "ref": "x",
        "idem": lambda tenant_id, number: f"x:{number}{tenant_id}",
    },
    "billing.PriceVersion": {"rate_card_id": a_card},
    "billing.Quote": {"price_version_id": a_price, "expires_at": AT + timedelta(hours=1)},
    "billing.Discount": {"percent_bp": 1000, "first_month": "2026-11"},
    "billing.Minimum": {"currency": "EUR"},
    "billing.Commitment": {"currency": "EUR"},
    "billing.InvoiceAdjustment": {"kind": "minimum"},
    "billing.RatedCharge": {"e": AT + timedelta(hours=1), "correction_id": ""},
}


def tenant_models() -> list[type[models.Model]]:
    """Return every model whose rows belong to a tenant, and the tenant itself."""
    return [
        model
        for name in APPS
        for model in apps.get_app_config(name).get_models()
        if (model is Tenant or column_of(model)) and model._meta.db_table not in WITHOUT_TENANT_POLICY
    ]


def column_of(model: type[models.Model]) -> str:
    """Return the tenant column of a model, if any."""
    if model is Tenant:
        return "id"
    return next((f.column for f in model._meta.concrete_fields if f.column == "tenant_id"), "")


def value(field: Any) -> Any:
    """Return a valid value of a field."""
    if field.null:
        return None
    if field.has_default():
        return field.get_default()
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, ArrayField):
        return []
    if isinstance(field, DateTimeRangeField):
        return DateTimeTZRange(AT, AT + timedelta(hours=1))
    if isinstance(field, IntegerRangeField):
        return NumericRange(0, 1)
    guesses: list[tuple[type[models.Field[Any, Any]], Any]] = [
        (models.DateTimeField, AT),
        (models.DateField, date(2026, 11, 21)),
        (models.BooleanField, False),
        (models.JSONField, {}),
        (models.BinaryField, b"x"),
        (models.DecimalField, Decimal(1)),
        (models.EmailField, "x@example.org"),
        (models.IntegerField, 1),
        (models.CharField, "x"),
        (models.TextField, "x"),
    ]
    return next(guess for kind, guess in guesses if isinstance(field, kind))


def sample(model: type[models.Model], tenant_id: str, *, number: int = 1) -> models.Model:
    """Return an unsaved row of this model for a tenant."""
    particular = PARTICULAR.get(model._meta.label, {})
    given: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.attname in particular:
            wanted = particular[field.attname]
            given[field.attname] = wanted(tenant_id, number) if callable(wanted) else wanted
        elif field.column == column_of(model):
            given[field.attname] = tenant_id
        elif field.primary_key and not field.has_default():
            if not isinstance(field, models.AutoField):
                given[field.attname] = f"row-{number}-{tenant_id}"[:40]
        elif field.unique and isinstance(field, models.CharField) and not field.has_default():
            given[field.attname] = f"{number}{tenant_id}"[-(field.max_length or 40) + 1 :] + str(number)
        elif field.name.endswith("_id") and not field.null:  # a key without a constraint
            given[field.attname] = f"x{number}" if isinstance(field, models.CharField) else number
        elif field.is_relation:
            target = field.target_field
            key = number if isinstance(target, models.IntegerField) else f"x-{number}-{tenant_id}"[:40]
            given[field.attname] = None if field.null else key
        else:
            given[field.attname] = value(field)
    return model(**given)
