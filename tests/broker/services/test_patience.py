"""Who has waited for an hour holds the younger back, but only while there is something to wait for."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError

from broker.models import Allocation, Gpu, Health, Lease
from broker.services import inventory
from broker.services.inventory import Rack
from broker.services.leases import bursts, openings, placing, reserving, serving
from broker.services.leases.precedence import PATIENCE
from tenants.services.walls import as_sweep, as_tenant
from tests.world import MODEL, OPERATOR, REGION, Home, Life, cards, fleet, fresh, held, home, offering

POOL = (MODEL, REGION)


def test_a_gang_that_the_cards_in_service_cannot_hold_halts_nobody(life: Life) -> None:
    cards(4)
    kestrel = home("Kestrel")
    running = life.lease(kestrel, offering("card"))
    gang = life.ask(kestrel, offering("card"), quantity=4)
    life.run()
    elsewhere = Gpu.objects.exclude(pk=held(running)[0].gpu_id).earliest("index")
    inventory.set_health(elsewhere, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    life.clock.at += PATIENCE + timedelta(seconds=1)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert (fresh(gang).state, fresh(small).state) == ("queued", "provisioning")


def test_who_is_held_back_is_told_behind_what(life: Life) -> None:
    cards(4)
    kestrel, swift = home("Kestrel"), home("Swift")
    running = life.lease(kestrel, offering("card"), max_duration_s=40 * 3600)
    gang = life.ask(kestrel, offering("card"), quantity=4)
    life.run()
    life.clock.at += PATIENCE + timedelta(seconds=1)
    small, other = life.ask(swift, offering("1g.10gb")), life.ask(kestrel, offering("1g.10gb"))
    life.run()
    for lease in (small, other):
        assert fresh(lease).state == "queued"
        assert fresh(lease).waits_for == (
            f"Waits behind an older request for 4 × {gang.offering.label}, which has waited for more than an hour"
            " and is placed first."
        )
    version = fresh(small).version
    serving.serve(POOL, now=life.now)
    assert fresh(small).version == version
    life.release(running)
    life.go(60)
    assert (fresh(gang).state, fresh(small).state) == ("active", "queued")
    assert "free H100 1g.10gb" in fresh(small).waits_for


def nodes_of(lease: Lease) -> set[str]:
    return {place.gpu.node.name for place in held(lease)}


@pytest.fixture
def two_nodes(life: Life) -> tuple[Home, Lease, Lease]:
    """One card of each of two nodes of two is taken: on one for two hours, on the other for ten."""
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2))
    kestrel = home("Kestrel")
    short = life.lease(kestrel, offering("card"), max_duration_s=2 * 3600)
    beside = life.lease(kestrel, offering("card"))
    long = life.lease(kestrel, offering("card"), max_duration_s=10 * 3600)
    life.release(beside)
    life.go(60)
    assert nodes_of(short) != nodes_of(long)
    return kestrel, short, long


def waits_too_long(life: Life, owner: Home, **wanted: Any) -> Lease:
    lease = life.ask(owner, offering("card"), quantity=2, same_node=True, **wanted)
    life.run()
    life.clock.at += PATIENCE + timedelta(seconds=1)
    assert fresh(lease).state == "queued"
    return lease


def test_the_node_that_is_free_first_is_kept_for_a_gang_and_others_go_elsewhere(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    free_first = nodes_of(short)
    gang = waits_too_long(life, kestrel)
    small = [life.ask(home("Swift"), offering("1g.10gb")) for _ in range(7)]
    last = life.ask(kestrel, offering("1g.10gb"))
    life.run()
    assert [nodes_of(lease) for lease in small] == 7 * [nodes_of(long)]
    assert fresh(last).state == "queued"
    assert fresh(last).waits_for.startswith(f"Waits behind an older request for 2 × {gang.offering.label}")
    life.go(3600)
    assert fresh(short).state == "released"
    assert nodes_of(gang) == free_first
    assert fresh(gang).state == "active"


def told(what: str, owner: Home, life: Life) -> tuple[int, bool]:
    """How many one is told to be free, and whether a quote says now."""
    with as_tenant(owner.tenant.pk):
        free = openings.count([offering(what)], now=life.now)
        return free[offering(what).pk], openings.preview(offering(what), now=life.now) is not None


def test_what_is_kept_for_others_is_not_told_to_be_free(
    life: Life, two_nodes: tuple[Home, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, swift = two_nodes[0], home("Swift")
    assert told("1g.10gb", swift, life) == (14, True)
    waits_too_long(life, kestrel)
    with monkeypatch.context() as crowded:
        crowded.setattr(reserving, "MOST", 0)  # then all who are younger wait
        assert told("1g.10gb", swift, life) == (0, False)
    free, now = told("1g.10gb", swift, life)
    assert (free, now) == (7, True)
    asked = [life.ask(swift, offering("1g.10gb")) for _ in range(free + 1)]
    assert told("1g.10gb", swift, life) == (free, True)  # nobody has looked at them yet
    life.run()
    assert [fresh(each).state for each in asked].count("queued") == 1
    assert told("1g.10gb", swift, life) == (0, False)


def test_of_two_alike_the_older_one_keeps_cards_for_both(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, _, long = two_nodes
    life.ask(kestrel, offering("card"), quantity=2, same_node=True)
    waits_too_long(life, kestrel)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert nodes_of(small) == nodes_of(long)


def test_who_could_not_be_kept_cards_for_holds_all_others_back(
    life: Life, two_nodes: tuple[Home, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, _, _ = two_nodes
    monkeypatch.setattr(reserving, "MOST", 0)
    gang = waits_too_long(life, kestrel)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert fresh(small).waits_for.startswith(f"Waits behind an older request for 2 × {gang.offering.label}")


def test_who_needs_what_an_older_one_keeps_comes_after_it_and_halts_nobody(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, _, long = two_nodes
    waiting = life.ask(kestrel, offering("card"), quantity=4)
    other = waits_too_long(life, kestrel)
    fits = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert [fresh(each).state for each in (waiting, other, fits)] == ["queued"] * 3  # all four are kept
    life.release(waiting)
    life.run()
    assert nodes_of(fits) == nodes_of(long)


def test_each_is_told_for_whom_the_cards_are_kept_that_it_would_have_had(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    pair = waits_too_long(life, kestrel)
    last = life.lease(kestrel, offering("card"), max_duration_s=3 * 3600)
    assert nodes_of(last) == nodes_of(long)
    one = life.ask(kestrel, offering("4g.40gb"))
    life.run()
    assert fresh(one).waits_for.startswith(f"Waits behind an older request for 2 × {pair.offering.label}")
    life.clock.at += PATIENCE - timedelta(minutes=10)
    assert fresh(short).state == "active"


def test_what_is_stuck_as_it_goes_is_counted_on_last(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, short, _ = two_nodes
    waits_too_long(life, kestrel)
    life.release(short)
    life.clock.at += reserving.GOES_WITHIN + timedelta(seconds=1)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    serving.serve(POOL, now=life.now)
    assert nodes_of(small) == nodes_of(short)


def test_equals_that_wait_too_long_are_not_each_looked_at(
    life: Life, two_nodes: tuple[Home, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, _, _ = two_nodes
    for _ in range(5):
        life.ask(kestrel, offering("card"), quantity=2, same_node=True)
    waits_too_long(life, kestrel)
    looked: list[object] = []
    room_for = reserving.room_for
    monkeypatch.setattr(
        reserving, "room_for", lambda *what, **how: looked.append(what) or room_for(*what, **how)
    )
    serving.serve(POOL, now=life.now)
    assert len(looked) == 1


def test_links_between_cards_are_more_than_a_number_of_them_and_halt_all_who_are_younger(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2, fabric=2))
    kestrel = home("Kestrel")
    taken = [life.lease(kestrel, offering("card")) for _ in range(3)]
    life.release(taken[1])
    life.go(60)
    assert len({node for lease in (taken[0], taken[2]) for node in nodes_of(lease)}) == 2
    linked = waits_too_long(life, kestrel, topology="nvlink")
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert fresh(small).waits_for.startswith(f"Waits behind an older request for 2 × {linked.offering.label}")
    version = fresh(small).version
    serving.serve(POOL, now=life.now)
    assert fresh(small).version == version


def test_a_node_that_is_too_small_for_a_gang_is_not_kept_for_it(life: Life) -> None:
    fleet(
        Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=1),
        Rack("north-2", REGION, MODEL, nodes=1, cards_per_node=2),
    )
    kestrel = home("Kestrel")
    taken = [life.lease(kestrel, offering("card")) for _ in range(3)]
    alone = next(lease for lease in taken if held(lease)[0].gpu.node.cluster.name == "north-1")
    waits_too_long(life, kestrel)
    life.release(alone)
    life.go(60)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert held(small)[0].gpu.node.cluster.name == "north-1"


def test_what_is_told_to_go_frees_its_card_before_anything_else(
    life: Life, two_nodes: tuple[Home, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    waits_too_long(life, kestrel)
    life.release(long)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    serving.serve(POOL, now=life.now)
    assert nodes_of(small) == nodes_of(short)


def test_a_stream_of_small_leases_keeps_no_gang_waiting(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2))
    kestrel, swift = home("Kestrel"), home("Swift")
    for number in range(12):  # one of them ends every few minutes
        life.lease(swift, offering("2g.20gb"), max_duration_s=1800 + 150 * number)
    gang = life.ask(kestrel, offering("card"), quantity=2, same_node=True)
    while fresh(gang).state == "queued":
        life.go(600)
        for _ in range(5):
            life.ask(swift, offering("2g.20gb"), max_duration_s=1800)
        assert life.now - gang.queues_since < 2 * PATIENCE
    with as_sweep():
        meanwhile = Allocation.objects.filter(held_at__gt=gang.queues_since + PATIENCE).exclude(lease=gang)
        assert meanwhile.filter(held_at__lt=held(gang)[0].held_at).exists()


def test_a_lease_that_cannot_even_be_read_holds_up_no_other(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    kestrel = home("Kestrel")
    broken, whole = life.ask(kestrel, offering("card")), life.ask(kestrel, offering("card"))
    place = placing.place

    def unwritable(choices: list[bursts.Choice], now: object) -> set[str]:
        assert broken.pk in {choice.row.id for choice in choices}
        raise DataError("timestamp too large (after year 10K)")

    def unreadable(lease: Lease, *, now: object, **more: object) -> bool:
        if lease.pk == broken.pk:
            raise DataError("timestamp too large (after year 10K)")
        return place(lease, now=now, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(bursts, "_take", unwritable)
    monkeypatch.setattr(placing, "place", unreadable)
    assert serving.serve(POOL, now=life.now) == 1
    assert (fresh(broken).state, fresh(whole).state) == ("queued", "provisioning")
