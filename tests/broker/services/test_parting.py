"""Which leases count on a cluster that is to be given up."""

import pytest

from broker.domain.states import LeaseState, VolumeState
from broker.models import Allocation, Cluster, Volume
from broker.provisioners.base import order_name
from broker.services import parting
from tenants.services.walls import as_tenant
from tests.world import Life, cards, home, offering


@pytest.mark.parametrize(
    ("state", "counts"),
    [(LeaseState.PROVISIONING, True), (LeaseState.ACTIVE, True), (LeaseState.RELEASING, False)],
)
def test_only_what_starts_or_runs_there_counts_on_it(life: Life, state: LeaseState, counts: bool) -> None:
    cards(1)
    lease = life.lease(home(), offering(), state)
    there = [order_name(lease.pk, lease.generation), "nobody's", order_name("lse_" + "0" * 26, 1)]
    assert parting.counting_on(there) == ([lease.pk] if counts else [])


def test_what_a_lease_went_on_without_does_not_count(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    assert parting.counting_on([order_name(lease.pk, lease.generation + 1)]) == []
    assert parting.counting_on([]) == []


@pytest.mark.parametrize(
    ("uid", "provisioner", "is_there"),
    [
        ("u-1", "kubernetes", True),
        ("", "kubernetes", True),
        ("u-2", "kubernetes", False),
        ("", "simulated", False),
    ],
)
def test_what_goes_there_is_unfinished_until_it_is_gone(
    life: Life, uid: str, provisioner: str, is_there: bool
) -> None:
    cards(1)
    lease = life.lease(home(), offering(), LeaseState.RELEASING)
    Cluster.objects.update(uid=uid, provisioner=provisioner)
    assert parting.unfinished("u-1") == ([lease.pk] if is_there else [])
    with as_tenant(lease.tenant_id):
        Allocation.objects.update(released_at=life.now)
    assert parting.unfinished("u-1") == []


@pytest.mark.parametrize("where", ["there", "left there", "elsewhere"])
def test_a_volume_that_is_being_deleted_is_unfinished_where_something_of_it_is(
    life: Life, where: str
) -> None:
    cards(1)
    Cluster.objects.update(uid="u-1", provisioner="kubernetes")
    there = Cluster.objects.get()
    volume = life.volume(home())
    places = {"there": {"cluster": there}, "left there": {"left_in": [there.pk]}}
    with as_tenant(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(**places.get(where, {}))
    assert parting.unfinished("u-1") == [], "a volume that is kept is its tenant's, and stays"
    with as_tenant(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(state=VolumeState.DELETING)
    assert parting.unfinished("u-1") == ([] if where == "elsewhere" else [volume.pk])
