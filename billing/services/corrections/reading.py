"""What stands charged of some leases now, after all corrections: stretches of each lease, with what they cost."""

from collections.abc import Iterable
from datetime import UTC

from billing.domain.correcting import Piece, Rerated, at_prices, standing
from billing.models import (
    BillingPeriod,
    Correction,
    CorrectionPart,
    InvoiceLine,
    PriceVersion,
    Quote,
    RatedCharge,
)
from billing.models.charges import ChargeKind
from billing.models.corrections import CorrectionKind, ShareStatus
from billing.models.periods import OPEN

Key = tuple[str, int, int, int, str, int]


def charged(tenant_id: str, leases: Iterable[str]) -> list[Piece]:
    """Return what stands charged of these leases, in order. Runs behind the tenant's wall."""
    leases = list(leases)
    final = set(
        BillingPeriod.objects.filter(tenant=tenant_id).exclude(status=OPEN).values_list("pk", flat=True)
    )
    rows = RatedCharge.objects.filter(lease_id__in=leases, correction_id="")
    free = {_key(row) for row in rows.filter(kind=ChargeKind.ADJUST)}
    used = [_piece(row, final) for row in rows.filter(kind=ChargeKind.USAGE) if _key(row) not in free]
    parts = CorrectionPart.objects.filter(lease_id__in=leases).exclude(unit_seconds=0).order_by("pk")
    changes = [(_part(row, final), row.unit_seconds > 0) for row in parts]
    return at_now(tenant_id, standing(used, changes))


def at_now(tenant_id: str, pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces at the prices that corrections have set since; a quote is kept where it promised less."""
    pieces = list(pieces)
    rerated = [_rerated(one) for one in _booked(tenant_id, {each.version for each in pieces})]
    if not rerated:
        return pieces
    quoted = quotes(each.lease for each in pieces)
    nano = dict(
        PriceVersion.objects.filter(pk__in=[one.version for one in rerated]).values_list(
            "pk", "nano_per_hour"
        )
    )
    kept = [one for one in rerated if one.nano <= nano[one.version]]
    return sorted(
        [
            *at_prices([each for each in pieces if each.lease not in quoted], rerated),
            *at_prices([each for each in pieces if each.lease in quoted], kept),
        ],
        key=lambda each: (each.lease, each.start),
    )


def quotes(leases: Iterable[str]) -> set[str]:
    """Return which of these leases cite a quote."""
    return set(Quote.objects.filter(lease__in=set(leases)).values_list("lease_id", flat=True))


def _booked(tenant_id: str, versions: set[int]) -> list[Correction]:
    """Return the corrections of these prices that are booked for a tenant, the latest last."""
    found = Correction.objects.filter(
        kind=CorrectionKind.PRICE,
        price_version__in=versions,
        shares__tenant=tenant_id,
        shares__status=ShareStatus.BOOKED,
    )
    return list(found.order_by("shares__settled_at", "pk"))


def _rerated(one: Correction) -> Rerated:
    assert one.price_version_id is not None
    assert one.nano_per_hour is not None
    window = one.since.astimezone(UTC), one.until.astimezone(UTC)
    return Rerated(one.price_version_id, window, one.nano_per_hour)


def _key(row: RatedCharge) -> Key:
    return row.lease_id, row.seq, row.price_version_id, row.period_id, row.meter, row.part


def _piece(row: RatedCharge, final: set[int]) -> Piece:
    start, end = row.s.astimezone(UTC), row.e.astimezone(UTC)
    return Piece(
        lease=row.lease_id,
        seq=row.seq,
        version=row.price_version_id,
        period=row.period_id,
        billed=row.billed_period_id,
        project=row.project_id,
        offering=row.offering_id,
        start=start,
        end=end,
        quantity=row.unit_seconds // int((end - start).total_seconds()),
        nano=int(row.exact_num) // row.unit_seconds,
        final=row.billed_period_id in final,
    )


def _part(row: CorrectionPart, final: set[int]) -> Piece:
    return Piece(
        lease=row.lease_id,
        seq=row.seq,
        version=row.price_version_id,
        period=row.period_id,
        billed=row.billed_period_id,
        project=row.project_id,
        offering=row.offering_id,
        start=row.s.astimezone(UTC),
        end=row.e.astimezone(UTC),
        quantity=row.quantity,
        nano=row.nano_per_hour,
        final=row.billed_period_id in final,
    )


def on_line(line: InvoiceLine) -> list[CorrectionPart]:
    """Return what corrections changed on a line while its month was open, each with its correction."""
    found = CorrectionPart.objects.filter(
        billed_period_id=line.invoice.period_id,
        project_id=line.project_id,
        offering_id=line.offering_id,
        price_version_id=line.price_version_id,
        final=False,
    )
    return list(found.select_related("share__correction").order_by("pk"))


def on_invoice(period_id: int) -> list[CorrectionPart]:
    """Return what corrections changed on the invoice of a month while it was open, in order."""
    found = CorrectionPart.objects.filter(billed_period_id=period_id, final=False)
    return list(found.select_related("share__correction").order_by("pk"))


def recounted(part: CorrectionPart) -> int:
    """Work out anew what a part comes to, exact: its seconds at its price, or the difference of two prices."""
    seconds = int((part.e - part.s).total_seconds()) * part.quantity
    instead = part.share.correction.nano_per_hour
    if instead is not None:
        return seconds * (instead - part.nano_per_hour)
    return (seconds if part.unit_seconds > 0 else -seconds) * part.nano_per_hour
