"""Finalization of invoices, one or many: number, parties, dates and what pays them."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection
from django.db.models import F

from billing.domain.periods import deadline_after
from billing.models import BalanceDraw, BillingPeriod, Invoice, InvoiceSeries, InvoiceStatus
from billing.services.funds.grants import grant_payments
from billing.services.ledger import ledger_balances
from billing.services.notifications import email_queue
from billing.services.tax import tax_determination
from ports import payments
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import BILLING

REPORT_PREFIX = "R-"  # of the series of reports


def finalize_invoice(invoice: Invoice, tenant: Tenant, month: BillingPeriod, now: datetime) -> None:
    """Number the invoice, store both parties, and settle it from grants, then the balance."""
    invoice.series, invoice.number = month.label, take_numbers(month.label)
    for name, value in _shared_values(now).items():
        setattr(invoice, name, value)
    invoice.customer = tax_determination.get_customer(tenant).as_dict()
    invoice.po_number = tax_determination.get_po_numbers([tenant]).get(tenant.pk, "")
    invoice.disputable_until = _disputable_until(month, now)
    invoice.status, invoice.finalized_at = InvoiceStatus.FINALIZED, now
    # Grants first: the database checks `settled` against the draws.
    granted = grant_payments.draw_grants(invoice, month, now=now)
    own = min(ledger_balances.available_balance(invoice.tenant_id, invoice.currency), max(invoice.total - granted, 0))
    if own:
        BalanceDraw.objects.create(tenant_id=invoice.tenant_id, invoice=invoice, minor=own, at=now)
    invoice.settled = granted + own
    invoice.save()
    email_queue.enqueue_email("invoice-final", invoice.pk, tenant_id=invoice.tenant_id, now=now)
    audit.record(
        "invoice.finalize",
        invoice,
        actor=BILLING,
        now=now,
        total=invoice.total,
        currency=invoice.currency,
        **({"settled": invoice.settled} if invoice.settled else {}),
        **({"granted": granted} if granted else {}),
    )


def finalize_report(invoice: Invoice, tenant: Tenant, month: BillingPeriod, now: datetime) -> None:
    """Number a report of costs, which nobody pays.

    It has a series of its own and no ledger entry.
    """
    invoice.series = f"{REPORT_PREFIX}{month.label}"
    invoice.number = take_numbers(invoice.series)
    invoice.customer = tax_determination.get_customer(tenant).as_dict()
    invoice.status, invoice.finalized_at = InvoiceStatus.REPORTED, now
    invoice.save()
    email_queue.enqueue_email("invoice-final", invoice.pk, tenant_id=invoice.tenant_id, now=now)
    audit.record("invoice.report", invoice, actor=BILLING, now=now, total=invoice.total, currency=invoice.currency)


def finalize_invoices(invoices: Sequence[Invoice], tenants: Sequence[Tenant], label: str, now: datetime) -> None:
    """Finalize many tenants' invoices of a month, none of which grants or a balance pay."""
    if not invoices:
        return
    customers, orders = tax_determination.get_customers(tenants), tax_determination.get_po_numbers(tenants)
    first = take_numbers(label, count=len(invoices))
    for number, invoice in enumerate(invoices, first):
        invoice.series, invoice.number = label, number
    final = [
        {
            "id": invoice.pk,
            "number": invoice.number,
            "customer": customers[invoice.tenant_id].as_dict(),
            "po_number": orders.get(invoice.tenant_id, ""),
            "until": until.isoformat() if (until := _disputable_until(invoice.period, now)) else None,
        }
        for invoice in invoices
    ]
    values = {"final": json.dumps(final), "series": label, "now": now, **_shared_values(now)}
    for name in ("supplier", "bank_account"):
        values[name] = json.dumps(values[name]) if values[name] else None
    with connection.cursor() as cursor:
        cursor.execute(load_sql("billing/invoicing/finalize_invoices"), values)
    email_queue.enqueue_emails("invoice-final", [(each.tenant_id, each.pk) for each in invoices], now=now)
    audit.record_each(
        "invoice.finalize",
        [
            audit.AuditSubject(each.tenant_id, each.pk, str(each), {"total": each.total, "currency": each.currency})
            for each in invoices
        ],
        actor=BILLING,
        now=now,
    )


def take_numbers(series: str, *, count: int = 1) -> int:
    """Take the next number of a series, or the first of `count`.

    The row stays locked, so that concurrent callers wait. A rollback returns the numbers.
    """
    InvoiceSeries.objects.get_or_create(series=series)
    number = InvoiceSeries.objects.select_for_update().get(series=series).next_number
    InvoiceSeries.objects.filter(series=series).update(next_number=F("next_number") + count)
    return number


def _shared_values(now: datetime) -> dict[str, Any]:
    """Return the values shared by all invoices that become final at one time."""
    by, bank = tax_determination.get_supplier(), tax_determination.get_bank_account()
    return {
        "supplier": by.as_dict() if by else None,
        "bank_account": bank.as_dict() if bank else None,
        "due_at": now + timedelta(days=settings.PAYMENT_TERM_DAYS),
        "collected": payments.gateway() is not None,
    }


def _disputable_until(month: BillingPeriod, now: datetime) -> datetime | None:
    """Return the dispute deadline of the month's invoice; None if disputes are off."""
    days = settings.DISPUTE_WINDOW_DAYS
    return deadline_after(now, ZoneInfo(month.time_zone), days=days) if days else None
