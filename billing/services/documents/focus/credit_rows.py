"""FOCUS rows of credit notes: corrections of an invoiced month, by lease and volume."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from billing.domain.apportionment import apportion
from billing.domain.periods import month_of
from billing.models import Invoice
from billing.services.adjustments.month_amounts import LineKey
from billing.services.documents.charge_exports import RequestedResource
from billing.services.documents.focus import charge_fields
from billing.services.documents.line_names import line_key
from billing.services.reports.credited_lines import CreditedLine
from broker.models import Offering


class CreditedResources:
    """Leases and volumes of credited lines with their cost, collected from the invoice's charges."""

    def __init__(self, lines: Collection[LineKey]) -> None:
        self._costs: dict[LineKey, dict[str, int]] = {line: {} for line in lines}
        self._found: dict[str, RequestedResource] = {}

    def add(self, line: LineKey, lease_id: str, resource: RequestedResource, exact_num: int) -> None:
        """Count a charge, if its line was credited."""
        if (costs := self._costs.get(line)) is not None:
            costs[lease_id] = costs.get(lease_id, 0) + exact_num
            self._found[lease_id] = resource

    def shares(self, credited: CreditedLine, minor: int) -> dict[str, int]:
        """Split a credited amount by lease; an empty id takes what belongs to none."""
        costs = self._costs.get(line_key(credited.line), {})
        if credited.lease_id in costs:
            return {credited.lease_id: minor}
        positive = {lease: cost for lease, cost in costs.items() if cost > 0}
        return {lease: part for lease, part in apportion(minor, positive or {"": 0}).items() if part}

    def fields(self, lease_id: str, offering: Offering | None) -> charge_fields.Fields:
        """Return the fields of a lease or volume; none for an empty id."""
        resource = self._found.get(lease_id)
        return charge_fields.resource_fields(lease_id, resource, offering) if resource and offering else {}


def credit_rows(
    invoice: Invoice,
    credited: Sequence[CreditedLine],
    offerings: Mapping[str, Offering],
    resources: CreditedResources,
) -> Iterator[tuple[str, charge_fields.Fields]]:
    """Yield project and fields of each row; together they are minus the credit notes' totals."""
    for each in credited:
        offering = offerings.get(each.line.offering_id)
        shared = _note_fields(invoice, each)
        for lease_id, minor in resources.shares(each, each.minor).items():
            cost = charge_fields.format_pico(-charge_fields.minor_to_pico(minor, invoice.currency))
            yield (
                each.line.project_id,
                {
                    **charge_fields.service_fields(offering),
                    **resources.fields(lease_id, offering),
                    **dict.fromkeys(charge_fields.COSTS, cost),
                    "ChargeCategory": "Credit",
                    "ChargeDescription": f"Credit note {each.note}: {each.note.reason}",
                    **shared,
                },
            )
        if each.tax_minor:
            tax = charge_fields.tax_fields(invoice, each.line, offering, minor=-each.tax_minor)
            yield each.line.project_id, tax | shared


def _note_fields(invoice: Invoice, credited: CreditedLine) -> charge_fields.Fields:
    """Return the number of a credit note and the month of its issue."""
    month = month_of(invoice.period.time_zone, credited.note.issued_at)
    return {
        "InvoiceId": str(credited.note),
        "ChargeClass": "Correction",
        "ChargeFrequency": "One-Time",
        **charge_fields.period_fields("ChargePeriod", invoice.period.span.lower, invoice.period.span.upper),
        **charge_fields.period_fields("BillingPeriod", month.start, month.end),
    }
