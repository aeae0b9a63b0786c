"""Charges of an invoice, each with its share of the billed amount.

A line is rounded once, its charges are not. They are billed exactly, in steps of 10⁻¹² of the currency
unit, and the first of a line also carries the line's rounding, less than one minor unit; so they add up
to the line and the invoice. The month's adjustments come after them, each apportioned with the charges
of its line.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from billing.domain.apportionment import RunningApportionment
from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor
from billing.models import Invoice, InvoiceAdjustment, RatedCharge
from billing.services.adjustments import month_adjustments
from billing.services.documents import invoice_bundles
from billing.services.documents.invoice_bundles import ChargedUsage
from broker.models import Lease, Volume
from tenants.services.rls import tenant_scope

BILLED_DECIMALS = 12  # decimals of a charge's billed amount
LEASES_PER_QUERY = 1000  # per query
LEASE_FIELDS = ("pk", "name", "requested_by", "requested_by_label", "tags")


@dataclass(frozen=True, slots=True)
class RequestedResource:
    """A lease or volume by name, and who requested it."""

    name: str
    by: str
    by_label: str
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class BilledCharge:
    """A charge with its lease and billed amount before tax (10⁻¹² of the currency unit)."""

    charge: RatedCharge
    lease: RequestedResource
    pico: int

    @property
    def late(self) -> bool:
        """Whether its usage was recorded only after its own month was closed."""
        return self.charge.period_id != self.charge.billed_period_id

    @property
    def nano_per_hour(self) -> int:
        """The price charged: the list's, the tenant's own, or that of the redeemed quote."""
        return int(self.charge.exact_num) // self.charge.unit_seconds


@dataclass(frozen=True, slots=True)
class BilledAdjustment:
    """An adjustment of the month with its billed amount (10⁻¹² of the currency unit)."""

    charge: InvoiceAdjustment
    pico: int


def billed_charges(invoice: Invoice) -> Iterator[BilledCharge | BilledAdjustment]:
    """Yield an invoice's charges lease by lease, then the adjustments.

    No transaction is open in between, however slowly they are consumed. A draft's are those that existed
    at the beginning.
    """
    with tenant_scope(invoice.tenant_id):
        charged, carried = (invoice_bundles.read_charged_usage(invoice), month_adjustments.adjustments_of(invoice))
    places = exponent_of(invoice.currency)
    finer = 10 ** (BILLED_DECIMALS - places)
    whole = {line: exact for line, (_, _, exact) in charged.sums.items()}
    for line, num in month_adjustments.adjustment_by_line(carried).items():
        whole[line] = whole.get(line, 0) + num
    cuts = {
        line: RunningApportionment(
            to_minor(exact, places) * finer, exact=exact * 10**BILLED_DECIMALS, unit=EXACT_PER_UNIT
        )
        for line, exact in whole.items()
    }
    for charge, resource in read_charges(invoice, charged):
        line = charge.project_id, charge.offering_id, charge.price_version_id
        yield BilledCharge(charge, resource, cuts[line].next(int(charge.exact_num) * 10**BILLED_DECIMALS))
    for each in carried:
        yield BilledAdjustment(each, cuts[each.line].next(int(each.exact_num) * 10**BILLED_DECIMALS))


def read_charges(invoice: Invoice, charged: ChargedUsage) -> Iterator[tuple[RatedCharge, RequestedResource]]:
    """Yield the charges that were read before, lease by lease, with the lease or volume."""
    leases = sorted(charged.last)
    for at in range(0, len(leases), LEASES_PER_QUERY):
        some = leases[at : at + LEASES_PER_QUERY]
        with tenant_scope(invoice.tenant_id):
            requests = {
                pk: RequestedResource(name, by, label, tags)
                for pk, name, by, label, tags in Lease.objects.filter(pk__in=some).values_list(*LEASE_FIELDS)
            }
            kept = Volume.objects.filter(pk__in=some)
            requests |= {
                pk: RequestedResource(name, by, label, {})
                for pk, name, by, label in kept.values_list(*LEASE_FIELDS[:-1])
            }
            rows = RatedCharge.objects.filter(lease_id__in=some, billed_period_id=invoice.period_id)
            rows = rows.exclude(correction_id__in=charged.later) if charged.later else rows
            found = list(
                rows.order_by("lease_id", "seq", "s", "price_version_id", "period_id", "kind", "correction_id", "part")
            )
        for charge in found:
            if charge.seq <= charged.last[charge.lease_id]:
                yield charge, requests[charge.lease_id]
