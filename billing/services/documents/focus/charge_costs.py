"""Effective costs of charges: after the commitments, tiers and discounts of their line.

A charge that a commitment covers in part becomes two pieces. The savings of tiers fall on the usage that
no commitment covers, discounts on all usage of a line, in proportion to its price. The pieces of a line
add up to the line exactly.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from billing.domain.apportionment import RunningApportionment
from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor
from billing.models import AdjustmentKind, Commitment, Invoice, InvoiceAdjustment, RatedCharge
from billing.services.adjustments.commitment_adjustments import reduce_covered_lines
from billing.services.adjustments.late_adjustments import late_months
from billing.services.adjustments.month_amounts import FIRST_RULES, ChargeKey, LineKey, unadjusted_amounts

BILLED_DECIMALS = 12  # of the currency unit


@dataclass(frozen=True, slots=True)
class Cover:
    """Unit-seconds of a charge that a commitment covers, and their price."""

    commitment: Commitment
    unit_seconds: int
    nano_per_hour: int
    late: bool  # paid with the month it was used in, as an unused unit


@dataclass(frozen=True, slots=True)
class CostPiece:
    """Part of a charge at one price, with its effective cost in 10⁻¹² currency units."""

    unit_seconds: int
    cover: Cover | None
    pico: int


@dataclass(slots=True)
class LineAmounts:
    """Amounts of a line over 3600·10⁹: usage at its price, and its reductions."""

    uncovered: int = 0
    covered: int = 0
    tiers: int = 0
    discounts: int = 0

    @property
    def tier_share(self) -> tuple[int, int]:
        """What tiers leave of uncovered usage, as a fraction."""
        return (self.uncovered - self.tiers, self.uncovered) if self.uncovered else (1, 1)

    @property
    def discount_share(self) -> tuple[int, int]:
        """What discounts leave of the line, as a fraction."""
        before = self.covered + self.uncovered - self.tiers
        return (before - self.discounts, before) if before else (1, 1)

    @property
    def net(self) -> int:
        return self.covered + self.uncovered - self.tiers - self.discounts

    @property
    def scale(self) -> int:
        return self.tier_share[1] * self.discount_share[1]


class ChargeCosts:
    """Splits an invoice's charges into pieces with their effective cost, charge by charge."""

    def __init__(self, invoice: Invoice, charged: Mapping[LineKey, int], carried: Iterable[InvoiceAdjustment]) -> None:
        """Read what commitments cover; `charged` is the exact usage of each line."""
        self._covers, covered = _read_covers(invoice)
        self._lines = _line_amounts(charged, covered, carried)
        self._cuts = {line: _cut(amounts, exponent_of(invoice.currency)) for line, amounts in self._lines.items()}

    def split(self, charge: RatedCharge) -> list[CostPiece]:
        """Return the pieces of a charge; call it once per charge, in order."""
        line = charge.project_id, charge.offering_id, charge.price_version_id
        covers = self._covers.get((charge.period_id, charge_key(charge)), []) if charge.unit_seconds > 0 else []
        rest, exact = charge.unit_seconds, int(charge.exact_num)
        nano = exact // charge.unit_seconds
        pieces = []
        for cover in covers:
            rest -= cover.unit_seconds
            exact -= cover.unit_seconds * nano
            value = cover.unit_seconds * min(cover.nano_per_hour, nano)
            pieces.append(CostPiece(cover.unit_seconds, cover, self._next(line, value, covered=True)))
        if rest or not pieces:
            pieces.append(CostPiece(rest, None, self._next(line, exact, covered=False)))
        return pieces

    def _next(self, line: LineKey, value: int, *, covered: bool) -> int:
        amounts = self._lines[line]
        kept, whole = amounts.tier_share
        share = (whole if covered else kept) * amounts.discount_share[0]
        return self._cuts[line].next(value * share * 10**BILLED_DECIMALS)


def charge_key(charge: RatedCharge) -> ChargeKey:
    """Return the key by which commitments name a charge of a month."""
    return charge.lease_id, charge.seq, charge.part, charge.price_version_id, charge.correction_id


def _cut(amounts: LineAmounts, places: int) -> RunningApportionment:
    """Return the apportionment of a line: its rounded amount over its exact pieces."""
    whole = to_minor(amounts.net, places) * 10 ** (BILLED_DECIMALS - places)
    return RunningApportionment(
        whole, exact=amounts.net * amounts.scale * 10**BILLED_DECIMALS, unit=EXACT_PER_UNIT * amounts.scale
    )


def _line_amounts(
    charged: Mapping[LineKey, int], covered: Mapping[LineKey, int], carried: Iterable[InvoiceAdjustment]
) -> dict[LineKey, LineAmounts]:
    found = {line: LineAmounts(exact - covered.get(line, 0), covered.get(line, 0)) for line, exact in charged.items()}
    for each in carried:
        if (amounts := found.get(each.line)) is None:
            continue
        reduction = -int(each.exact_num)
        if each.kind == AdjustmentKind.TIER:
            amounts.tiers += reduction
        elif each.kind == AdjustmentKind.COMMIT:
            amounts.covered -= reduction
        else:
            amounts.discounts += reduction
    return found


def _read_covers(invoice: Invoice) -> tuple[dict[tuple[int, ChargeKey], list[Cover]], dict[LineKey, int]]:
    """Return what commitments cover, by month and charge, and its amounts by line.

    Amounts are at the usage's own price. Call in the tenant's RLS scope.
    """
    found, amounts = defaultdict[tuple[int, ChargeKey], list[Cover]](list), defaultdict[LineKey, int](int)
    month = unadjusted_amounts(invoice)
    months = [month.own, *(late_months(month.tenant_id, month.period) if month.rules > FIRST_RULES else ())]
    for counted in months:
        for usage in reduce_covered_lines(month, counted):
            nano = 0 if counted.late else usage.commitment.nano_per_hour
            for key, seconds in usage.uses.items():
                found[counted.period.pk, key].append(Cover(usage.commitment, seconds, nano, counted.late))
            for line, num in usage.amounts.items():
                amounts[line] += num
    return dict(found), dict(amounts)
