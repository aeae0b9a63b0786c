"""Invoice charges as FOCUS 1.2 rows (FinOps Open Cost and Usage Specification).

One row for each charge, or for each part of it that a commitment covers or not; one for the tax on each
line. Discounts are in the rows that they reduce. The month of a commitment is a purchase, and what it
covered or left unused is usage with an effective cost, so both costs add up to the invoice's total. Rows
of credit notes follow, with the credit note's number. What grants and the balance settle is payment, not
cost, and is not included. Columns that do not apply stay empty.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from billing.domain.apportionment import apportion
from billing.models import AdjustmentKind, Commitment, Invoice, InvoiceAdjustment, InvoiceLine, PriceVersion
from billing.services.adjustments import month_adjustments
from billing.services.adjustments.commitment_adjustments import commitment_span, commitments_in_force
from billing.services.documents import invoice_bundles
from billing.services.documents.charge_exports import read_charges
from billing.services.documents.document_parties import invoice_supplier
from billing.services.documents.focus import charge_fields
from billing.services.documents.focus.charge_costs import ChargeCosts
from billing.services.documents.focus.credit_rows import CreditedResources, credit_rows
from billing.services.documents.invoice_bundles import ChargedUsage
from billing.services.documents.line_names import line_key
from billing.services.reports.credited_lines import CreditedLine, credited_lines
from broker.models import Offering
from tenants.models import Project
from tenants.services.rls import tenant_scope

COLUMNS = charge_fields.COLUMNS
format_utc = charge_fields.format_utc


@dataclass(slots=True)
class FocusInvoice:
    """What the rows of an invoice are made of, read before the first of them."""

    invoice: Invoice
    shared: charge_fields.Fields
    projects: dict[str, str]
    offerings: dict[str, Offering]
    lines: list[InvoiceLine]
    list_prices: dict[str, list[PriceVersion]]
    charged: ChargedUsage
    carried: list[InvoiceAdjustment]
    costs: ChargeCosts
    commitments: dict[str, Commitment]
    credits: list[CreditedLine]
    resources: CreditedResources
    covered: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # effective cost by commitment

    def project(self, project_id: str) -> charge_fields.Fields:
        """Return the sub-account of a row."""
        return charge_fields.project_fields(project_id, self.projects)


def focus_rows(invoice: Invoice) -> Iterator[tuple[str, ...]]:
    """Yield the rows of an invoice whose period and tenant are prefetched."""
    with tenant_scope(invoice.tenant_id):
        read = _read_invoice(invoice)
    yield from _charge_rows(read)
    yield from _added_rows(read)
    for line in read.lines:
        if line.tax_minor:
            offering = read.offerings.get(line.offering_id)
            tax = charge_fields.tax_fields(invoice, line, offering, minor=line.tax_minor)
            yield charge_fields.focus_row(read.shared, read.project(line.project_id), tax)
    for project_id, credited in credit_rows(invoice, read.credits, read.offerings, read.resources):
        yield charge_fields.focus_row(read.shared, read.project(project_id), credited)


def _read_invoice(invoice: Invoice) -> FocusInvoice:
    charged, carried = invoice_bundles.read_charged_usage(invoice), month_adjustments.adjustments_of(invoice)
    lines = list(invoice.lines.order_by("n"))
    held = commitments_in_force(invoice.tenant_id, invoice.period, invoice.currency)
    credited = credited_lines(invoice)
    return FocusInvoice(
        invoice=invoice,
        shared=charge_fields.invoice_fields(invoice, invoice_supplier(invoice).name),
        projects=dict(Project.objects.filter(tenant=invoice.tenant).values_list("pk", "name")),
        offerings={each.pk: each for each in Offering.objects.select_related("gpu_model")},
        lines=lines,
        list_prices=_list_prices(invoice, lines),
        charged=charged,
        carried=carried,
        costs=ChargeCosts(invoice, {line: exact for line, (_, _, exact) in charged.sums.items()}, carried),
        commitments={each.pk: each for each in held},
        credits=credited,
        resources=CreditedResources({line_key(each.line) for each in credited}),
    )


def _charge_rows(read: FocusInvoice) -> Iterator[tuple[str, ...]]:
    for charge, resource in read_charges(read.invoice, read.charged):
        offering = read.offerings[charge.offering_id]
        price = int(charge.exact_num) // charge.unit_seconds
        listed = _list_price_at(read.list_prices.get(charge.offering_id, []), charge.s, otherwise=price)
        what = charge_fields.resource_fields(charge.lease_id, resource, offering)
        line = charge.project_id, charge.offering_id, charge.price_version_id
        read.resources.add(line, charge.lease_id, resource, int(charge.exact_num))
        for piece in read.costs.split(charge):
            if piece.cover and not piece.cover.late:
                read.covered[piece.cover.commitment.pk] += piece.pico
            fields = charge_fields.charge_fields(charge, piece, offering, listed)
            yield charge_fields.focus_row(read.shared, read.project(charge.project_id), fields, what)


def _added_rows(read: FocusInvoice) -> Iterator[tuple[str, ...]]:
    """Yield the months of commitments, what was not used of them, and minimums."""
    invoice = read.invoice
    unused = {each.source: each for each in read.carried if each.kind == AdjustmentKind.SHORTFALL}
    shortfall = _added_costs(read, AdjustmentKind.SHORTFALL)
    for commitment in read.commitments.values():
        left = shortfall.get(commitment.pk, 0)
        since, until = commitment_span(commitment, invoice.period)
        seconds = commitment.units * int((until - since).total_seconds())
        bought = charge_fields.purchase_fields(invoice, commitment, seconds, pico=read.covered[commitment.pk] + left)
        yield charge_fields.focus_row(read.shared, bought)
        if commitment.pk in unused:
            rest = charge_fields.unused_fields(invoice, commitment, unused[commitment.pk].units, pico=left)
            yield charge_fields.focus_row(read.shared, rest)
    minimums = _added_costs(read, AdjustmentKind.MINIMUM)
    for each in read.carried:
        if each.kind == AdjustmentKind.MINIMUM:
            yield charge_fields.focus_row(
                read.shared, charge_fields.added_fields(invoice, each, pico=minimums[each.source])
            )


def _added_costs(read: FocusInvoice, kind: str) -> dict[str, int]:
    """Return the shares of an added line by source, in 10⁻¹² currency units."""
    carried = [each for each in read.carried if each.kind == kind]
    line = next((each for each in read.lines if each.kind == kind), None)
    if line is None:
        return {}
    whole = charge_fields.minor_to_pico(line.minor, read.invoice.currency)
    return apportion(whole, {each.source: int(each.exact_num) for each in carried})


def _list_prices(invoice: Invoice, lines: list[InvoiceLine]) -> dict[str, list[PriceVersion]]:
    """Return the list prices of everything on an invoice, by offering."""
    sold = {line.offering_id for line in lines}
    found: dict[str, list[PriceVersion]] = {offering: [] for offering in sold}
    for version in PriceVersion.objects.listed().filter(offering__in=sold, currency=invoice.currency):
        found[version.offering_id].append(version)
    return found


def _list_price_at(prices: list[PriceVersion], at: datetime, *, otherwise: int) -> int:
    """Return the list price at a time, or `otherwise` if there was none."""
    of = (each.nano_per_hour for each in prices if at in each.valid)
    return next(of, otherwise)
