"""Comparison of charges and drafts with the per-second oracle."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from billing.models import BillingPeriod, Invoice, InvoiceLine, PriceVersion, RatedCharge
from tenants.services.rls import tenant_scope
from tests.billing.per_second_oracle import NANO_HOURS, Owed, owed
from tests.billing.random_tenants import RandomTenant


@dataclass(frozen=True)
class Compared:
    """Both sides, in the same words."""

    mine: dict[object, object]
    theirs: dict[object, object]
    charges: int
    months: int
    checked_at: int


def compare_with_oracle(story: RandomTenant, prices: Iterable[PriceVersion]) -> Compared:
    """Return all charges, lines and totals of a tenant, and the oracle's."""
    mine = owed(story.steps, [*prices, *story.own], story.tenant.time_zone, story.quotes)
    with tenant_scope(story.tenant.pk):
        months = dict(BillingPeriod.objects.values_list("pk", "label"))
        charges = list(RatedCharge.objects.all())
        lines = list(InvoiceLine.objects.select_related("invoice"))
        totals = {months[invoice.period_id]: invoice.total for invoice in Invoice.objects.all()}
    theirs: dict[object, object] = {
        (c.lease_id, c.seq, c.price_version_id, months[c.period_id], int(c.s.timestamp()), c.kind):
        (c.s.astimezone(UTC), c.e.astimezone(UTC), c.unit_seconds, Fraction(int(c.exact_num), NANO_HOURS))
        for c in charges
    } | {
        (months[line.invoice.period_id], line.project_id, line.offering_id, line.price_version_id):
        (line.leases, line.unit_seconds, Fraction(int(line.exact_num), NANO_HOURS), line.minor)
        for line in lines
    } | {label: total for label, total in totals.items()}  # fmt: skip
    return Compared(_comparable(mine), theirs, len(charges), len(totals), mine.checked_at)


def _comparable(mine: Owed) -> dict[object, object]:
    totals: dict[str, int] = {}
    for (month, *_), line in mine.lines.items():
        totals[month] = totals.get(month, 0) + line.minor
    return {
        (*key, "usage"): (_at(charge.first), _at(charge.after), charge.unit_seconds, charge.amount)
        for key, charge in mine.charges.items()
    } | {
        (*key, "adjust"): (_at(charge.first), _at(charge.after), -charge.unit_seconds, -charge.amount)
        for key, charge in mine.charges.items() if charge.given_back
    } | {
        key: (len(line.leases), line.unit_seconds, line.amount, line.minor) for key, line in mine.lines.items()
    } | totals  # fmt: skip


def differences(found: Compared) -> list[tuple[object, object, object]]:
    """Return where product and oracle differ: what, product, oracle."""
    keys = sorted({*found.mine, *found.theirs}, key=str)
    return [
        (key, found.mine.get(key), found.theirs.get(key))
        for key in keys
        if found.mine.get(key) != found.theirs.get(key)
    ]


def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
