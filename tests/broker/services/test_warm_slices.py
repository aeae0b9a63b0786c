"""Slices are left cut when their leases have gone, and whoever asks for the same has them without waiting for a cut."""

from datetime import timedelta

import pytest

from broker.domain.geometry import Held
from broker.domain.placement.warmth import COLD, Warm
from broker.domain.states import Isolation
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, NodeState
from broker.services.catalogue import shape
from broker.services.leases import serving
from broker.services.placement.engine import Keeper
from tenants.services.walls import as_tenant
from tests.world import (
    MODEL,
    REGION,
    Home,
    Life,
    cards,
    held,
    home,
    ledger,
    node_of,
    offering,
    set_node,
)

ONE, TWO, THREE, FOUR, SEVEN, CARD = "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "card"
HARDWARE = Isolation.HARDWARE


def at(profile: str, start: int) -> Held:
    its = shape(MODEL, profile, HARDWARE)
    return Held(its.placed_at(start), its)


def left() -> list[Warm | None]:
    """Return what is left cut on each card, as a process that has just begun reads it."""
    with Keeper().up_to_date() as stock:
        return [card.warm for card in sorted(stock.cards.values(), key=lambda card: card.index)]


def end(life: Life, *leases: Lease) -> None:
    for lease in leases:
        life.release(lease)
    life.run(10)


def place_of(lease: Lease) -> tuple[int, int]:
    """Return the number of the card a lease lies on and its first unit there."""
    (place,) = held(lease)
    return Gpu.objects.get(pk=place.gpu_id).index, place.placement.lower


def two_halves(life: Life, owner: Home) -> tuple[int, int]:
    """Leave half of either card free, cut as a 3g on the one that comes second and as a 2g on the other."""
    cards(2)
    for _ in range(2):
        life.lease(owner, offering(FOUR))
    three, other = life.lease(owner, offering(THREE)), life.lease(owner, offering(THREE))
    first, second = place_of(three)[0], place_of(other)[0]
    end(life, three)
    two = life.lease(owner, offering(TWO))
    assert place_of(two) == (first, 4)
    end(life, two, other)
    return first, second


def test_the_next_lease_of_the_kind_goes_where_the_slice_is_still_cut_whoever_left_it(life: Life) -> None:
    first, second = two_halves(life, home("Kestrel"))
    assert (left()[first], left()[second]) == ({at(TWO, 4)}, {at(THREE, 4)})
    lease = life.lease(home("Swift"), offering(THREE))
    assert place_of(lease) == (second, 4)
    assert [step.cause for step in ledger(lease) if step.after == "provisioning"] == [
        f"placed on north-1 / n01 / card {second}, still cut like this"
    ]
    assert (left()[first], left()[second]) == ({at(TWO, 4)}, COLD)


def test_several_that_are_placed_at_once_go_where_theirs_are_still_cut(life: Life) -> None:
    kestrel = home()
    first, second = two_halves(life, kestrel)
    asked = [life.ask(kestrel, offering(THREE)) for _ in range(2)]
    serving.serve((MODEL, REGION), now=life.now)
    assert [place_of(lease) for lease in asked] == [(second, 4), (first, 4)]
    assert [", still cut like this" in ledger(lease)[-1].cause for lease in asked] == [True, False]


def test_a_card_that_was_had_whole_has_nothing_left(life: Life) -> None:
    cards(1)
    kestrel = home()
    end(life, life.lease(kestrel, offering(SEVEN)))
    assert left() == [{at(SEVEN, 0)}]
    end(life, life.lease(kestrel, offering(CARD)))
    assert left() == [COLD]


@pytest.mark.parametrize("driver", ["dra", "device_plugin", "hami"])
def test_where_a_driver_destroys_what_ended_or_never_cuts_nothing_is_left(life: Life, driver: str) -> None:
    cards(1)
    end(life, life.lease(home(), offering(ONE)))
    Cluster.objects.update(driver=driver)
    assert left() == [None]


def test_cards_that_are_cut_in_advance_are_always_cut(life: Life) -> None:
    cards(1)
    end(life, life.lease(home(), offering(ONE)))
    layout = [{"profile": THREE, "start": 0, "size": 4}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    assert left() == [None]


def test_what_was_left_before_a_node_was_away_is_not_counted_on(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.lease(kestrel, offering(ONE))
    node = node_of(lease)
    end(life, lease)
    life.run(60)
    for state in (NodeState.LOST, NodeState.READY):
        set_node(node, state, life)
    assert left() == [COLD]
    end(life, life.lease(kestrel, offering(SEVEN)))
    assert left() == [{at(SEVEN, 0)}]


def test_what_ended_before_something_nobody_knows_any_more_is_not_counted_on(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(ONE))
    end(life, lease)
    with as_tenant(lease.tenant_id):
        lease.allocations.update(profile="9g.90gb")
    assert left() == [COLD]


def test_a_card_that_was_ill_may_have_been_restarted(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(ONE))
    gpu = Gpu.objects.get(pk=held(lease)[0].gpu_id)
    end(life, lease)
    later = life.now + timedelta(minutes=1)
    Gpu.objects.filter(pk=gpu.pk).update(health_since=later)
    assert left() == [COLD]
