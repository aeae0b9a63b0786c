"""Who of a tenant an invoice falls to: by project, by who asked for the leases, or by a tag of theirs.

Every line is shared on its own, in whole coins by the largest remainder, so that the parts come to the line, and all of
them to the invoice.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from django.db import connection

from billing.domain.sharing import shared
from billing.models import Invoice
from billing.services.statements import statement
from broker.models import Lease
from tenants.models import Project

WAYS = ("project", "user", "tag")
NOBODY = {"project": "no project", "user": "nobody in particular"}
Line = tuple[str, str, int]  # project, offering, price version


@dataclass(frozen=True, slots=True)
class Part:
    """What falls to one project, user or value of a tag; an empty key is what has none. Minor units."""

    key: str
    name: str
    unit_seconds: int
    minor: int  # before tax
    tax: int

    @property
    def total(self) -> int:
        return self.minor + self.tax


def allocated(invoice: Invoice, *, by: str, tag: str = "") -> list[Part]:
    """Return the parts, the largest first; they come to the invoice. Runs behind its tenant's wall."""
    asked: dict[str, Any] = {"period": invoice.period_id, "by": by, "tag": tag}
    with connection.cursor() as cursor:
        cursor.execute(statement("cost_allocated"), asked)
        rows = cursor.fetchall()
    exact = defaultdict[Line, dict[str, int]](dict)
    seconds, net, tax = Counter[str](), Counter[str](), Counter[str]()
    for project, offering, price, key, unit_seconds, num in rows:
        exact[project, offering, price][key or ""] = int(num)
        seconds[key or ""] += unit_seconds
    for line in invoice.lines.order_by("n"):
        # Nothing is known of who made a line of no charges: it falls to nobody in particular.
        weights = exact.get((line.project_id, line.offering_id, line.price_version_id)) or {"": 0}
        net.update(shared(line.minor, weights))
        tax.update(shared(line.tax_minor, weights))
    names = {"": NOBODY.get(by, f"without the tag {tag}")} | _names(by, set(net))
    found = [Part(key, names.get(key, key), seconds[key], net[key], tax[key]) for key in net]
    return sorted(found, key=lambda part: (-part.total, part.name, part.key))


def tags_of(invoice: Invoice) -> list[str]:
    """Return the names of tags that leases of an invoice have, in order."""
    with connection.cursor() as cursor:
        cursor.execute(statement("tags_on"), {"period": invoice.period_id})
        return [name for (name,) in cursor.fetchall()]


def _names(by: str, keys: set[str]) -> dict[str, str]:
    if by == "project":
        return dict(Project.objects.filter(pk__in=keys).values_list("pk", "name"))
    if by == "user":
        asked = Lease.objects.filter(requested_by__in=keys - {""}).order_by("created_at")
        return dict(asked.values_list("requested_by", "requested_by_label"))
    return {}
