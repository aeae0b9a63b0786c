"""Months that are plain are closed together: some hundred tenants' at once, in a handful of statements.

Plain is a month of which nothing has to be decided lease by lease or line by line: whoever pays by invoice, from no
grant and no balance, with nothing that the month adds or takes off, and nothing of it still running or uncharged.
Whatever is not plain, and every month of a set that PostgreSQL refuses, is left to `closing`, which closes one month in
one transaction and says what is in its way. Both write the same rows (tests/billing/services/test_closing_in_sets.py).
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import groupby

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, OuterRef

from billing.domain.tax import TAXED
from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceStatus, InvoiceTax
from billing.models.periods import CLOSED, OPEN
from billing.services import drafts, finalizing, numbering, periods, rating, turns
from billing.services.ledger import posting
from billing.services.post import queue
from billing.services.rating import PriceGap
from billing.services.statements import statement
from billing.services.storage import charging
from billing.services.tax import standings
from broker.models import StaleLease
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.walls import as_shard, as_sweep, as_tenant

SHARD = 500  # the months of a set: what one transaction writes, and what is done again where it fails
Due = tuple[str, str]  # whose month, and its label
Meter = Callable[[Tenant, datetime, datetime], None]
log = structlog.get_logger(__name__)


def close(due: Iterable[Due], *, meter: Meter, now: datetime) -> int:
    """Close what is plain of these months, the earlier ones first; return how many. The rest stays as it is."""
    due, closed = list(due), 0
    run = rating.run_at(now) if due else 0
    for label, months in groupby(due, key=lambda each: each[1]):
        tenants = [tenant_id for tenant_id, _ in months]
        for first in range(0, len(tenants), SHARD):
            shard = tenants[first : first + SHARD]
            _count(shard, label, meter, now)
            try:
                closed += _close(shard, label, run, now)
            except DatabaseError as refused:
                log.warning("months are closed one by one", label=label, why=str(refused).strip())
    return closed


def _count(shard: Sequence[str], label: str, meter: Meter, now: datetime) -> None:
    """Cut what runs across the end of a month and charge it, each tenant in a transaction of its own."""
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(statement("closing_running"), {"tenants": list(shard), "label": label})
        running = cursor.fetchall()
    for tenant_id, border in running:
        with suppress(PriceGap, StaleLease, DatabaseError), as_tenant(tenant_id):  # its own close says so
            meter(Tenant.objects.get(pk=tenant_id), border, now)


def _close(shard: Sequence[str], label: str, run: int, now: datetime) -> int:
    with as_shard(shard):
        _plan_anew()
        rows = BillingPeriod.objects.select_for_update(no_key=True, skip_locked=True)
        locked = rows.filter(tenant__in=shard, label=label, status=OPEN).order_by("tenant")
        months = {month.tenant_id: month for month in locked}
        turns.take()  # nobody charges or changes a price before this is over
        tenants = _plain(months, label)
        tenants -= rating.rate_some(tenants, run=run)
        tenants -= charging.with_news(tenants)
        owners = list(Tenant.objects.filter(pk__in=tenants).order_by("pk"))
        periods.follow([(tenant, months[tenant.pk]) for tenant in owners], until=now)
        drafts.refresh_plain(owners, now=now)
        closes = {month.pk for tenant_id, month in months.items() if tenant_id in tenants}
        final, unready = _drafts(closes)
        _finalize(final, owners, label, now)
        closes -= unready
        BillingPeriod.objects.filter(pk__in=closes).update(status=CLOSED, closed_at=now, held_up="")
        posting.finalized([invoice.pk for invoice in final], now=now)
    return len(closes)


def _plan_anew() -> None:
    """Have PostgreSQL plan for the tables as they are now, and by their indexes.

    What triggers and foreign keys ask is planned once a session. Planned while a table was empty, every later set would
    read all that earlier ones wrote, row by row; the tables grow by a set faster than anybody counts them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; DISCARD PLANS")


def _plain(months: Collection[str], label: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(statement("closing_plain"), {"tenants": list(months), "label": label})
        return {tenant_id for (tenant_id,) in cursor.fetchall()}


def _drafts(months: Collection[int]) -> tuple[list[Invoice], set[int]]:
    """Return the drafts that can be final, and the months of those without a line and of an unknown rate of tax."""
    lines = InvoiceLine.objects.filter(invoice=OuterRef("pk"))
    unknown = InvoiceTax.objects.filter(invoice=OuterRef("pk"), rate_bp=None).exclude(net=0)
    rows = Invoice.objects.filter(period__in=months, status=InvoiceStatus.DRAFT).select_related("period")
    found = list(
        rows.annotate(lined=Exists(lines), untold=Exists(unknown)).order_by("period__span", "tenant")
    )
    ready: list[Invoice] = [
        each for each in found if each.lined and not (each.untold and each.treatment in TAXED)
    ]
    return ready, {each.period_id for each in found} - {each.period_id for each in ready}


def _finalize(invoices: Sequence[Invoice], tenants: Sequence[Tenant], label: str, now: datetime) -> None:
    if not invoices:
        return
    said = finalizing.final(now)
    customers = standings.customers(tenants)
    first = numbering.next_of(label, count=len(invoices))
    for number, invoice in enumerate(invoices, first):
        invoice.series, invoice.number = label, number
    told = [
        {
            "id": invoice.pk,
            "number": invoice.number,
            "customer": customers[invoice.tenant_id].as_dict(),
            "until": until.isoformat()
            if (until := finalizing.disputable_until(invoice.period, now))
            else None,
        }
        for invoice in invoices
    ]
    asked = {
        "final": json.dumps(told),
        "series": label,
        "supplier": json.dumps(said.supplier) if said.supplier else None,
        "due_at": said.due_at,
        "collected": said.collected,
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("closing_final"), asked)
    queue.put_all("invoice-final", [(each.tenant_id, each.pk) for each in invoices], now=now)
    audit.record_each(
        "invoice.finalize",
        [
            audit.Subject(
                each.tenant_id, each.pk, str(each), {"total": each.total, "currency": each.currency}
            )
            for each in invoices
        ],
        actor=finalizing.BILLING,
        now=now,
    )
