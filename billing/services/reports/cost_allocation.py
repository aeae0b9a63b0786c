"""Allocate an invoice's cost by project, by requesting user, or by a lease tag.

Every line is apportioned separately, in whole minor units by the largest remainder, so that the
parts add up to the line, and all of them to the invoice. What was credited of a line is apportioned in
the same way; a credit for one lease goes where that lease goes.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from billing.domain.apportionment import apportion
from billing.models import Invoice, InvoiceLine
from billing.services.adjustments.month_amounts import LineKey
from billing.services.rating import cancelled_charges
from billing.services.reports.credited_lines import credited_lines
from broker.models import Lease
from ports.postgres.sql_statements import query_rows
from tenants.models import Project

ALLOCATION_KEYS = ("project", "user", "tag")
NO_KEY_NAMES = {"project": "no project", "user": "no user"}


@dataclass(frozen=True, slots=True)
class CostShare:
    """Share of one project, user or tag value; an empty key collects the rest."""

    key: str
    name: str
    unit_seconds: int
    net: int
    tax: int
    credited: int = 0  # by credit notes, with its tax

    @property
    def total(self) -> int:
        """The cost after credit notes."""
        return self.net + self.tax - self.credited


def allocate_cost(invoice: Invoice, *, by: str, tag: str = "") -> list[CostShare]:
    """Return the shares, the largest first.

    They add up to the invoice less its credit notes. Call in the tenant's RLS scope.
    """
    later = cancelled_charges.later_corrections(invoice)
    rows = query_rows("billing/reports/allocated_costs", period=invoice.period_id, by=by, tag=tag, without=later)
    exact = defaultdict[LineKey, dict[str, int]](dict)
    seconds, net, tax, credited = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for project, offering, price, key, unit_seconds, num in rows:
        exact[project, offering, price][key or ""] = int(num)
        seconds[key or ""] += unit_seconds
    for line in invoice.lines.order_by("n"):
        weights = _line_weights(exact, line)
        net.update(apportion(line.minor, weights))
        tax.update(apportion(line.tax_minor, weights))
    for each in credited_lines(invoice):
        weights = _line_weights(exact, each.line)
        if each.lease_id:
            weights = {_lease_key(each.lease_id, each.line, by, tag): 1}
        credited.update(apportion(each.minor, weights))
        credited.update(apportion(each.tax_minor, weights))
    names = {"": NO_KEY_NAMES.get(by, f"without the tag {tag}")} | _key_names(by, {*net, *credited})
    found = [
        CostShare(key, names.get(key, key), seconds[key], net[key], tax[key], credited[key])
        for key in dict.fromkeys((*net, *credited))
    ]
    return sorted(found, key=lambda part: (-part.total, part.name, part.key))


def _line_weights(exact: dict[LineKey, dict[str, int]], line: InvoiceLine) -> dict[str, int]:
    """Return the cost of a line by key.

    A line without charges cannot be attributed: it goes to the empty key.
    """
    return exact.get((line.project_id, line.offering_id, line.price_version_id)) or {"": 0}


def _lease_key(lease_id: str, line: InvoiceLine, by: str, tag: str) -> str:
    """Return the key that a lease of a line belongs to."""
    if by == "project":
        return line.project_id
    requested_by, tags = Lease.objects.values_list("requested_by", "tags").get(pk=lease_id)
    return str(requested_by) if by == "user" else str(tags.get(tag, ""))


def invoice_tag_names(invoice: Invoice) -> list[str]:
    """Return the names of the tags on an invoice's leases, sorted."""
    return [name for (name,) in query_rows("billing/reports/invoice_tags", period=invoice.period_id)]


def _key_names(by: str, keys: set[str]) -> dict[str, str]:
    if by == "project":
        return dict(Project.objects.filter(pk__in=keys).values_list("pk", "name"))
    if by == "user":
        leases = Lease.objects.filter(requested_by__in=keys - {""}).order_by("created_at")
        return dict(leases.values_list("requested_by", "requested_by_label"))
    return {}
