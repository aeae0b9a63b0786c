"""What is taken away of an invoice as CSV: its lines, its charges, and its charges in the shape of FOCUS."""

from collections.abc import Iterator, Mapping

from billing.domain.money import decimal_string, fixed_point
from billing.domain.sheets import written
from billing.models import Invoice
from billing.services.exports import focus
from billing.services.exports.charges import PLACES, Billed, Carried, billed
from billing.services.papers.lines import told
from broker.models import Offering
from tenants.models import Project
from tenants.services.walls import as_tenant

KINDS = ("lines", "charges", "focus")
LINES = ("n", "project", "project_name", "offering", "what", "terms", "leases", "unit_seconds", "price_per_hour",
         "amount", "tax_category", "tax", "currency")  # fmt: skip
CHARGES = (
    "lease", "lease_name", "seq", "requested_by", "project", "project_name", "offering", "what", "price_version",
    "start", "end", "unit_seconds", "price_per_hour", "exact_numerator", "billed", "currency", "late",
)  # fmt: skip


def file_name(invoice: Invoice, kind: str) -> str:
    """Return what a file is called: invoice-2026-10-0001-charges.csv."""
    return f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}-{kind}.csv"


def text(invoice: Invoice, kind: str) -> Iterator[str]:
    """Yield the text of one of KINDS, a piece at a time. The invoice has its period and tenant at hand."""
    if kind == "focus":
        return written(focus.COLUMNS, focus.rows(invoice))
    if kind == "charges":
        return written(CHARGES, _charges(invoice))
    return written(LINES, _lines(invoice))


def _lines(invoice: Invoice) -> Iterator[tuple[object, ...]]:
    with as_tenant(invoice.tenant_id):
        lines = told(invoice)
    for each in lines:
        yield (
            each.line.n,
            each.line.project_id,
            each.project,
            each.line.offering_id if each.line.is_usage else each.line.kind,
            each.what,
            each.all_terms,
            each.line.leases,
            each.line.unit_seconds,
            "" if each.nano_per_hour is None else fixed_point(each.nano_per_hour, 9),
            decimal_string(each.line.minor, invoice.currency),
            each.line.tax_category,
            decimal_string(each.line.tax_minor, invoice.currency),
            invoice.currency,
        )


def _charges(invoice: Invoice) -> Iterator[tuple[object, ...]]:
    with as_tenant(invoice.tenant_id):
        projects = dict(Project.objects.for_tenant(invoice.tenant).values_list("pk", "name"))
        offerings = dict(Offering.objects.values_list("pk", "label"))
    for each in billed(invoice):
        if isinstance(each, Carried):
            yield _carried(each, projects, offerings, invoice.currency)
        else:
            yield _charge(each, projects, offerings, invoice.currency)


def _carried(
    each: Carried, projects: Mapping[str, str], offerings: Mapping[str, str], currency: str
) -> tuple[object, ...]:
    """Tell what the month takes off a line, or adds, beside its charges."""
    charge = each.charge
    line = [charge.project_id, projects.get(charge.project_id, ""), charge.offering_id]
    what = [f"{offerings.get(charge.offering_id, '')} {charge.label}".strip(), charge.price_version_id or ""]
    exact = [int(charge.exact_num), fixed_point(each.pico, PLACES), currency, charge.kind]
    return ("", "", "", "", *line, *what, "", "", "", "", *exact)


def _charge(
    each: Billed, projects: Mapping[str, str], offerings: Mapping[str, str], currency: str
) -> tuple[object, ...]:
    charge = each.charge
    return (
        charge.lease_id,
        each.lease.name,
        charge.seq,
        each.lease.by_label or each.lease.by,
        charge.project_id,
        projects.get(charge.project_id, ""),
        charge.offering_id,
        offerings.get(charge.offering_id, ""),
        charge.price_version_id,
        focus.moment(charge.s),
        focus.moment(charge.e),
        charge.unit_seconds,
        fixed_point(each.nano_per_hour, 9),
        int(charge.exact_num),
        fixed_point(each.pico, PLACES),
        currency,
        "late" if each.late else "",
    )
