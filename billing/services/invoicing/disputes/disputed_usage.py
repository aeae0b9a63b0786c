"""Usage behind a disputed line, for the operator: each lease, when and how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min, Sum

from billing.models import InvoiceLine, RatedCharge
from broker.models import Lease


@dataclass(frozen=True, slots=True)
class DisputedUsage:
    """A lease with the unit-seconds that the line charges for it."""

    lease: str
    name: str
    since: datetime
    until: datetime
    seconds: int


def usage_on_line(line: InvoiceLine, *, most: int) -> Sequence[DisputedUsage]:
    """Return the leases of a line, most seconds first; two queries.

    Needs the line's invoice. Runs in the tenant's row-level security scope or as staff.
    """
    charges = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        project_id=line.project_id, offering_id=line.offering_id, price_version_id=line.price_version_id
    )
    sums = charges.values("lease_id").annotate(seconds=Sum("unit_seconds"), since=Min("s"), until=Max("e"))
    rows = list(sums.order_by("-seconds", "lease_id")[:most])
    names = dict(Lease.objects.filter(pk__in=[row["lease_id"] for row in rows]).values_list("pk", "name"))
    return [
        DisputedUsage(row["lease_id"], names[row["lease_id"]], row["since"], row["until"], row["seconds"])
        for row in rows
        if row["lease_id"] in names  # volumes have no lease
    ]
