"""Close simple months in batches of some hundred tenants, with a few statements each.

A month is simple if nothing in it needs a decision per lease or per line: no earlier month is open,
the tenant pays by invoice, has no grants and no balance, the month has no adjustments, and nothing
of it still runs or is uncharged. All other months, and every month of a batch that PostgreSQL
refuses, are left to `close_month`, which closes one month per transaction and says what blocks it.
Both write the same rows (tests/billing/month_close/test_batch_close.py).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import groupby

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Exists, OuterRef

from billing.domain.tax import TAXED_TREATMENTS
from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceStatus, InvoiceTax
from billing.models.periods import CLOSED, OPEN
from billing.services.invoicing import drafts, finalization
from billing.services.ledger import posting
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating, storage_rating
from billing.services.rating.lease_rating import PriceGap
from billing.services.tax.tax_determination import find_showback_tenants
from broker.models import StaleLease
from ports.postgres.sql_statements import query_rows
from tenants.models import Tenant
from tenants.services.rls import batch_scope, system_scope, tenant_scope

BATCH_SIZE = 500  # months per batch: what one transaction writes, and what is redone if it fails
DueMonth = tuple[str, str]  # tenant, label of the month
ChargeUntil = Callable[[Tenant, datetime, datetime], object]
log = structlog.get_logger(__name__)


def close_simple_months(due: Iterable[DueMonth], *, charge_until: ChargeUntil, now: datetime) -> int:
    """Close the simple months among these, the earliest first; return how many.

    The others are left unchanged.
    """
    due, closed = list(due), 0
    rating_run = lease_rating.rating_run_at(now) if due else 0
    for label, months in groupby(due, key=lambda each: each[1]):
        tenants = [tenant_id for tenant_id, _ in months]
        for first in range(0, len(tenants), BATCH_SIZE):
            batch = tenants[first : first + BATCH_SIZE]
            _charge_running_leases(batch, label, charge_until, now)
            try:
                closed += _close_batch(batch, label, rating_run, now)
            except DatabaseError as refused:
                log.warning("months are closed individually", label=label, why=str(refused).strip())
    return closed


def _charge_running_leases(batch: Sequence[str], label: str, charge_until: ChargeUntil, now: datetime) -> None:
    """Charge leases that run across the month's end, one transaction per tenant."""
    with system_scope():
        running = query_rows("billing/invoicing/running_at_month_end", tenants=list(batch), label=label)
    for tenant_id, boundary in running:
        with suppress(PriceGap, StaleLease, DatabaseError), tenant_scope(tenant_id):  # its own close reports it
            charge_until(Tenant.objects.get(pk=tenant_id), boundary, now)


def _close_batch(batch: Sequence[str], label: str, rating_run: int, now: datetime) -> int:
    with batch_scope(batch):
        _reset_query_plans()
        rows = BillingPeriod.objects.select_for_update(no_key=True, skip_locked=True)
        locked = rows.filter(tenant__in=batch, label=label, status=OPEN, held_at=None).order_by("tenant")
        months = {month.tenant_id: month for month in locked}
        billing_periods.take_tenant_billing_locks(months)  # nobody charges them or changes a price until this commits
        tenant_ids = _simple_tenants(months, label)
        tenant_ids -= find_showback_tenants(tenant_ids)
        tenant_ids -= lease_rating.rate_leases_of(tenant_ids, run=rating_run)
        tenant_ids -= storage_rating.tenants_with_new_usage(tenant_ids)
        tenants = list(Tenant.objects.filter(pk__in=tenant_ids).order_by("pk"))
        billing_periods.ensure_following_periods([(tenant, months[tenant.pk]) for tenant in tenants], until=now)
        drafts.refresh_simple_drafts(tenants, now=now)
        closing_ids = {month.pk for tenant_id, month in months.items() if tenant_id in tenant_ids}
        final, unready = _split_drafts(closing_ids)
        finalization.finalize_invoices(final, tenants, label, now)
        closing_ids -= unready
        BillingPeriod.objects.filter(pk__in=closing_ids).update(status=CLOSED, closed_at=now, blocked_reason="")
        posting.post_invoices([invoice.pk for invoice in final], now=now)
    return len(closing_ids)


def _reset_query_plans() -> None:
    """Make PostgreSQL discard its cached plans and prefer indexes.

    Queries of triggers and foreign keys are planned once per session. A plan made while a table was
    empty would scan all rows of earlier batches; the tables grow by a batch faster than their
    statistics are refreshed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; DISCARD PLANS")


def _simple_tenants(months: Collection[str], label: str) -> set[str]:
    return {
        tenant_id for (tenant_id,) in query_rows("billing/invoicing/simple_months", tenants=list(months), label=label)
    }


def _split_drafts(months: Collection[int]) -> tuple[list[Invoice], set[int]]:
    """Return the drafts that can become final, and the months of the others.

    The others have no line, a tax rate that is unknown, or come to zero where that is no invoice.
    """
    lines = InvoiceLine.objects.filter(invoice=OuterRef("pk"))
    unknown = InvoiceTax.objects.filter(invoice=OuterRef("pk"), rate_bp=None).exclude(net=0)
    rows = Invoice.objects.filter(period__in=months, status=InvoiceStatus.DRAFT).order_by("period__span", "tenant")
    found = list(rows.select_related("period").annotate(has_lines=Exists(lines), lacks_tax_rate=Exists(unknown)))
    ready: list[Invoice] = [
        each
        for each in found
        if each.has_lines
        and not (each.lacks_tax_rate and each.treatment in TAXED_TREATMENTS)
        and (each.total or settings.ZERO_INVOICES)
    ]
    return ready, {each.period_id for each in found} - {each.period_id for each in ready}
