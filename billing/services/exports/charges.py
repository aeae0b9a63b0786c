"""The charges that an invoice is the sum of, each with its part of what the invoice bills for it.

A line is rounded once, its charges are not. They are billed exactly, in steps of 10⁻¹² of the currency unit, and the
first of a line also bears what the line was rounded by, less than a coin: so they come to the line, and to the invoice.
What the month takes off lines, or adds as lines, comes after them, each beside the charges of its line.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor
from billing.domain.sharing import Cut
from billing.models import Invoice, MonthCharge, RatedCharge
from billing.services import bundles
from billing.services.month_charges import reckoning
from broker.models import Lease, Volume
from tenants.services.walls import as_tenant

PLACES = 12  # decimals of what is billed for a charge
LEASES = 1000  # in one statement
LEASE_FIELDS = ("pk", "name", "requested_by", "requested_by_label", "tags")


@dataclass(frozen=True, slots=True)
class Asked:
    """A lease, or a volume, by its name, and who asked for it."""

    name: str
    by: str
    by_label: str
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class Billed:
    """A charge, what is billed for it before tax (10⁻¹² of the currency unit), and whose lease it is."""

    charge: RatedCharge
    lease: Asked
    pico: int

    @property
    def late(self) -> bool:
        """Whether its seconds fell into a month that was closed before they were known."""
        return self.charge.period_id != self.charge.billed_period_id

    @property
    def nano_per_hour(self) -> int:
        """What it was charged at: the list's price, the tenant's own, or that of the quote which the lease cites."""
        return int(self.charge.exact_num) // self.charge.unit_seconds


@dataclass(frozen=True, slots=True)
class Carried:
    """What the month carries beside its seconds, and what is billed for it (10⁻¹² of the currency unit)."""

    charge: MonthCharge
    pico: int


def billed(invoice: Invoice) -> Iterator[Billed | Carried]:
    """Yield an invoice's charges lease by lease. No transaction is open in between, however slowly they are taken.

    Of a draft they are those there were at the beginning.
    """
    with as_tenant(invoice.tenant_id):
        charged, carried = bundles.charged_on(invoice), reckoning.of(invoice)
    places = exponent_of(invoice.currency)
    finer = 10 ** (PLACES - places)
    whole = {line: exact for line, (_, _, exact) in charged.sums.items()}
    for line, num in reckoning.by_line(carried).items():
        whole[line] = whole.get(line, 0) + num
    cuts = {
        line: Cut(to_minor(exact, places) * finer, exact=exact * 10**PLACES, unit=EXACT_PER_UNIT)
        for line, exact in whole.items()
    }
    leases = sorted(charged.last)
    for at in range(0, len(leases), LEASES):
        some = leases[at : at + LEASES]
        with as_tenant(invoice.tenant_id):
            asked = {
                pk: Asked(name, by, label, tags)
                for pk, name, by, label, tags in Lease.objects.filter(pk__in=some).values_list(*LEASE_FIELDS)
            }
            kept = Volume.objects.filter(pk__in=some)
            asked |= {
                pk: Asked(name, by, label, {}) for pk, name, by, label in kept.values_list(*LEASE_FIELDS[:-1])
            }
            rows = RatedCharge.objects.filter(lease_id__in=some, billed_period_id=invoice.period_id)
            found = list(
                rows.order_by(
                    "lease_id", "seq", "s", "price_version_id", "period_id", "kind", "correction_id", "part"
                )
            )
        for charge in found:
            if charge.seq <= charged.last[charge.lease_id]:
                line = charge.project_id, charge.offering_id, charge.price_version_id
                yield Billed(
                    charge, asked[charge.lease_id], cuts[line].next(int(charge.exact_num) * 10**PLACES)
                )
    for each in carried:
        yield Carried(each, cuts[each.line].next(int(each.exact_num) * 10**PLACES))
