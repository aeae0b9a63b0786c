"""Every cluster is asked by its own provisioner, and one that stays silent holds up no other."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster
from broker.provisioners.base import Observation, Order, Remains, Seen, Unanswered, order_name
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, orphans
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, offering


class Remembered:
    """A provisioner of one cluster that remembers what it was asked."""

    made: dict[str, "Remembered"] = {}

    def __init__(self, cluster_id: str) -> None:
        self.asked: list[str] = []
        self.there: list[str] = []
        self.silent = False
        self.made[cluster_id] = self

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        self.asked.append(f"ensure {order.name}")
        return Observation(Seen.READY, "readiness verified")

    def observe(self, order: Order, *, now: datetime) -> Observation:
        return Observation(Seen.READY)

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        self.asked.append(f"let go {' '.join(each.name for each in remains)}")

    def remove(self, order: Order, *, now: datetime) -> Observation:
        self.asked.append(f"remove {order.name}")
        return Observation(Seen.GONE)

    def names(self) -> list[str]:
        if self.silent:
            raise Unanswered("nobody is there")
        return list(self.there)

    def remove_named(self, name: str, *, now: datetime) -> None:
        self.there.remove(name)


@pytest.fixture
def remembered(settings: Any) -> Iterator[dict[str, Remembered]]:
    settings.PROVISIONERS = {"remembered": f"{__name__}.Remembered"}
    Remembered.made.clear()
    yield Remembered.made
    clusters._of_cluster.cache_clear()


def test_a_lease_is_made_real_by_the_provisioner_of_its_cluster(
    life: Life, remembered: dict[str, Remembered]
) -> None:
    cards(1)
    Cluster.objects.update(provisioner="remembered")
    kestrel = home()
    lease = life.lease(kestrel, offering())
    life.go(60)
    assert fresh(lease).state == "active"
    with as_tenant(kestrel.tenant.pk):
        order = order_of(fresh(lease))
    (cluster,) = Cluster.objects.all()
    assert (order.cluster, order.slices[0].host, order.slices[0].grid) == (cluster.pk, "n01", 8)
    assert order.paid_until == fresh(lease).ends_at
    assert remembered[cluster.pk].asked == [f"ensure {order.name}"]


def test_a_cluster_without_one_of_its_own_is_simulated(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    with as_tenant(lease.tenant_id):
        assert isinstance(clusters.provisioner_of(order_of(fresh(lease))), SimulatedProvisioner)


def test_orphans_are_taken_down_in_every_cluster_that_answers(
    life: Life, remembered: dict[str, Remembered]
) -> None:
    cards(1)
    for name in ("east", "west"):
        made = Cluster.objects.create(
            name=name, region="eu", provisioner="remembered", driver="device_plugin", created_at=life.now
        )
        over = life.lease(home(name), offering(), LeaseState.RELEASED)
        clusters._of_cluster(f"{__name__}.Remembered", made.pk).there = [order_name(over.pk, 1)]  # type: ignore[attr-defined]
    east, west = remembered.values()
    east.silent = True
    assert orphans.remove_all(now=life.now) == 1
    assert (len(east.there), west.there) == (1, [])
    east.silent = False
    assert orphans.remove_all(now=life.now) == 1
