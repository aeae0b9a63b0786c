"""What is sold of cards that do not publish all that their model could be cut into."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, Offering
from broker.services import capacity, catalogue
from broker.services.fleet.cards import load
from broker.services.leases.placing import why_not
from broker.services.moving.pools import pools_of
from broker.services.placement.engine import up_to_date
from broker.services.placement.seating import Wish
from tenants.services.walls import as_staff, as_tenant
from tests.broker.services.movers import apart, moves, proposed
from tests.world import NOW, Life, cards, fresh, held, home, offering

ONES = {"1g.10gb": [2, 3], "card": [0]}


@pytest.fixture
def narrow(life: Life) -> None:
    """Two cards, the first of which publishes two small slices and itself."""
    cards(2)
    Gpu.objects.filter(index=0).update(published=ONES)


@pytest.mark.usefixtures("narrow")
def test_what_no_card_publishes_is_neither_available_nor_previewed() -> None:
    kestrel = home()
    asked = [offering(name) for name in ("card", "3g.40gb", "1g.10gb")]
    with as_tenant(kestrel.tenant.pk):
        assert list(capacity.availability(asked).values()) == [2, 2, 9]
        Gpu.objects.update(published=ONES)
        assert list(capacity.availability(asked).values()) == [2, 0, 4]
        assert capacity.preview(offering("3g.40gb")) is None
    assert capacity.could_ever_fit(offering("3g.40gb"), quantity=2, same_node=False) == 0
    Cluster.objects.update(
        recuts=True
    )  # which cuts nodes by a label: never those that are cut for each lease
    assert capacity.could_ever_fit(offering("3g.40gb"), quantity=2, same_node=False) == 0


@pytest.mark.usefixtures("narrow")
def test_a_slice_lies_where_its_card_publishes_it(life: Life) -> None:
    kestrel = home()
    Gpu.objects.filter(index=1).update(health="unhealthy")
    small = [life.lease(kestrel, offering("1g.10gb")) for _ in range(2)]
    assert sorted(held(lease)[0].placement.lower for lease in small) == [2, 3]
    third = life.ask(kestrel, offering("1g.10gb"))
    life.run()
    assert fresh(third).state == LeaseState.QUEUED


def waits(what: Offering) -> str:
    with up_to_date() as stock:
        return why_not(Wish(what), stock)


@pytest.mark.usefixtures("narrow")
def test_a_lease_that_waits_for_what_is_not_published_is_told_so_and_starts_when_it_is(life: Life) -> None:
    kestrel = home()
    Gpu.objects.update(published=ONES)
    lease = life.ask(kestrel, offering("3g.40gb"))
    life.run()
    told = "Waits for H100 3g.40gb: no card in eu-north can be cut into it now; those that are cut for each lease"
    assert fresh(lease).state == LeaseState.QUEUED
    assert fresh(lease).waits_for == f"{told} do not publish it." == waits(offering("3g.40gb"))
    Gpu.objects.update(published=None)
    life.sweep()
    life.run(30)
    assert fresh(lease).state == LeaseState.ACTIVE


def test_a_card_that_publishes_it_no_longer_keeps_the_lease_that_has_it_and_takes_no_other(
    life: Life,
) -> None:
    cards(1)
    kestrel = home()
    lease = life.lease(kestrel, offering("3g.40gb"))
    Gpu.objects.update(published={"1g.10gb": [0, 1, 4, 5]})
    for _ in range(3):
        life.sweep()
        life.run(120)
    assert fresh(lease).state == LeaseState.ACTIVE
    start = held(lease)[0].placement.lower
    with as_tenant(kestrel.tenant.pk):
        told = capacity.availability([offering("3g.40gb"), offering("1g.10gb")])
    assert list(told.values()) == [0, 2]
    life.release(lease)
    life.run(30)
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([offering("1g.10gb")]) == {offering("1g.10gb").pk: 4}
    assert start in (0, 4)


@pytest.mark.usefixtures("narrow")
def test_no_offering_is_drafted_that_no_card_could_become(life: Life) -> None:
    Offering.objects.all().delete()
    Gpu.objects.update(published=ONES)
    assert catalogue.derive_offerings(now=NOW) == 4  # on demand and spot
    assert set(Offering.objects.values_list("profile", flat=True)) == {"card", "1g.10gb"}
    Gpu.objects.filter(index=1).update(published=None)
    catalogue.derive_offerings(now=NOW)
    assert Offering.objects.filter(profile="3g.40gb").exists()


@pytest.mark.usefixtures("narrow")
def test_the_map_counts_as_of_no_use_what_is_not_published(life: Life) -> None:
    kestrel = home()
    Gpu.objects.update(published={"1g.10gb": [2, 3]})
    life.lease(kestrel, offering("1g.10gb"))
    with as_staff():
        lost = {card.index: card.wares.lost(card.state).bit_count() for card in load()}
    assert sorted(lost.values()) == [6, 6]


@pytest.mark.usefixtures("narrow")
def test_leases_are_moved_among_cards_that_can_all_be_cut_alike(life: Life) -> None:
    Cluster.objects.update(driver="dra")
    pools = pools_of(Cluster.objects.get(), now=life.now)
    assert [[card.index for card in pool.cards] for pool in pools] == [[0], [1]]


def test_of_cards_of_one_model_those_are_planned_where_most_is_won(life: Life) -> None:
    cards(3)
    narrow = Gpu.objects.filter(index=0)
    narrow.update(published=ONES, health="unhealthy")
    apart(life, home("Kestrel"), home("Swift"), movable=True)
    narrow.update(health="healthy")
    assert [len(pool.cards) for pool in pools_of(Cluster.objects.get(), now=life.now)] == [1, 2]
    (move,) = moves(proposed(life))
    assert {move.from_gpu.index, move.to_gpu.index} == {1, 2}
