"""Close a month: charge its last seconds, number its invoice and make it final.

A final invoice never changes again.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Exists, OuterRef, Q

from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceStatus
from billing.models.periods import CLOSED, OPEN
from billing.services.adjustments import adjustment_facts, month_adjustments
from billing.services.adjustments.month_adjustments import AdjustmentFailed
from billing.services.funds.wallets import month_end_overruns, prepaid_holds, wallet_balances
from billing.services.invoicing import carried_credits, drafts, finalization
from billing.services.invoicing.month_close import batch_close
from billing.services.ledger import posting
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating, storage_rating
from billing.services.rating.lease_rating import PriceGap, UnratedInterval
from billing.services.tax import tax_rates
from billing.services.tax.tax_determination import is_showback
from billing.services.tax.tax_rates import MissingTaxRate
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, StaleLease
from tenants.models import Tenant
from tenants.services.errors import ObjectNotFound, ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
# Leases on a node that became unreachable before midnight end up to half a minute later, backdated; and a
# transaction that began before midnight has ended by then.
CLOSING_GRACE = timedelta(minutes=5)
MAX_TICK_TRIES = 5


class MonthNotOver(ProblemError):
    code, status, title = "month-not-over", 409, "The month is not over"


class MonthInReview(ProblemError):
    code, status, title = "month-in-review", 409, "The month is being reviewed"


@dataclass(frozen=True, slots=True)
class MonthWaiting:
    """A month that could not be closed yet; the next run tries again."""

    tenant_id: str
    label: str
    why: str
    broken: bool = False  # it waits for a person, not for a lease


@dataclass(frozen=True, slots=True)
class CloseResult:
    """Result of a run: months closed, price gaps, and months that still wait."""

    months: int = 0
    gaps: tuple[UnratedInterval, ...] = ()
    waiting: tuple[MonthWaiting, ...] = ()


def close_period(tenant: Tenant, label: str, *, now: datetime) -> Invoice | None:
    """Close one month; return its final invoice, or None if nothing was used.

    Repeating it does nothing. Raises MonthNotOver before the month ends, MonthInReview while it is held or
    reviewed, PriceGap if some usage has no price, MissingTaxRate if a tax rate is missing, AdjustmentFailed if
    an agreement cannot be computed, and StaleLease while it is unknown until when a lease ran.
    """
    with tenant_scope(tenant.pk):
        month = BillingPeriod.objects.select_for_update(no_key=True).filter(tenant=tenant, label=label).first()
        if month is None:
            raise ObjectNotFound(f"Month {label} was not found.", fix="List the invoices to see the available months.")
        if month.status == OPEN:
            _check_month_over(month, now)
            _check_reviewed(month, now)
            _close_month(tenant, month, now)
        return Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=month).first()


def close_due_months(*, now: datetime, most: int | None = None) -> CloseResult:
    """Close every month that is over, or at most that many.

    A month that cannot be closed blocks only its own tenant.
    """
    closed, gaps, waits, held = 0, list[UnratedInterval](), list[MonthWaiting](), set[str]()
    billing_periods.create_missing_periods(now=now)
    _begin_reviews(now)
    due = _due_months(now)
    if most is None:
        closed = batch_close.close_simple_months(due, charge_until=_charge_until, now=now)
        open_still = set(_due_months(now)) if closed else set(due)
        due = [each for each in due if each in open_still]
    for tenant_id, label in due:
        if closed == most:
            break
        if tenant_id in held:
            continue
        try:
            _settle_prepaid_usage(tenant_id, label, now)
            with tenant_scope(tenant_id):
                close_period(Tenant.objects.get(pk=tenant_id), label, now=now)
        except PriceGap as gap:
            gaps += gap.gaps
            held.add(tenant_id)
        except (StaleLease, MissingTaxRate, AdjustmentFailed, MonthInReview, DatabaseError) as unsettled:
            waits.append(_record_waiting(tenant_id, label, unsettled))
            held.add(tenant_id)
        else:
            closed += 1
    return CloseResult(closed, tuple(gaps), tuple(waits))


def _record_waiting(tenant_id: str, label: str, why: Exception) -> MonthWaiting:
    """Return why a month cannot be closed yet.

    A reason that only a person can resolve is stored with the month, where the checklist shows it.
    """
    found = MonthWaiting(tenant_id, label, str(why).strip(), broken=not isinstance(why, StaleLease))
    if found.broken:
        billing_periods.record_blocked_reason(tenant_id, label, found.why)
    return found


def _due_months(now: datetime) -> list[tuple[str, str]]:
    with system_scope():
        over = BillingPeriod.objects.filter(
            Q(approved_at__isnull=False)
            | Q(revision=0, span__endswith__lte=now - CLOSING_GRACE - review_time())
            | Q(revision__gt=0, review_since__lte=now - review_time()),
            status=OPEN,
            held_at=None,
            span__endswith__lte=now - CLOSING_GRACE,
        )
        return list(over.order_by("span", "tenant").values_list("tenant_id", "label"))


def review_time() -> timedelta:
    """Return how long a month is reviewed before its invoice is final."""
    return timedelta(hours=settings.INVOICE_REVIEW_HOURS)


def review_ends_at(month: BillingPeriod) -> datetime:
    """Return when a month closes unless somebody holds it; opened again, it is reviewed again."""
    if month.revision and month.review_since:
        return month.review_since.astimezone(UTC) + review_time()
    end: datetime = month.span.upper.astimezone(UTC)  # adding days in another zone follows its clock changes
    return end + CLOSING_GRACE + review_time()


def _begin_reviews(now: datetime) -> None:
    """Charge months that are over up to their end.

    So the draft that is reviewed is complete.
    """
    if not settings.INVOICE_REVIEW_HOURS:
        return
    with system_scope():
        over = BillingPeriod.objects.filter(status=OPEN, review_since=None, span__endswith__lte=now - CLOSING_GRACE)
        found = list(over.order_by("span", "tenant").values_list("tenant_id", "label"))
    for tenant_id, label in found:
        with suppress(PriceGap, StaleLease, AdjustmentFailed, DatabaseError), tenant_scope(tenant_id):
            tenant = Tenant.objects.get(pk=tenant_id)
            month = BillingPeriod.objects.select_for_update(no_key=True).get(tenant=tenant, label=label)
            _charge_until(tenant, month.span.upper, now)
            drafts.refresh_drafts(tenant, now=now)
            BillingPeriod.objects.filter(pk=month.pk).update(review_since=now)


def _settle_prepaid_usage(tenant_id: str, label: str, now: datetime) -> None:
    """Charge a prepaid tenant's month, and write off usage that it had no money for.

    Runs in transactions of its own, because the invoice is built from what they wrote.
    """
    with tenant_scope(tenant_id):
        if not wallet_balances.is_prepaid(tenant_id):
            return
        tenant = Tenant.objects.get(pk=tenant_id)
        month = BillingPeriod.objects.get(tenant=tenant, label=label)
        _charge_until(tenant, month.span.upper, now)
    month_end_overruns.settle_month_holds(tenant, month, now=now)


def _check_month_over(month: BillingPeriod, now: datetime) -> None:
    end = month.span.upper
    if now < end + CLOSING_GRACE:
        raise MonthNotOver(
            f"{month.label} ends at {end.isoformat()} and is closed {CLOSING_GRACE.seconds // 60} minutes later.",
            fix="Wait until then. The draft shows the amounts so far.",
        )


def _check_reviewed(month: BillingPeriod, now: datetime) -> None:
    if month.held_at:
        raise MonthInReview(f"{month.label} is held: {month.held_reason}", fix="Approve it to close it.")
    if month.approved_at is None and now < (ends := review_ends_at(month)):
        raise MonthInReview(
            f"{month.label} is reviewed until {ends.isoformat()}.", fix="Wait until then, or approve it now."
        )


def _close_month(tenant: Tenant, month: BillingPeriod, now: datetime) -> None:
    unobserved = _charge_until(tenant, month.span.upper, now)
    billing_periods.ensure_periods(tenant, since=month.span.lower, until=now)  # late usage must find an open month
    drafts.refresh_drafts(tenant, now=now, closes=month)
    invoice = _take_draft(month)
    if invoice:
        tax_rates.check_tax_known(invoice)
        invoice.unobserved_leases = unobserved
        finalize = finalization.finalize_report if is_showback(tenant.pk) else finalization.finalize_invoice
        finalize(invoice, tenant, month, now)
    prepaid_holds.release_invoiced_month(month)
    month.status, month.closed_at = CLOSED, now
    month.blocked_reason = ""
    month.save(update_fields=["status", "closed_at", "blocked_reason"])
    if invoice and invoice.status != InvoiceStatus.REPORTED:
        posting.post_invoices([invoice.pk], now=now)
        carried_credits.credit_again(invoice, now=now)


def _take_draft(month: BillingPeriod) -> Invoice | None:
    """Return the draft that becomes final.

    One that says nothing is deleted, since it would take a number.
    """
    lines = InvoiceLine.objects.filter(invoice=OuterRef("pk"))
    rows = Invoice.objects.filter(period=month, status=InvoiceStatus.DRAFT).select_related("period")
    found = rows.annotate(says_something=Exists(lines), agreed_on=adjustment_facts.HAS_AGREEMENTS).first()
    if found and (not found.says_something or (found.total == 0 and not settings.ZERO_INVOICES)):
        found.delete()
        return None
    if found and (found.agreed_on or month_adjustments.has_terms(found.tenant_id)):
        adjustment_facts.store_agreements(found)
    return found


def _charge_until(tenant: Tenant, boundary: datetime, now: datetime) -> list[str]:
    """Charge the usage of leases and volumes up to the boundary.

    Returns the leases that are left out, because they have not been observed since for too long.
    """
    unobserved = _split_running_leases(tenant, boundary, now)
    lease_rating.rate_tenant_leases(tenant, now=now)
    storage_rating.close_open_intervals(tenant, at=boundary)
    storage_rating.rate_tenant_volumes(tenant, now=now)
    return unobserved


def _split_running_leases(tenant: Tenant, boundary: datetime, now: datetime) -> list[str]:
    """Split the open interval of every lease that runs across the boundary.

    This month's part can then be charged. Returns the leases that the month does not wait for any longer.
    """
    for _ in range(MAX_TICK_TRIES):
        running = Lease.objects.select_related("offering").filter(
            tenant=tenant, state=LeaseState.ACTIVE, state_since__lt=boundary
        )
        stale = [lease for lease in running if not lease.add_metering_tick(at=boundary)]
        if not stale:
            return []
    wait = timedelta(hours=settings.MONTH_CLOSE_UNOBSERVED_HOURS)
    if wait and now >= boundary.astimezone(UTC) + CLOSING_GRACE + wait:
        log.warning("month closes without unobserved leases", tenant=tenant.pk, leases=len(stale))
        return sorted(lease.pk for lease in stale)
    first = min(lease.pk for lease in stale)
    raise StaleLease(
        f"{len(stale)} active leases, {first} the first, have no heartbeat since {boundary.isoformat()} yet or"
        " changed state while they were processed; the next run tries again"
    )
