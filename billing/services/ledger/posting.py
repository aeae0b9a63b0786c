"""Ledger postings: the only place that writes transfers, each exactly once.

A posting is one statement, however many invoices it is about; PostgreSQL updates the balances with
it, locked in the order of their accounts. A transaction posts once, as the last thing it does: two
that post twice could deadlock. Call in the tenant's RLS scope.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from billing.models.ledger import TENANT_TYPES
from ports.postgres.sql_statements import load_sql

MAX_SHOWN = 3


class ConflictingTransfer(Exception):
    """The ledger has a different transfer under this key; a person has to check.

    Nothing was posted.
    """


def post_invoices(invoices: Sequence[str], *, now: datetime) -> int:
    """Post final invoices, and what grants and the balance paid of them.

    Returns the number of transfers; zero if they are already there.
    """
    return _post_rows("billing/ledger/invoice_transfers", invoices, now)


def post_payments(payments: Sequence[str], *, now: datetime) -> int:
    """Post payments that succeeded."""
    return _post_rows("billing/ledger/payment_transfers", payments, now)


def post_credit_notes(notes: Sequence[str], *, now: datetime) -> int:
    """Post credit notes: revenue and debt are reduced."""
    return _post_rows("billing/ledger/credit_note_transfers", notes, now)


def post_topups(topups: Sequence[str], *, now: datetime) -> int:
    """Post top-ups of wallets."""
    return _post_rows("billing/ledger/topup_transfers", topups, now)


def post_bank_receipts(receipts: Sequence[str], *, now: datetime) -> int:
    """Post bank receipts: what they paid of invoices, and the rest to the balance."""
    return _post_rows("billing/ledger/bank_receipt_transfers", receipts, now)


def reverse_bank_receipts(receipts: Sequence[str], *, now: datetime) -> int:
    """Post reversed bank receipts: what they had paid is owed again."""
    return _post_rows("billing/ledger/bank_receipt_reversals", receipts, now)


def post_write_offs(write_offs: Sequence[str], *, now: datetime) -> int:
    """Post write-offs, and those that were undone."""
    return _post_rows("billing/ledger/write_off_transfers", write_offs, now)


def post_refunds(refunds: Sequence[str], *, now: datetime) -> int:
    """Post refunds to the payment cards."""
    return _post_rows("billing/ledger/refund_transfers", refunds, now)


def reverse_refunds(refunds: Sequence[str], *, now: datetime) -> int:
    """Post failed or returned refunds: the money is on the balance again."""
    return _post_rows("billing/ledger/failed_refund_transfers", refunds, now)


def post_grants(grants: Sequence[str], *, now: datetime) -> int:
    """Post granted credit."""
    return _post_rows("billing/ledger/grant_transfers", grants, now)


def post_grant_expiries(grants: Sequence[str], *, now: datetime) -> int:
    """Post what was left of expired grants."""
    return _post_rows("billing/ledger/grant_expiry_transfers", grants, now)


def reverse_invoices(invoices: Sequence[str], *, now: datetime) -> int:
    """Post voided invoices: each of their own transfers is reversed."""
    return _post_rows("billing/ledger/void_transfers", invoices, now)


def _post_rows(rows: str, subjects: Sequence[str], now: datetime) -> int:
    values = {"subjects": list(subjects), "theirs": TENANT_TYPES, "now": now}
    ((wanted, missing, written),) = _run_ledger_sql("billing/ledger/post_transfers", rows, values)
    if missing:
        _run_ledger_sql("billing/ledger/open_accounts", rows, values)
        ((wanted, _, written),) = _run_ledger_sql("billing/ledger/post_transfers", rows, values)
    if written < wanted and (others := _run_ledger_sql("billing/ledger/conflicting_transfers", rows, values)):
        named = ", ".join(idem for (idem,) in others[:MAX_SHOWN])
        raise ConflictingTransfer(f"The ledger has different transfers of {named}.")
    return int(written)


def _run_ledger_sql(name: str, rows: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement about the transfers that these rows require."""
    with connection.cursor() as cursor:
        cursor.execute(load_sql(rows) + load_sql("billing/ledger/requested_transfers") + load_sql(name), values)
        return list(cursor.fetchall())
