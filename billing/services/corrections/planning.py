"""What a correction would book for a tenant: its parts, and what every line changes by. Nothing is written.

Behind the tenant's wall, and with no month of it closing meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from django.db.models import Sum

from billing.domain.correcting import Change, Piece, Rerated, Window, added, free, given_back, repriced
from billing.domain.money import exponent_of, to_minor
from billing.models import (
    BillingPeriod,
    Correction,
    CorrectionPart,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    PriceVersion,
    Quote,
    RatedCharge,
)
from billing.models.corrections import CorrectionKind
from billing.models.periods import OPEN
from billing.services import crediting, periods, prices
from billing.services.closing import GRACE
from billing.services.corrections import reading
from broker.domain.lifecycle import BILLABLE
from broker.domain.states import LeaseState
from broker.models import Lease, Transition
from tenants.models import Tenant
from tenants.services.refusals import Invalid

LineKey = tuple[int, str, str, int, bool]  # billed month, project, offering, price version, final


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be booked, and what people see of it."""

    parts: tuple[Piece, ...]
    changes: tuple[Change, ...]

    @property
    def minor(self) -> int:
        return sum(change.minor for change in self.changes)


def plan(correction: Correction, tenant: Tenant, *, now: datetime) -> Plan:
    """Work out what a correction would book for a tenant, or raise Invalid for what it cannot be."""
    window = correction.since.astimezone(UTC), correction.until.astimezone(UTC)
    if correction.kind == CorrectionKind.PRICE:
        parts = _of_price(correction, tenant, window)
    else:
        lease = Lease.objects.get(pk=correction.lease_id)
        parts = _charged_more(lease, tenant, window, now) if correction.charge else _given(lease, window, now)
    parts = _billed_openly(parts, tenant, now)
    return Plan(tuple(parts), tuple(_changes(parts, tenant)))


def _of_price(correction: Correction, tenant: Tenant, window: Window) -> list[Piece]:
    version = correction.price_version
    assert version is not None
    assert correction.nano_per_hour is not None
    leases = set(
        RatedCharge.objects.filter(
            tenant_id=tenant.pk, price_version_id=version.pk, e__gt=window[0], s__lt=window[1]
        ).values_list("lease_id", flat=True)
    )
    if correction.nano_per_hour > version.nano_per_hour:  # what was promised stays promised
        leases -= reading.quotes(leases)
    pieces = reading.charged(tenant.pk, leases)
    return repriced(pieces, Rerated(version.pk, window, correction.nano_per_hour))


def _given(lease: Lease, window: Window, now: datetime) -> list[Piece]:
    """Return what takes the window's charges off again; it must be certain that nothing else will."""
    pieces = [each for each in reading.charged(lease.tenant_id, [lease.pk]) if each.cut(window)]
    for version in {each.version for each in pieces}:
        _check_settled(lease, pieces, PriceVersion.objects.get(pk=version).free_start_s, now)
    return given_back(pieces, window)


def _check_settled(lease: Lease, pieces: Iterable[Piece], free_start_s: int, now: datetime) -> None:
    """Refuse what may still be given back by itself, because its run is so young that taking it back is free."""
    running = lease.state == LeaseState.ACTIVE and free_start_s
    begun = Transition.objects.filter(lease_id=lease.pk, after=LeaseState.ACTIVE).exclude(
        before=LeaseState.ACTIVE
    )
    last = begun.order_by("-seq").first() if running else None
    if (
        last
        and last.at + timedelta(seconds=free_start_s) + GRACE > now
        and any(p.seq >= last.seq for p in pieces)
    ):
        raise Invalid(
            "since",
            f"{lease.pk} began so lately that all of it is given back by itself if it is taken back for others.",
            fix=f"Wait {free_start_s // 60 + 6} minutes, or until it has ended.",
        )


def _charged_more(lease: Lease, tenant: Tenant, window: Window, now: datetime) -> list[Piece]:
    """Return charges for the parts of a window in which nothing of the lease stands charged."""
    periods.ensure(tenant, since=window[0], until=now)
    gaps = free(reading.charged(tenant.pk, [lease.pk]), window)
    found = [piece for gap in gaps for piece in _priced(lease, tenant, gap)]
    return added(reading.at_now(tenant.pk, found))


def _priced(lease: Lease, tenant: Tenant, gap: Window) -> Iterator[Piece]:
    """Cut a stretch without a charge by the lease's terms, by prices and by months, or raise Invalid."""
    steps = list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))
    rated = set(RatedCharge.objects.filter(lease_id=lease.pk, correction_id="").values_list("seq", flat=True))
    if gap[0] < steps[0].at:
        raise Invalid(
            "since", f"{lease.pk} was not there before {steps[0].at.isoformat()}.", fix="Begin later."
        )
    quote = Quote.objects.filter(lease=lease).select_related("price_version").first()
    months = list(BillingPeriod.objects.filter(tenant=tenant))
    for step, following in [*pairwise(steps), (steps[-1], None)]:
        end = gap[1] if following is None else min(gap[1], following.at.astimezone(UTC))
        start = max(gap[0], step.at.astimezone(UTC))
        if start >= end:
            continue
        if LeaseState(step.after) in BILLABLE and step.seq not in rated:
            raise Invalid(
                "until", f"{lease.pk} is charged up to {start.isoformat()}.", fix="Wait until it is charged."
            )
        promised = quote.price_version if quote and quote.offering_id == step.offering_id else None
        for version, nano, since, until in _course(step.offering_id, tenant, promised, (start, end)):
            for month in months:
                span = month.span.lower.astimezone(UTC), month.span.upper.astimezone(UTC)
                piece = Piece(
                    lease=lease.pk, seq=step.seq, version=version, period=month.pk, billed=month.pk,
                    project=step.project_id, offering=step.offering_id, start=since, end=until,
                    quantity=step.quantity, nano=nano, final=month.status != OPEN,
                )  # fmt: skip
                if cut := piece.cut(span):
                    yield cut


def _course(
    offering: str, tenant: Tenant, promised: PriceVersion | None, window: Window
) -> Iterator[tuple[int, int, datetime, datetime]]:
    """Yield the price versions that hold in a window, or raise Invalid where one is missing."""
    if promised:
        yield promised.pk, promised.nano_per_hour, *window
        return
    rows = PriceVersion.objects.paid_by(tenant.pk).filter(offering=offering, currency=tenant.currency)
    at = window[0]
    for price in prices.in_force(prices.priced(row) for row in rows):
        since = max(window[0], price.since.astimezone(UTC))
        until = min(window[1], price.until.astimezone(UTC)) if price.until else window[1]
        if since < until and since == at:
            yield price.version, price.nano_per_hour, since, until
            at = until
    if at < window[1]:
        raise Invalid(
            "since", f"{offering} has no price at {at.isoformat()}.", fix="Choose a stretch with one."
        )


def _billed_openly(parts: Iterable[Piece], tenant: Tenant, now: datetime) -> list[Piece]:
    """Let what is charged more for a closed month stand on the next invoice; what is less is credited on its own."""
    parts = list(parts)
    if not any(each.final and each.exact > 0 for each in parts):
        return parts
    periods.ensure(tenant, since=now, until=now)
    month = BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("span").first()
    assert month is not None
    return [
        replace(each, billed=month.pk, final=False) if each.final and each.exact > 0 else each
        for each in parts
    ]


def _changes(parts: Iterable[Piece], tenant: Tenant) -> Iterator[Change]:
    grouped: defaultdict[LineKey, list[Piece]] = defaultdict(list)
    for each in parts:
        grouped[each.billed, each.project, each.offering, each.version, each.final].append(each)
    months = {month.pk: month.label for month in BillingPeriod.objects.filter(tenant=tenant)}
    for key in sorted(grouped, key=lambda key: (months[key[0]], *key[1:])):
        yield _change(key, grouped[key], tenant, months[key[0]])


def _change(key: LineKey, parts: list[Piece], tenant: Tenant, month: str) -> Change:
    billed, project, offering, version, final = key
    invoice = Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=billed).first()
    where = {"project_id": project, "offering_id": offering, "price_version_id": version}
    line = InvoiceLine.objects.filter(invoice=invoice, **where).first() if invoice else None
    delta, places = sum(each.exact for each in parts), exponent_of(tenant.currency)
    before, after, tax = (
        _credit(invoice, line, where, delta, places) if final else _draft(line, delta, places)
    )
    return Change(
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


def _draft(line: InvoiceLine | None, delta: int, places: int) -> tuple[int, int, int]:
    exact = int(line.exact_num) if line else 0
    return to_minor(exact, places), to_minor(exact + delta, places), 0


def _credit(
    invoice: Invoice | None, line: InvoiceLine | None, where: dict[str, object], delta: int, places: int
) -> tuple[int, int, int]:
    """Return what a final line came to, what it comes to after the credit note, and the tax that goes with that."""
    if invoice is None or line is None:
        raise Invalid("since", "Its invoice was made void.", fix="There is nothing to give back of it.")
    earlier = CorrectionPart.objects.filter(billed_period_id=invoice.period_id, final=True, **where)
    charged = line.charged_num + int(earlier.aggregate(all=Sum("exact_num"))["all"] or 0)
    left = next(each for each in crediting.left(invoice) if each.n == line.n)
    before, after = (_less(line, exact) for exact in (charged, charged + delta))
    back = max(min(to_minor(before, places) - to_minor(after, places), left.left), 0)
    return left.left, left.left - back, -left.tax_with(back) if back else 0


def _less(line: InvoiceLine, charged: int) -> int:
    """Return what such charges come to on a line of which its month took a part off: the same part of them, exact."""
    return charged * int(line.exact_num) // line.charged_num if line.month_num else charged
