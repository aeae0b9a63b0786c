"""Gangs of whole cards and how near those are to each other: asked for, placed so, or refused in words."""

from typing import Any

import pytest

from broker.domain.placement.topology import Link
from broker.domain.states import LeaseState
from broker.models import Gpu, Health, Lease
from broker.services import capacity
from broker.services.inventory import Rack, set_health
from broker.services.leases.request import PlacementImpossible
from broker.services.placement.engine import Keeper
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant
from tests.world import MODEL, OPERATOR, REGION, Home, Life, fleet, fresh, held, home, offering

PAIRS = Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=8, fabric=2, numa=4)


@pytest.fixture
def kestrel(life: Life) -> Home:
    fleet(PAIRS)
    return home("Kestrel")


def indexes(lease: Lease) -> list[int]:
    return sorted(Gpu.objects.get(pk=place.gpu_id).index for place in held(lease))


def break_down(life: Life, *broken: int) -> None:
    for card in Gpu.objects.filter(index__in=broken):
        set_health(card, Health.UNHEALTHY, reason="a test", actor=OPERATOR, now=life.now)


def mend(life: Life, index: int) -> None:
    set_health(Gpu.objects.get(index=index), Health.HEALTHY, reason="", actor=OPERATOR, now=life.now)


def ask(life: Life, owner: Home, quantity: int = 2, **more: Any) -> Lease:
    lease = life.ask(owner, offering("card"), quantity=quantity, **more)
    life.run()
    return fresh(lease)


def test_two_cards_by_nvlink_are_two_that_a_bridge_joins(life: Life, kestrel: Home) -> None:
    break_down(life, 0)
    lease = ask(life, kestrel, topology="nvlink")
    assert (lease.same_node, lease.topology, indexes(lease)) == (True, "nvlink", [2, 3])


def test_a_gang_on_one_node_takes_near_cards_where_it_may_and_any_where_it_must(
    life: Life, kestrel: Home
) -> None:
    break_down(life, 0, 3)
    assert indexes(ask(life, kestrel, same_node=True)) == [4, 5]
    assert indexes(ask(life, kestrel, same_node=True)) == [6, 7]
    assert indexes(ask(life, kestrel, same_node=True)) == [1, 2]


def test_a_gang_waits_for_cards_that_are_near_enough_and_is_told_so(life: Life, kestrel: Home) -> None:
    break_down(life, 0, 2, 4, 6)
    lease = ask(life, kestrel, topology="nvlink")
    assert (lease.state, held(lease)) == (LeaseState.QUEUED, [])
    assert "free together on one node whose cards reach each other by NVLink" in lease.waits_for
    mend(life, 4)
    life.run(5)
    assert indexes(fresh(lease)) == [4, 5]


def test_four_cards_below_one_processor_are_not_torn_between_two(life: Life, kestrel: Home) -> None:
    break_down(life, 1)
    assert indexes(ask(life, kestrel, 4, topology="numa")) == [4, 5, 6, 7]
    waiting = ask(life, kestrel, 4, topology="numa")
    assert waiting.state == LeaseState.QUEUED


def test_who_waits_for_links_does_not_hold_back_who_needs_none(life: Life, kestrel: Home) -> None:
    break_down(life, 0, 2, 4, 6)
    waiting, plain = ask(life, kestrel, topology="nvlink"), ask(life, kestrel, same_node=True)
    assert (waiting.state, plain.state) == (LeaseState.QUEUED, LeaseState.PROVISIONING)
    life.go(3605)
    assert fresh(waiting).state == LeaseState.QUEUED
    later = ask(life, kestrel)
    assert (
        later.state != LeaseState.QUEUED
    )  # links that are out of service cannot come free: nobody waits behind


@pytest.mark.parametrize(("topology", "quantity", "most"), [("nvlink", 3, 2), ("numa", 5, 4)])
def test_links_that_no_node_has_are_refused_and_nothing_is_held(
    life: Life, kestrel: Home, topology: str, quantity: int, most: int
) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        life.ask(kestrel, offering("card"), quantity=quantity, topology=topology)
    assert refusal.value.extra["most"] == most
    assert "or allow other links" in refusal.value.fix.text
    with as_tenant(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_where_nobody_tells_how_cards_are_linked_none_are_promised(life: Life) -> None:
    fleet()
    with pytest.raises(PlacementImpossible, match="by NVLink holds at most 0"):
        life.ask(home(), offering("card"), quantity=2, topology="nvlink")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"profile": "card", "quantity": 2, "topology": "bus"}, "'bus' is no way to reach a card"),
        ({"profile": "card", "quantity": 1, "topology": "numa"}, "One card has nothing to reach"),
        ({"profile": "3g.40gb", "quantity": 2, "topology": "nvlink"}, "only whole cards have links"),
    ],
)
def test_what_has_no_links_is_refused(life: Life, kestrel: Home, asked: dict[str, Any], why: str) -> None:
    what = offering(asked.pop("profile"))
    with pytest.raises(Invalid, match=why):
        life.ask(kestrel, what, **asked)


def test_a_gang_whose_links_were_taken_out_meanwhile_waits(life: Life, kestrel: Home) -> None:
    waiting = life.ask(kestrel, offering("card"), quantity=2, topology="nvlink")
    Gpu.objects.update(fabric="")
    life.run()
    assert fresh(waiting).state == LeaseState.QUEUED
    with as_tenant(kestrel.tenant.pk):
        assert capacity.preview(offering("card"), quantity=2, same_node=True, topology="nvlink") is None


def test_what_could_ever_be_had_counts_the_cards_of_a_node_that_are_near(life: Life, kestrel: Home) -> None:
    break_down(life, 0, 1, 2)
    card = offering("card")
    told = {
        in_service: capacity.could_ever_fit(
            card, quantity=4, same_node=True, topology="numa", in_service=in_service
        )
        for in_service in (False, True)
    }
    assert told == {False: 4, True: 4}
    break_down(life, 7)
    assert (
        capacity.could_ever_fit(card, quantity=4, same_node=True, topology="numa", in_service=True),
        capacity.could_ever_fit(card, quantity=4, same_node=True, topology="nvlink", in_service=True),
    ) == (3, 2)


def test_links_are_worked_out_once_and_again_when_a_card_says_otherwise(life: Life, kestrel: Home) -> None:
    keeper = Keeper()
    with keeper.up_to_date() as stock:
        (node,) = stock.by_node
        known = stock.links[node]
        assert stock.links[node] is known
        assert known.most(known.cards, Link.BRIDGE) == 2
        assert (dict(stock.links), len(stock.links)) == ({node: known}, 1)
        assert "nod_unheard_of" not in stock.links
    Gpu.objects.update(fabric="0")
    with keeper.up_to_date() as stock:
        assert stock.links[node].most(known.cards, Link.BRIDGE) == 8
