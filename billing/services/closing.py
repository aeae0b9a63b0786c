"""The end of a month: its last seconds are charged, its invoice gets a number and never changes again."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Exists, OuterRef

from billing.models import BalanceDraw, BillingPeriod, Invoice, InvoiceLine, InvoiceStatus
from billing.models.periods import CLOSED, OPEN
from billing.services import closing_in_sets, drafts, finalizing, numbering, periods, rating, reaching
from billing.services.finalizing import BILLING
from billing.services.funds import before_closing
from billing.services.grants import drawing
from billing.services.ledger import books, posting
from billing.services.month_charges import facts
from billing.services.month_charges.reckoning import Unreckonable
from billing.services.post import queue
from billing.services.rating import Gap, PriceGap
from billing.services.storage import charging
from billing.services.tax import rates, standings
from billing.services.tax.rates import TaxGap
from billing.services.wallets import covering, money
from broker.domain.states import LeaseState
from broker.models import Lease, StaleLease
from broker.services.leases import ticks
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.refusals import Missing, Refused
from tenants.services.walls import as_sweep, as_tenant

# A node that went silent before midnight ends its leases up to half a minute later, dated back; and a
# transaction that began before midnight has ended by then.
GRACE = timedelta(minutes=5)
TRIES = 5


class MonthNotOver(Refused):
    code, status, title = "month-not-over", 409, "This month is not over"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A month that could not be cut yet; the next run tries again."""

    tenant_id: str
    label: str
    why: str
    broken: bool = False  # it waits for no lease, but for a person: something of it cannot be


@dataclass(frozen=True, slots=True)
class Closed:
    """What a run closed, which gaps keep whose month open, and which months wait for their leases."""

    months: int = 0
    gaps: tuple[Gap, ...] = ()
    waiting: tuple[Waiting, ...] = ()


def close_period(tenant: Tenant, label: str, *, now: datetime) -> Invoice | None:
    """Close one month and return its final invoice, or None when nothing was used. Repeating it does nothing.

    Raises MonthNotOver before the month is, PriceGap when seconds of it have no price, TaxGap when tax is owed at a
    rate that nobody knows, Unreckonable when what was agreed cannot be worked out, StaleLease while it is not certain
    up to when a lease of it has lived.
    """
    with as_tenant(tenant.pk):
        month = (
            BillingPeriod.objects.select_for_update(no_key=True).filter(tenant=tenant, label=label).first()
        )
        if month is None:
            raise Missing(
                f"There is no month {label}.", fix="List the invoices to see which months there are."
            )
        if month.status == OPEN:
            _check_over(month, now)
            _close(tenant, month, now)
        return Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=month).first()


def close_due(*, now: datetime, most: int | None = None) -> Closed:
    """Close every month that is over, or so many of them; one that cannot be closed holds up only its own tenant."""
    closed, gaps, waits, held = 0, list[Gap](), list[Waiting](), set[str]()
    reaching.reach(now=now)
    due = _due(now)
    if most is None:
        closed = closing_in_sets.close(due, meter=_meter, now=now)
        open_still = set(_due(now)) if closed else set(due)
        due = [each for each in due if each in open_still]
    for tenant_id, label in due:
        if closed == most:
            break
        if tenant_id in held:
            continue
        try:
            _count(tenant_id, label, now)
            with as_tenant(tenant_id):
                close_period(Tenant.objects.get(pk=tenant_id), label, now=now)
        except PriceGap as gap:
            gaps += gap.gaps
            held.add(tenant_id)
        except (StaleLease, TaxGap, Unreckonable, DatabaseError) as unsettled:
            waits.append(_waits(tenant_id, label, unsettled))
            held.add(tenant_id)
        else:
            closed += 1
    return Closed(closed, tuple(gaps), tuple(waits))


def _waits(tenant_id: str, label: str, why: Exception) -> Waiting:
    """Return what a month waits for; what only a person can mend is kept with it, where the checklist finds it."""
    found = Waiting(tenant_id, label, str(why).strip(), broken=not isinstance(why, StaleLease))
    if found.broken:
        periods.hold_up(tenant_id, label, found.why)
    return found


def _due(now: datetime) -> list[tuple[str, str]]:
    with as_sweep():
        over = BillingPeriod.objects.filter(status=OPEN, span__endswith__lte=now - GRACE)
        return list(over.order_by("span", "tenant").values_list("tenant_id", "label"))


def _count(tenant_id: str, label: str, now: datetime) -> None:
    """Charge all of a month, and let whoever pays beforehand pay no more of it than there was money for.

    In transactions of their own, for the invoice is one of what they wrote.
    """
    with as_tenant(tenant_id):
        if not money.is_prepaid(tenant_id):
            return
        tenant = Tenant.objects.get(pk=tenant_id)
        month = BillingPeriod.objects.get(tenant=tenant, label=label)
        _meter(tenant, month.span.upper, now)
    before_closing.settle(tenant, month, now=now)


def _check_over(month: BillingPeriod, now: datetime) -> None:
    end = month.span.upper
    if now < end + GRACE:
        raise MonthNotOver(
            f"{month.label} ends at {end.isoformat()} and is closed {GRACE.seconds // 60} minutes later.",
            fix="Wait until then; the draft shows what it has come to so far.",
        )


def _close(tenant: Tenant, month: BillingPeriod, now: datetime) -> None:
    _meter(tenant, month.span.upper, now)
    periods.ensure(tenant, since=month.span.lower, until=now)  # whatever comes late must find an open month
    drafts.refresh(tenant, now=now, closes=month)
    invoice = _drafted(month)
    if invoice:
        rates.check_known(invoice)
        _finalize(invoice, tenant, month, now)
    covering.invoiced(month)
    month.status, month.closed_at = CLOSED, now
    month.held_up = ""
    month.save(update_fields=["status", "closed_at", "held_up"])
    if invoice:
        posting.finalized([invoice.pk], now=now)


def _drafted(month: BillingPeriod) -> Invoice | None:
    """Return the draft that becomes final; one that says nothing goes, for it would take a number."""
    lines = InvoiceLine.objects.filter(invoice=OuterRef("pk"))
    rows = Invoice.objects.filter(period=month, status=InvoiceStatus.DRAFT).select_related("period")
    found = rows.annotate(says_something=Exists(lines), agreed_on=facts.AGREED_ON).first()
    if found and not found.says_something:
        found.delete()
        return None
    if found and found.agreed_on:
        facts.keep(found)
    return found


def _meter(tenant: Tenant, border: datetime, now: datetime) -> None:
    """Charge everything up to the border: leases and volumes."""
    _tick(tenant, border)
    rating.rate_tenant(tenant, now=now)
    charging.cut(tenant, at=border)
    charging.rate_tenant(tenant, now=now)


def _tick(tenant: Tenant, border: datetime) -> None:
    """Cut the open stretch of every lease that runs across the border, so that this month's part can be charged."""
    for _ in range(TRIES):
        running = Lease.objects.select_related("offering").filter(
            tenant=tenant, state=LeaseState.ACTIVE, at__lt=border
        )
        stale = [lease for lease in running if not ticks.tick(lease, at=border)]
        if not stale:
            return
    first = min(lease.pk for lease in stale)
    raise StaleLease(
        f"{len(stale)} active leases, {first} the first, have no proof of life since {border.isoformat()} yet or"
        " moved each time they were to be cut; the next run tries again"
    )


def _finalize(invoice: Invoice, tenant: Tenant, month: BillingPeriod, now: datetime) -> None:
    """Give the next number of the month's series, keep who is who, and let grants, then the balance, settle it."""
    invoice.series, invoice.number = month.label, numbering.next_of(month.label)
    said = finalizing.final(now)
    invoice.supplier, invoice.due_at, invoice.collected = said.supplier, said.due_at, said.collected
    invoice.customer = standings.customer(tenant).as_dict()
    invoice.disputable_until = finalizing.disputable_until(month, now)
    invoice.status, invoice.finalized_at = InvoiceStatus.FINALIZED, now
    granted = drawing.draw(invoice, month, now=now)  # first, for nothing counts as settled without its draws
    own = min(books.balance(invoice.tenant_id, invoice.currency), max(invoice.total - granted, 0))
    if own:
        BalanceDraw.objects.create(tenant_id=invoice.tenant_id, invoice=invoice, minor=own, at=now)
    invoice.settled = granted + own
    invoice.save()
    queue.put("invoice-final", invoice.pk, tenant_id=invoice.tenant_id, now=now)
    audit.record(
        "invoice.finalize",
        actor=BILLING,
        now=now,
        tenant_id=invoice.tenant_id,
        subject_id=invoice.pk,
        subject_label=str(invoice),
        total=invoice.total,
        currency=invoice.currency,
        **({"settled": invoice.settled} if invoice.settled else {}),
        **({"granted": granted} if granted else {}),
    )
