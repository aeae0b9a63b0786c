"""Computation of what a correction would book for a tenant; writes nothing.

Runs in the tenant's row-level security scope, while no month of the tenant is being closed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from django.db.models import Sum

from billing.domain.corrections import (
    ChargedInterval,
    LineChange,
    PriceCorrection,
    Window,
    additional_charges,
    price_differences,
    reversed_charges,
    uncharged_windows,
)
from billing.domain.money import exponent_of, to_minor
from billing.models import (
    BillingPeriod,
    CorrectedInterval,
    Correction,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    PriceVersion,
    Quote,
    RatedCharge,
)
from billing.models.corrections import CorrectionKind
from billing.models.periods import OPEN
from billing.services.catalogue import price_list
from billing.services.invoicing import credit_notes
from billing.services.invoicing.corrections import corrected_charges
from billing.services.invoicing.month_close.close_month import CLOSING_GRACE
from billing.services.periods import billing_periods
from broker.domain.lifecycle.lease_transitions import BILLABLE_STATES
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Transition
from tenants.models import Tenant
from tenants.services.errors import InvalidValue

LineKey = tuple[int, str, str, int, bool]  # billed month, project, offering, price version, final


@dataclass(frozen=True, slots=True)
class CorrectionPlan:
    """What would be booked, and the line changes that people see."""

    parts: tuple[ChargedInterval, ...]
    changes: tuple[LineChange, ...]

    @property
    def minor(self) -> int:
        return sum(change.minor for change in self.changes)


def plan_correction(correction: Correction, tenant: Tenant, *, now: datetime) -> CorrectionPlan:
    """Compute what a correction would book for a tenant; raise InvalidValue if impossible."""
    window = correction.since.astimezone(UTC), correction.until.astimezone(UTC)
    if correction.kind == CorrectionKind.PRICE:
        parts = _price_correction_parts(correction, tenant, window)
    else:
        lease = Lease.objects.get(pk=correction.lease_id)
        parts = (
            _additional_parts(lease, tenant, window, now) if correction.charge else _credited_parts(lease, window, now)
        )
    parts = _move_to_open_month(parts, tenant, now)
    return CorrectionPlan(tuple(parts), tuple(_line_changes(parts, tenant)))


def _price_correction_parts(correction: Correction, tenant: Tenant, window: Window) -> list[ChargedInterval]:
    version = correction.price_version
    assert version is not None
    assert correction.nano_per_hour is not None
    leases = set(
        RatedCharge.objects.filter(
            tenant_id=tenant.pk, price_version_id=version.pk, e__gt=window[0], s__lt=window[1]
        ).values_list("lease_id", flat=True)
    )
    if correction.nano_per_hour > version.nano_per_hour:  # quoted prices never rise
        leases -= corrected_charges.leases_with_quotes(leases)
    pieces = corrected_charges.current_charges(tenant.pk, leases)
    return price_differences(pieces, PriceCorrection(version.pk, window, correction.nano_per_hour))


def _credited_parts(lease: Lease, window: Window, now: datetime) -> list[ChargedInterval]:
    """Return what cancels the window's charges; raise if something else may still cancel them."""
    pieces = [each for each in corrected_charges.current_charges(lease.tenant_id, [lease.pk]) if each.cut(window)]
    for version in {each.version for each in pieces}:
        _check_settled(lease, pieces, PriceVersion.objects.get(pk=version).free_start_s, now)
    return reversed_charges(pieces, window)


def _check_settled(lease: Lease, pieces: Iterable[ChargedInterval], free_start_s: int, now: datetime) -> None:
    """Raise InvalidValue if the run is so recent that a preemption would make it free."""
    running = lease.state == LeaseState.ACTIVE and free_start_s
    begun = Transition.objects.filter(lease_id=lease.pk, after=LeaseState.ACTIVE).exclude(before=LeaseState.ACTIVE)
    last = begun.order_by("-seq").first() if running else None
    if (
        last
        and last.at + timedelta(seconds=free_start_s) + CLOSING_GRACE > now
        and any(p.seq >= last.seq for p in pieces)
    ):
        raise InvalidValue(
            "since",
            f"{lease.pk} started recently and would be refunded automatically if it is preempted.",
            fix=f"Wait {free_start_s // 60 + 6} minutes, or until it has ended.",
        )


def _additional_parts(lease: Lease, tenant: Tenant, window: Window, now: datetime) -> list[ChargedInterval]:
    """Return charges for the parts of a window in which the lease is not charged."""
    billing_periods.ensure_periods(tenant, since=window[0], until=now)
    gaps = uncharged_windows(corrected_charges.current_charges(tenant.pk, [lease.pk]), window)
    found = [piece for gap in gaps for piece in _uncharged_parts(lease, tenant, gap)]
    return additional_charges(corrected_charges.with_price_corrections(tenant.pk, found))


def _uncharged_parts(lease: Lease, tenant: Tenant, gap: Window) -> Iterator[ChargedInterval]:
    """Split an uncharged interval by terms, prices and months, or raise InvalidValue."""
    steps = list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))
    rated = set(RatedCharge.objects.filter(lease_id=lease.pk, correction_id="").values_list("seq", flat=True))
    if gap[0] < steps[0].at:
        raise InvalidValue(
            "since", f"{lease.pk} did not exist before {steps[0].at.isoformat()}.", fix="Choose a later start."
        )
    quote = Quote.objects.filter(lease=lease).select_related("price_version").first()
    months = list(BillingPeriod.objects.filter(tenant=tenant))
    for step, following in [*pairwise(steps), (steps[-1], None)]:
        end = gap[1] if following is None else min(gap[1], following.at.astimezone(UTC))
        start = max(gap[0], step.at.astimezone(UTC))
        if start >= end:
            continue
        if LeaseState(step.after) in BILLABLE_STATES and step.seq not in rated:
            raise InvalidValue(
                "until", f"{lease.pk} is charged up to {start.isoformat()}.", fix="Wait until the rest is charged."
            )
        promised = quote if quote and quote.offering_id == step.offering_id else None
        for version, nano, since, until in _prices_in_force(step.offering_id, tenant, promised, (start, end)):
            for month in months:
                span = month.span.lower.astimezone(UTC), month.span.upper.astimezone(UTC)
                piece = ChargedInterval(
                    lease=lease.pk, seq=step.seq, version=version, period=month.pk, billed=month.pk,
                    project=step.project_id, offering=step.offering_id, start=since, end=until,
                    quantity=step.quantity, nano=nano, final=month.status != OPEN,
                )  # fmt: skip
                if cut := piece.cut(span):
                    yield cut


def _prices_in_force(
    offering: str, tenant: Tenant, promised: Quote | None, window: Window
) -> Iterator[tuple[int, int, datetime, datetime]]:
    """Yield the price versions valid in a window; raise InvalidValue if one is missing."""
    quoted = replace(price_list.to_price(promised.price_version), fixed=not promised.is_ceiling) if promised else None
    rows = PriceVersion.objects.paid_by(tenant.pk).filter(offering=offering, currency=tenant.currency)
    at = window[0]
    for price in price_list.prices_paid(map(price_list.to_price, rows), quoted, since=window[0]):
        since = max(window[0], price.since.astimezone(UTC))
        until = min(window[1], price.until.astimezone(UTC)) if price.until else window[1]
        if since < until and since == at:
            yield price.version, price.nano_per_hour, since, until
            at = until
    if at < window[1]:
        raise InvalidValue(
            "since", f"{offering} has no price at {at.isoformat()}.", fix="Choose a period that has a price."
        )


def _move_to_open_month(parts: Iterable[ChargedInterval], tenant: Tenant, now: datetime) -> list[ChargedInterval]:
    """Move additional charges of closed months to the next invoice.

    Reductions are credited on their own invoice.
    """
    parts = list(parts)
    if not any(each.final and each.exact > 0 for each in parts):
        return parts
    billing_periods.ensure_periods(tenant, since=now, until=now)
    month = BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("span").first()
    assert month is not None
    return [replace(each, billed=month.pk, final=False) if each.final and each.exact > 0 else each for each in parts]


def _line_changes(parts: Iterable[ChargedInterval], tenant: Tenant) -> Iterator[LineChange]:
    grouped: defaultdict[LineKey, list[ChargedInterval]] = defaultdict(list)
    for each in parts:
        grouped[each.billed, each.project, each.offering, each.version, each.final].append(each)
    months = {month.pk: month.label for month in BillingPeriod.objects.filter(tenant=tenant)}
    for key in sorted(grouped, key=lambda key: (months[key[0]], *key[1:])):
        yield _line_change(key, grouped[key], tenant, months[key[0]])


def _line_change(key: LineKey, parts: list[ChargedInterval], tenant: Tenant, month: str) -> LineChange:
    billed, project, offering, version, final = key
    invoice = Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=billed).first()
    where = {"project_id": project, "offering_id": offering, "price_version_id": version}
    line = InvoiceLine.objects.filter(invoice=invoice, **where).first() if invoice else None
    delta, places = sum(each.exact for each in parts), exponent_of(tenant.currency)
    before, after, tax = (
        _credited_amounts(invoice, line, where, delta, places) if final else _draft_amounts(line, delta, places)
    )
    return LineChange(
        invoice=invoice.pk if invoice else "",
        number=str(invoice) if invoice and invoice.number else "",
        month=month,
        line=line.n if line else 0,
        project=project,
        offering=offering,
        version=version,
        leases=len({each.lease for each in parts}),
        unit_seconds=sum(each.unit_seconds for each in parts),
        exact=delta,
        before=before,
        after=after,
        tax=tax,
        final=final,
    )


def _draft_amounts(line: InvoiceLine | None, delta: int, places: int) -> tuple[int, int, int]:
    exact = int(line.exact_num) if line else 0
    return to_minor(exact, places), to_minor(exact + delta, places), 0


def _credited_amounts(
    invoice: Invoice | None, line: InvoiceLine | None, where: dict[str, object], delta: int, places: int
) -> tuple[int, int, int]:
    """Return a final line's remainder before and after the credit note, and its tax."""
    if invoice is None or line is None:
        raise InvalidValue("since", "The invoice of these charges is void.", fix="No correction is needed.")
    earlier = CorrectedInterval.objects.filter(billed_period_id=invoice.period_id, final=True, **where)
    charged = line.charged_num + int(earlier.aggregate(all=Sum("exact_num"))["all"] or 0)
    limit = next(each for each in credit_notes.creditable_lines(invoice) if each.n == line.n)
    before, after = (_after_adjustments(line, exact) for exact in (charged, charged + delta))
    back = max(min(to_minor(before, places) - to_minor(after, places), limit.remaining), 0)
    return limit.remaining, limit.remaining - back, -limit.tax_with(back) if back else 0


def _after_adjustments(line: InvoiceLine, charged: int) -> int:
    """Scale charges by the share that adjustments left of the line; exact."""
    return charged * int(line.exact_num) // line.charged_num if line.month_num else charged
