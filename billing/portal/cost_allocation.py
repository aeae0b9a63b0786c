"""Whom an invoice falls to, as its page shows it: by project, by who asked for the leases, or by a tag of theirs."""

from typing import Any
from urllib.parse import urlencode

from billing.models import Invoice
from billing.portal import calls
from billing.portal.addresses import chosen, options
from billing.portal.pages import PageRequest
from billing.services.cost_allocation import allocated, tags_of

TAG = "tag:"


def told(request: PageRequest, invoice: Invoice) -> dict[str, Any]:
    """Return the parts of an invoice as the address asks for them, and the ways in which it can ask."""
    tags = tags_of(invoice)
    ways = [("project", "Project"), ("user", "Who asked"), *((f"{TAG}{tag}", tag) for tag in tags)]
    way = chosen(request, "by", dict(ways), "project")
    by, tag = ("tag", way.removeprefix(TAG)) if way.startswith(TAG) else (way, "")
    parts = allocated(invoice, by=by, tag=tag)
    asked = {"by": by, "tag": tag} if tag else {"by": by}
    return {
        "parts": parts,
        "part_head": dict(ways)[way],
        "part_ways": options(request, "by", ways, way),
        "part_total": sum(part.total for part in parts),
        "call_allocation": calls.get(f"/invoices/{invoice.pk}/cost-allocation?{urlencode(asked)}"),
    }
