"""Eight at once for shares of cards: strangers never meet on one, and where they may, everybody has a place."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from broker.models import Allocation, Cluster, Lease
from broker.services.leases import placing
from ports import clock, doorbell
from tenants.services.walls import as_sweep, as_tenant
from tests.broker.test_races import Crowd, ask, finish
from tests.database import OwnDatabase
from tests.world import NOW, Home, cards, fresh, home, soft_offering

PARALLEL, TIMES = 8, 5


@pytest.fixture
def eight(own_database: OwnDatabase) -> Iterator[Crowd]:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        crowd = Crowd(PARALLEL)
        yield crowd
        crowd.go_home()


def ask_and_place(owner: Home, offering_id: str, number: int) -> Lease:
    lease = ask(owner, offering_id, number)
    with as_tenant(owner.tenant.pk):
        placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
    return lease


def at_once(crowd: Crowd, tenants: list[Home], offering_id: str) -> list[Lease]:
    """Let each in turn of the tenants ask for a share, all at one moment; those not placed look again afterwards."""
    leases = crowd.all_at_once(lambda n: ask_and_place(tenants[n % len(tenants)], offering_id, n))
    for lease in leases:
        with as_tenant(lease.tenant_id):
            if (again := fresh(lease)).state == "queued":
                placing.place(again, now=NOW)
    return [fresh(lease) for lease in leases]


def tenants_by_card() -> dict[str, set[str]]:
    found = defaultdict(set)
    with as_sweep():
        for gpu, tenant in Allocation.objects.filter(released_at=None).values_list("gpu_id", "tenant_id"):
            found[gpu].add(tenant)
    return dict(found)


def test_eight_strangers_at_once_never_meet_on_a_card_they_share(eight: Crowd) -> None:
    cards(3)
    tenants, quarter = [home(f"Tenant {n}") for n in range(4)], soft_offering().pk
    for _ in range(TIMES):
        leases = at_once(eight, tenants, quarter)
        on = tenants_by_card()
        assert len(on) == 3
        assert all(len(theirs) == 1 for theirs in on.values())
        # Who has a card finds room on it for both, and whoever has none waits.
        assert [lease.state == "provisioning" for lease in leases] == [
            lease.tenant_id in set.union(*on.values()) for lease in leases
        ]
        for lease in leases:
            finish(lease.pk, lease.tenant_id)


def test_where_strangers_may_meet_eight_quarters_at_once_find_a_place_each(eight: Crowd) -> None:
    cards(3)
    Cluster.objects.update(shares_soft_cards=True)
    tenants, quarter = [home(f"Tenant {n}") for n in range(4)], soft_offering().pk
    for _ in range(TIMES):
        leases = at_once(eight, tenants, quarter)
        assert {lease.state for lease in leases} == {"provisioning"}
        with as_sweep():
            held = Allocation.objects.filter(released_at=None)
            places = {(place.gpu_id, place.placement.lower) for place in held}
        assert len(places) == PARALLEL
        for lease in leases:
            finish(lease.pk, lease.tenant_id)
