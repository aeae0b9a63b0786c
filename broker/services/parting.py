"""Before a cluster is given up: which leases still count on it."""

from collections.abc import Collection

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import order_name, order_parts
from tenants.services.walls import as_sweep

S = LeaseState
COUNT_ON_IT = (
    S.PROVISIONING,
    S.ACTIVE,
    S.STOPPING,
)  # what is releasing is charged no more, and only has to go


def counting_on(orders: Collection[str]) -> list[str]:
    """Name the leases that some orders, as a cluster names what it runs, are the present generation of."""
    leases = {order_parts(name)[0] for name in orders}
    with as_sweep():
        rows = Lease.objects.filter(pk__in=leases, state__in=COUNT_ON_IT).order_by("id")
        standing = list(rows.values_list("id", "generation"))
    return [pk for pk, generation in standing if order_name(pk, generation) in orders]
