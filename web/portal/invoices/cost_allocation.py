"""Cost allocation of an invoice: by project, by requester, or by a tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from billing.models import Invoice
from billing.services.reports.cost_allocation import CostShare, allocate_cost, invoice_tag_names
from web.http.query_strings import LinkOption, chosen_value, link_options
from web.portal.page_context import PageRequest

TAG_PREFIX = "tag:"


@dataclass(frozen=True, slots=True)
class CostAllocation:
    """An invoice's parts for one grouping, and the groupings offered."""

    shares: Sequence[CostShare]
    key_heading: str
    groupings: list[LinkOption]
    taxed: bool
    query: str  # the grouping as the API's parameters

    @property
    def total(self) -> int:
        return sum(share.total for share in self.shares)

    @property
    def credited(self) -> int:
        return sum(share.credited for share in self.shares)

    @property
    def label_columns(self) -> int:
        """The number of columns before that of the amount."""
        return 2 + (2 if self.taxed else 0) + (1 if self.credited else 0)


def read_cost_allocation(request: PageRequest, invoice: Invoice) -> CostAllocation:
    """Return the invoice's parts for the grouping in the query string."""
    tags = invoice_tag_names(invoice)
    groupings = [("project", _("Project")), ("user", _("User")), *((f"{TAG_PREFIX}{tag}", tag) for tag in tags)]
    grouping = chosen_value(request, "by", dict(groupings), "project")
    by, tag = ("tag", grouping.removeprefix(TAG_PREFIX)) if grouping.startswith(TAG_PREFIX) else (grouping, "")
    parameters = {"group_by": by, "tag": tag} if tag else {"group_by": by}
    return CostAllocation(
        shares=allocate_cost(invoice, by=by, tag=tag),
        key_heading=dict(groupings)[grouping],
        groupings=link_options(request, "by", groupings, grouping),
        taxed=bool(invoice.tax),
        query=urlencode(parameters),
    )
