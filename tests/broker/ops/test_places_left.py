"""What operators see of a place that its lease went on without: held still, but neither sold nor lived in."""

from datetime import timedelta

import pytest

from broker.domain.cuts import Cut
from broker.domain.repartition import Step
from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, LayoutChange, Lease, Node
from broker.services.fleet import cards, summary
from broker.services.fleet.uses import SCALE, Use
from broker.services.layouts import cards as layout_cards
from broker.services.layouts import pools, stepping
from tenants.services.walls import as_staff, as_tenant
from tests.broker.services.leavers import Moody, gone_on, other, two_clusters
from tests.world import Life

ONES = Cut.of(["1g.10gb"] * 7)


@pytest.fixture
def moody(life: Life, monkeypatch: pytest.MonkeyPatch) -> Moody:
    return two_clusters(monkeypatch)


def test_one_card_is_sold_where_one_lease_runs(life: Life, moody: Moody) -> None:
    gone_on(life, moody)
    with as_staff():
        read, whole = summary.read(), summary.of(cards.load())
    assert (read.active, read.sold) == (1, SCALE)
    assert whole == read


def test_the_map_shows_it_as_on_its_way_out_since_then_with_no_end(life: Life, moody: Moody) -> None:
    lease, first = gone_on(life, moody)
    with as_staff():
        by_cluster = {card.cluster_name: card for card in cards.load()}
    (left,), (lived_in,) = by_cluster[first].slices, by_cluster[other(first)].slices
    assert {left.lease, lived_in.lease} == {lease.pk}
    assert (left.state, left.use, left.ends_at) == (LeaseState.RELEASING, Use.RESERVED, None)
    with as_tenant(lease.tenant_id):
        assert left.since == lease.allocations.exclude(leaving_since=None).get().leaving_since
    assert (lived_in.state, lived_in.use, lived_in.ends_at) == (LeaseState.ACTIVE, Use.SOLD, lease.ends_at)


def test_cutting_the_node_it_left_does_not_hide_where_it_is(life: Life, moody: Moody) -> None:
    lease, first = gone_on(life, moody)

    def blinded(name: str) -> bool:
        LayoutChange.objects.all().delete()
        LayoutChange.objects.create(
            node=Node.objects.get(cluster__name=name),
            step=Step.CUTTING,
            wanted={},
            before={},
            planned_at=life.now,
            step_at=life.now,
            due_at=life.now,
        )
        with as_tenant(lease.tenant_id):
            return stepping.blinds(Lease.objects.get(pk=lease.pk))

    assert [blinded(first), blinded(other(first))] == [False, True]


def test_the_planner_waits_for_no_end_there_and_counts_its_demand_once(life: Life, moody: Moody) -> None:
    for card in Gpu.objects.all():
        layout_cards.cut_as(card, ONES)
    Cluster.objects.update(recuts=True)
    _, first = gone_on(life, moody, what="1g.10gb")

    def seen(name: str) -> tuple[int | None, dict[str, int]]:
        (pool,) = pools.pools_of(Cluster.objects.get(name=name).pk, now=life.now)
        (view,) = pool.views
        assert [card.held for card in view.cards] == [True]
        return view.waits_s, pool.demand

    (left_waits, left_demand), (waits, demand) = seen(first), seen(other(first))
    assert (left_waits, left_demand) == (None, {})
    assert waits is not None
    assert timedelta(seconds=waits) < timedelta(hours=2)
    assert demand["1g.10gb"] > 0
