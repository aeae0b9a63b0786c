"""What grants pay of an invoice that becomes final, before its tenant's own money does."""

from datetime import datetime
from typing import Any

from django.db import connection

from billing.domain.granting import Credit, Part, drawn, sliced, within
from billing.domain.money import exponent_of, to_minor
from billing.models import BillingPeriod, GrantDraw, Invoice, InvoiceLine
from billing.services.grants import purse
from billing.services.statements import statement
from billing.services.wallets import overruns
from tenants.models import Project


def draw(invoice: Invoice, month: BillingPeriod, *, now: datetime) -> int:
    """Write down what each grant pays of which line of a draft that becomes final; return how much in all.

    The ledger is told by whoever makes the invoice final, at the end of the same transaction.
    """
    purse.alone(invoice.tenant_id)
    credits = purse.credits(invoice.tenant_id, invoice.currency)
    if not credits or invoice.total <= 0:
        return 0
    lines = {line.n: line for line in InvoiceLine.objects.filter(invoice=invoice).order_by("n")}
    parts = within(_parts(invoice, lines, month, credits), invoice.total)
    found = drawn(overruns.limited(credits, parts, invoice), parts)
    GrantDraw.objects.bulk_create(
        GrantDraw(
            tenant_id=invoice.tenant_id, grant_id=grant, invoice=invoice, line=lines[n], minor=minor, at=now
        )
        for (grant, n), minor in sorted(found.items())
    )
    return sum(found.values())


def _parts(
    invoice: Invoice, lines: dict[int, InvoiceLine], month: BillingPeriod, credits: list[Credit]
) -> list[Part]:
    """Cut the lines where grants end; two queries at most."""
    ends = sorted(
        {each.expires_at for each in credits if each.expires_at and each.expires_at < month.span.upper}
    )
    borders = _borders(invoice, ends)
    nodes = {line.project_id for line in lines.values()}
    paths = dict(Project.objects.filter(pk__in=nodes).values_list("pk", "path"))
    return [
        part
        for n, line in lines.items()
        if line.minor > 0 and line.minor + line.tax_minor > 0
        for part in sliced(
            Part(
                n,
                tuple(paths.get(line.project_id, ())),  # what is of no project, no project's grant pays
                line.offering_id,
                month.span.upper,
                line.minor + line.tax_minor,
            ),
            {at: borders.get((n, at), 0) * (line.minor + line.tax_minor) // line.minor for at in ends},
        )
    ]


def _borders(invoice: Invoice, ends: list[datetime]) -> dict[tuple[int, datetime], int]:
    """Return what each line had come to by each end, in minor units; what has no charges had come to nothing."""
    if not ends:
        return {}
    asked: dict[str, Any] = {"invoice": invoice.pk, "period": invoice.period_id, "moments": ends}
    with connection.cursor() as cursor:
        cursor.execute(statement("grant_borders"), asked)
        places = exponent_of(invoice.currency)
        return {(n, at): to_minor(int(exact), places) for n, at, exact in cursor.fetchall()}
