"""What ran on a disputed line, for whoever answers: each lease, and when and for how long it was charged there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min, Sum

from billing.models import InvoiceLine, RatedCharge
from broker.models import Lease


@dataclass(frozen=True, slots=True)
class Ran:
    """A lease, and what the line charges of it in unit-seconds."""

    lease: str
    name: str
    since: datetime
    until: datetime
    seconds: int


def on(line: InvoiceLine, *, most: int) -> Sequence[Ran]:
    """Return the leases of a line, most seconds first; two queries.

    Needs its invoice. Runs behind the tenant's wall or as staff.
    """
    charges = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        project_id=line.project_id,
        offering_id=line.offering_id,
        price_version_id=line.price_version_id,
    )
    sums = charges.values("lease_id").annotate(seconds=Sum("unit_seconds"), since=Min("s"), until=Max("e"))
    rows = list(sums.order_by("-seconds", "lease_id")[:most])
    names = dict(Lease.objects.filter(pk__in=[row["lease_id"] for row in rows]).values_list("pk", "name"))
    return [
        Ran(row["lease_id"], names[row["lease_id"]], row["since"], row["until"], row["seconds"])
        for row in rows
        if row["lease_id"] in names  # a volume is stored, and is no lease
    ]
