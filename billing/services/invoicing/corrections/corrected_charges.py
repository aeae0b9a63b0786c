"""Current charges of leases after all corrections: intervals with their cost."""

from collections.abc import Iterable
from datetime import UTC

from billing.domain.corrections import ChargedInterval, PriceCorrection, apply_corrections, apply_price_corrections
from billing.models import BillingPeriod, CorrectedInterval, Correction, InvoiceLine, PriceVersion, Quote, RatedCharge
from billing.models.charges import ChargeKind
from billing.models.corrections import CorrectionKind, TenantCorrectionStatus
from billing.models.periods import OPEN
from billing.services.rating import cancelled_charges

Key = tuple[str, int, int, int, str, int]


def current_charges(tenant_id: str, leases: Iterable[str]) -> list[ChargedInterval]:
    """Return the current charges of these leases, in order.

    Runs in the tenant's row-level security scope.
    """
    leases = list(leases)
    final = set(BillingPeriod.objects.filter(tenant=tenant_id).exclude(status=OPEN).values_list("pk", flat=True))
    rows = RatedCharge.objects.filter(lease_id__in=leases, correction_id="")
    free = {_key(row) for row in rows.filter(kind=ChargeKind.ADJUST)}
    used = [_charged_interval(row, final) for row in rows.filter(kind=ChargeKind.USAGE) if _key(row) not in free]
    parts = CorrectedInterval.objects.filter(lease_id__in=leases).exclude(unit_seconds=0).order_by("pk")
    changes = [(_corrected_interval(row, final), row.unit_seconds > 0) for row in parts]
    return with_price_corrections(tenant_id, apply_corrections(used, changes))


def with_price_corrections(tenant_id: str, pieces: Iterable[ChargedInterval]) -> list[ChargedInterval]:
    """Apply booked price corrections to charges; a lower quoted price is kept."""
    pieces = list(pieces)
    rerated = [_price_correction(one) for one in _booked_corrections(tenant_id, {each.version for each in pieces})]
    if not rerated:
        return pieces
    quoted = leases_with_quotes(each.lease for each in pieces)
    nano = dict(PriceVersion.objects.filter(pk__in=[one.version for one in rerated]).values_list("pk", "nano_per_hour"))
    kept = [one for one in rerated if one.nano <= nano[one.version]]
    return sorted(
        [
            *apply_price_corrections([each for each in pieces if each.lease not in quoted], rerated),
            *apply_price_corrections([each for each in pieces if each.lease in quoted], kept),
        ],
        key=lambda each: (each.lease, each.start),
    )


def leases_with_quotes(leases: Iterable[str]) -> set[str]:
    """Return which of these leases redeemed a quote."""
    return set(Quote.objects.filter(lease__in=set(leases)).values_list("lease_id", flat=True))


def _booked_corrections(tenant_id: str, versions: set[int]) -> list[Correction]:
    """Return the booked price corrections of these versions for a tenant, latest last."""
    found = Correction.objects.filter(
        kind=CorrectionKind.PRICE,
        price_version__in=versions,
        shares__tenant=tenant_id,
        shares__status=TenantCorrectionStatus.BOOKED,
    )
    return list(found.order_by("shares__settled_at", "pk"))


def _price_correction(one: Correction) -> PriceCorrection:
    assert one.price_version_id is not None
    assert one.nano_per_hour is not None
    window = one.since.astimezone(UTC), one.until.astimezone(UTC)
    return PriceCorrection(one.price_version_id, window, one.nano_per_hour)


def _key(row: RatedCharge) -> Key:
    return row.lease_id, row.seq, row.price_version_id, row.period_id, row.meter, row.part


def _charged_interval(row: RatedCharge, final: set[int]) -> ChargedInterval:
    quantity = row.unit_seconds // int((row.e - row.s).total_seconds())
    return _interval(row, quantity, int(row.exact_num) // row.unit_seconds, final)


def _corrected_interval(row: CorrectedInterval, final: set[int]) -> ChargedInterval:
    return _interval(row, row.quantity, row.nano_per_hour, final)


def _interval(row: RatedCharge | CorrectedInterval, quantity: int, nano: int, final: set[int]) -> ChargedInterval:
    return ChargedInterval(
        lease=row.lease_id,
        seq=row.seq,
        version=row.price_version_id,
        period=row.period_id,
        billed=row.billed_period_id,
        project=row.project_id,
        offering=row.offering_id,
        start=row.s.astimezone(UTC),
        end=row.e.astimezone(UTC),
        quantity=quantity,
        nano=nano,
        final=row.billed_period_id in final,
    )


def corrections_on_line(line: InvoiceLine) -> list[CorrectedInterval]:
    """Return the corrections on a line while its month was open."""
    found = CorrectedInterval.objects.filter(
        billed_period_id=line.invoice.period_id,
        project_id=line.project_id,
        offering_id=line.offering_id,
        price_version_id=line.price_version_id,
        final=False,
    )
    found = found.exclude(share__correction__in=cancelled_charges.later_corrections(line.invoice))
    return list(found.select_related("share__correction").order_by("pk"))


def corrections_on_invoice(period_id: int) -> list[CorrectedInterval]:
    """Return the corrections on a month's invoice while it was open, in order."""
    found = CorrectedInterval.objects.filter(billed_period_id=period_id, final=False)
    return list(found.select_related("share__correction").order_by("pk"))


def recompute_amount(part: CorrectedInterval) -> int:
    """Recompute the exact amount of a corrected interval.

    It is its seconds at its price, or at the difference of two prices.
    """
    seconds = int((part.e - part.s).total_seconds()) * part.quantity
    instead = part.share.correction.nano_per_hour
    if instead is not None:
        return seconds * (instead - part.nano_per_hour)
    return (seconds if part.unit_seconds > 0 else -seconds) * part.nano_per_hour
