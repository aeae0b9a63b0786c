"""What is due at one moment is looked at in one order, however PostgreSQL keeps its rows."""

from broker.models import Lease
from broker.services import reconcile
from tenants.services.walls import as_tenant
from tests.world import Life, cards, home, offering


def test_leases_that_are_due_at_one_moment_come_in_the_order_of_their_ids(life: Life) -> None:
    cards(1)
    kestrel = home()
    leases = [life.lease(kestrel, offering("1g.10gb")).pk for _ in range(4)]
    with as_tenant(kestrel.tenant.pk):
        for lease in reversed(leases):  # the one that was written last lies behind the others
            Lease.objects.filter(pk=lease).update(due_at=life.now)
    assert [lease for _, lease, _ in reconcile.due(now=life.now)] == leases
