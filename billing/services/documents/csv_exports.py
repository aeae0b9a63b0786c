"""CSV exports of an invoice: rows and columns of its lines, charges and FOCUS records."""

from collections.abc import Iterator, Mapping

from billing.domain.csv_tables import render_csv
from billing.domain.money import decimal_string, format_fixed_point
from billing.models import Invoice
from billing.services.documents.charge_exports import BILLED_DECIMALS, BilledAdjustment, BilledCharge, billed_charges
from billing.services.documents.focus import focus_exports
from billing.services.documents.line_names import name_lines
from broker.models import Offering
from tenants.models import Project
from tenants.services.rls import tenant_scope

EXPORT_KINDS = ("lines", "charges", "focus")
LINE_HEADS = ("n", "project", "project_name", "offering", "what", "terms", "leases", "unit_seconds", "price_per_hour",
         "amount", "tax_category", "tax", "currency")  # fmt: skip
CHARGE_HEADS = (
    "lease", "lease_name", "seq", "requested_by", "project", "project_name", "offering", "what", "price_version",
    "start", "end", "unit_seconds", "price_per_hour", "exact_numerator", "billed", "currency", "late",
)  # fmt: skip


def csv_file_name(invoice: Invoice, kind: str) -> str:
    """Return the file name: invoice-2026-10-0001-charges.csv."""
    return f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}-{kind}.csv"


def csv_text(invoice: Invoice, kind: str) -> Iterator[str]:
    """Yield the CSV of one of KINDS in chunks.

    The invoice's period and tenant are prefetched.
    """
    if kind == "focus":
        return render_csv(focus_exports.COLUMNS, focus_exports.focus_rows(invoice))
    if kind == "charges":
        return render_csv(CHARGE_HEADS, _charge_rows(invoice))
    return render_csv(LINE_HEADS, _line_rows(invoice))


def _line_rows(invoice: Invoice) -> Iterator[tuple[object, ...]]:
    with tenant_scope(invoice.tenant_id):
        lines = name_lines(invoice)
    for each in lines:
        yield (
            each.line.n,
            each.line.project_id,
            each.project,
            each.line.offering_id if each.line.is_usage else each.line.kind,
            each.title,
            each.all_terms,
            each.line.leases,
            each.line.unit_seconds,
            "" if each.nano_per_hour is None else format_fixed_point(each.nano_per_hour, 9),
            decimal_string(each.line.minor, invoice.currency),
            each.line.tax_category,
            decimal_string(each.line.tax_minor, invoice.currency),
            invoice.currency,
        )


def _charge_rows(invoice: Invoice) -> Iterator[tuple[object, ...]]:
    with tenant_scope(invoice.tenant_id):
        projects = dict(Project.objects.filter(tenant=invoice.tenant).values_list("pk", "name"))
        offerings = dict(Offering.objects.values_list("pk", "label"))
    for each in billed_charges(invoice):
        if isinstance(each, BilledAdjustment):
            yield _adjustment_row(each, projects, offerings, invoice.currency)
        else:
            yield _charge_row(each, projects, offerings, invoice.currency)


def _adjustment_row(
    each: BilledAdjustment, projects: Mapping[str, str], offerings: Mapping[str, str], currency: str
) -> tuple[object, ...]:
    """Return the row of an adjustment, beside the charges of its line."""
    charge = each.charge
    line = [charge.project_id, projects.get(charge.project_id, ""), charge.offering_id]
    what = [f"{offerings.get(charge.offering_id, '')} {charge.label}".strip(), charge.price_version_id or ""]
    exact = [int(charge.exact_num), format_fixed_point(each.pico, BILLED_DECIMALS), currency, charge.kind]
    return ("", "", "", "", *line, *what, "", "", "", "", *exact)


def _charge_row(
    each: BilledCharge, projects: Mapping[str, str], offerings: Mapping[str, str], currency: str
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
        focus_exports.format_utc(charge.s),
        focus_exports.format_utc(charge.e),
        charge.unit_seconds,
        format_fixed_point(each.nano_per_hour, 9),
        int(charge.exact_num),
        format_fixed_point(each.pico, BILLED_DECIMALS),
        currency,
        "late" if each.late else "",
    )
