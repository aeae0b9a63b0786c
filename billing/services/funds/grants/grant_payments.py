"""Grants pay for a final invoice before the tenant's own money does."""

from datetime import datetime

from billing.domain.grants import AvailableGrant, LinePart, allocate_grants, limit_to_total, split_line
from billing.domain.money import exponent_of, to_minor
from billing.models import BillingPeriod, GrantDraw, Invoice, InvoiceLine
from billing.services.funds.grants import grant_balances, overrun_credits
from ports.postgres.sql_statements import query_rows
from tenants.models import Project


def draw_grants(invoice: Invoice, month: BillingPeriod, *, now: datetime) -> int:
    """Write what each grant pays of each line of a closing invoice; return the total.

    The caller posts it to the ledger at the end of the same transaction.
    """
    grant_balances.lock_grants(invoice.tenant_id)
    credits = grant_balances.usable_grants(invoice.tenant_id, invoice.currency)
    if not credits or invoice.total <= 0:
        return 0
    lines = {line.n: line for line in InvoiceLine.objects.filter(invoice=invoice).order_by("n")}
    parts = limit_to_total(_split_lines(invoice, lines, month, credits), invoice.total)
    found = allocate_grants(overrun_credits.limit_overrun_credit(credits, parts, invoice), parts)
    GrantDraw.objects.bulk_create(
        GrantDraw(tenant_id=invoice.tenant_id, grant_id=grant, invoice=invoice, line=lines[n], minor=minor, at=now)
        for (grant, n), minor in sorted(found.items())
    )
    return sum(found.values())


def _split_lines(
    invoice: Invoice, lines: dict[int, InvoiceLine], month: BillingPeriod, credits: list[AvailableGrant]
) -> list[LinePart]:
    """Split the lines where grants expire; two queries at most."""
    ends = sorted({each.expires_at for each in credits if each.expires_at and each.expires_at < month.span.upper})
    amounts_until = _cost_until(invoice, ends)
    nodes = {line.project_id for line in lines.values()}
    paths = dict(Project.objects.filter(pk__in=nodes).values_list("pk", "path"))
    return [
        part
        for n, line in lines.items()
        if line.minor > 0 and line.minor + line.tax_minor > 0
        for part in split_line(
            LinePart(
                n,
                tuple(paths.get(line.project_id, ())),  # no project: no project grant pays
                line.offering_id,
                month.span.upper,
                line.minor + line.tax_minor,
            ),
            {at: amounts_until.get((n, at), 0) * (line.minor + line.tax_minor) // line.minor for at in ends},
        )
    ]


def _cost_until(invoice: Invoice, ends: list[datetime]) -> dict[tuple[int, datetime], int]:
    """Return each line's cost up to each expiry, in minor units.

    A line without charges cost nothing by then.
    """
    if not ends:
        return {}
    places = exponent_of(invoice.currency)
    rows = query_rows("billing/funds/line_amounts_by_time", invoice=invoice.pk, period=invoice.period_id, moments=ends)
    return {(n, at): to_minor(int(exact), places) for n, at, exact in rows}
