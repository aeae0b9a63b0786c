"""Giving queued leases their places."""

from contextlib import nullcontext
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection

from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, Health, LayoutPolicy, Lease, Node, NodeState
from broker.services import capacity, reconcile
from broker.services.inventory import Rack
from broker.services.leases import placing, serving
from broker.services.leases.precedence import PATIENCE
from broker.services.placement.engine import Keeper, up_to_date
from broker.services.placement.seating import Wish
from tenants.services.walls import as_tenant
from tests.world import (
    MODEL,
    REGION,
    Home,
    Life,
    cards,
    fleet,
    fresh,
    held,
    home,
    ledger,
    node_of,
    offering,
    path,
    set_node,
    soft_offering,
)

POOL = (MODEL, REGION)


def test_a_lease_is_placed_at_once_and_says_where(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(), LeaseState.PROVISIONING)
    assert ledger(lease)[-1].cause == "placed on north-1 / n01 / card 0"
    assert fresh(lease).generation == 2
    assert len(held(lease)) == 1


def test_without_room_it_queues_with_a_plain_reason(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("card"))
    waiting = life.ask(kestrel, offering("card"))
    life.run()
    assert fresh(waiting).waits_for == (
        "Waits for one free H100 whole card. Every one in eu-north is taken; the next release starts it."
    )


def test_a_pool_without_a_card_in_service_says_so(life: Life) -> None:
    cards(1)
    Gpu.objects.update(health=Health.UNHEALTHY)
    waiting = life.ask(home(), offering("card"))
    life.run()
    assert "no card of this model is in service in eu-north" in fresh(waiting).waits_for


@pytest.mark.parametrize(
    ("taken", "words"), [(4, "None is free now."), (3, "One is free now."), (2, "2 are free now.")]
)
def test_a_gang_says_how_much_of_it_would_fit(life: Life, taken: int, words: str) -> None:
    cards(4)
    kestrel = home()
    for _ in range(taken):
        life.lease(kestrel, offering("card"))
    waiting = life.ask(kestrel, offering("card"), quantity=3, same_node=True)
    life.run()
    assert fresh(waiting).waits_for == f"Waits for 3 × H100 whole card, free together on one node. {words}"


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_a_gang_starts_whole_or_not_at_all(life: Life, nodes: int) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=nodes, cards_per_node=4 // nodes))
    kestrel = home()
    small = life.lease(kestrel, offering("card"))
    gang = life.ask(kestrel, offering("card"), quantity=4)
    life.run()
    assert held(gang) == []
    life.release(small)
    life.run(10)
    assert len(held(gang)) == 4
    assert Node.objects.filter(gpus__in=[place.gpu_id for place in held(gang)]).distinct().count() == nodes


def test_a_release_wakes_the_queue_at_once_and_without_a_timer(life: Life) -> None:
    cards(1)
    first, second = home("First"), home("Second")
    running = life.lease(first, offering("card"))
    waiting = life.ask(second, offering("card"))
    life.run()
    life.hints.clear()
    life.release(running)
    while fresh(running).state != LeaseState.RELEASED:
        life.run(0.1)
    assert fresh(waiting).state == LeaseState.PROVISIONING
    assert fresh(waiting).waits_for == ""


def test_the_oldest_that_fits_goes_first(life: Life) -> None:
    cards(1)
    kestrel, swift = home("Kestrel"), home("Swift")
    running = life.lease(kestrel, offering("card"))
    older = life.ask(swift, offering("card"))
    life.run(1)
    younger = life.ask(kestrel, offering("card"))
    life.release(running)
    life.run(2)
    assert (fresh(older).state, fresh(younger).state) == ("provisioning", "queued")


def test_a_small_one_may_pass_a_large_one(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("3g.40gb"))
    large = life.ask(kestrel, offering("card"))
    small = life.ask(kestrel, offering("1g.10gb"))
    life.run()
    assert (fresh(large).state, fresh(small).state) == ("queued", "provisioning")


def test_after_an_hour_nobody_younger_passes_any_more(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("3g.40gb"), max_duration_s=4 * 3600)
    large = life.ask(kestrel, offering("card"))
    life.run(PATIENCE.total_seconds() + 1)
    small = life.ask(kestrel, offering("1g.10gb"))
    life.run()
    assert (fresh(large).state, fresh(small).state) == ("queued", "queued")


def test_equals_in_a_queue_are_told_the_same_without_being_tried(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("card"))
    waiting = [life.ask(kestrel, offering("card")) for _ in range(5)]
    tried = []
    place = placing.place
    monkeypatch.setattr(placing, "place", lambda lease, **how: tried.append(lease.pk) or place(lease, **how))
    assert serving.serve(POOL, now=life.now) == 0
    assert tried == [waiting[0].pk]
    assert len({fresh(lease).waits_for for lease in waiting}) == 1
    assert fresh(waiting[4]).waits_for


def test_an_unchanged_reason_writes_nothing(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("card"))
    waiting = life.ask(kestrel, offering("card"))
    life.run()
    version = fresh(waiting).version
    serving.serve(POOL, now=life.now)
    assert fresh(waiting).version == version


def test_a_lease_that_somebody_else_placed_is_left_alone(life: Life) -> None:
    cards(2)
    kestrel = home()
    lease = life.ask(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        stale = Lease.objects.select_related("offering").get(pk=lease.pk)
        assert placing.place(fresh(lease), now=life.now)
        assert not placing.place(stale, now=life.now)
    assert len(held(lease)) == 1


@pytest.mark.parametrize("isolation", ["soft", "none"])
def test_strangers_never_share_a_card_without_a_wall(life: Life, isolation: str) -> None:
    cards(1)
    kestrel, swift = home("Kestrel"), home("Swift")
    quarter = soft_offering(isolation=isolation)
    first, second = life.lease(kestrel, quarter), life.lease(kestrel, quarter)
    assert held(first)[0].gpu_id == held(second)[0].gpu_id
    stranger = life.ask(swift, quarter)
    life.run()
    assert fresh(stranger).state == LeaseState.QUEUED
    with as_tenant(swift.tenant.pk):
        assert capacity.availability([quarter]) == {quarter.pk: 0}
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([quarter]) == {quarter.pk: 2}


@pytest.mark.parametrize("isolation", ["soft", "none"])
def test_strangers_share_such_a_card_where_its_owner_allows_it(life: Life, isolation: str) -> None:
    cards(1)
    Cluster.objects.update(shares_soft_cards=True)
    quarter = soft_offering(isolation=isolation)
    first, second = life.lease(home("Kestrel"), quarter), life.lease(home("Swift"), quarter)
    assert held(first)[0].gpu_id == held(second)[0].gpu_id
    assert held(second)[0].may_share


def divided_in_quarters() -> None:
    """Let every card be divided by its node, which gives a replica of whichever card it likes."""
    quarters = [
        {"profile": "quarter", "start": start, "size": 2, "isolation": "soft"} for start in (0, 2, 4, 6)
    ]
    Gpu.objects.update(layout_policy="fixed", fixed_layout=quarters)


def test_strangers_never_share_a_node_that_picks_the_card_itself(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2))
    divided_in_quarters()
    quarter, kestrel, swift, merlin = soft_offering(), home("Kestrel"), home("Swift"), home("Merlin")
    first = life.lease(kestrel, quarter)
    Gpu.objects.filter(pk=held(first)[0].gpu_id).update(health="unhealthy")  # whoever is on it is still there
    second = life.lease(swift, quarter)
    nodes = {Gpu.objects.get(pk=held(lease)[0].gpu_id).node_id for lease in (first, second)}
    assert len(nodes) == 2
    third = life.ask(merlin, quarter)
    life.run()
    assert fresh(third).state == LeaseState.QUEUED
    with as_tenant(merlin.tenant.pk):
        assert capacity.availability([quarter]) == {quarter.pk: 0}
    with as_tenant(swift.tenant.pk):
        assert capacity.availability([quarter]) == {quarter.pk: 7}


def test_a_stranger_who_came_to_the_node_meanwhile_is_seen(life: Life) -> None:
    cards(2)
    divided_in_quarters()
    quarter, kestrel, swift = soft_offering(), home("Kestrel"), home("Swift")
    late = life.ask(swift, quarter)
    with as_tenant(swift.tenant.pk):
        lease = Lease.objects.select_related("offering").get(pk=late.pk)
        with up_to_date() as stock:
            on_the_other = Wish(quarter, not_at=frozenset(sorted(stock.cards)[:1]))
            seating = placing.seat(on_the_other, stock)
        assert seating
    first = life.ask(kestrel, quarter)
    with as_tenant(kestrel.tenant.pk):
        assert placing.place(Lease.objects.select_related("offering").get(pk=first.pk), now=life.now)
    with as_tenant(swift.tenant.pk):
        assert not placing._hold(lease, seating, life.now)
    assert held(late) == []


def test_a_card_with_a_fixed_layout_sells_only_what_it_is_cut_into(life: Life) -> None:
    cards(1)
    layout = [{"profile": "3g.40gb", "start": 4, "size": 4}, {"profile": "2g.20gb", "start": 0, "size": 2}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    kestrel = home()
    lease = life.lease(kestrel, offering("3g.40gb"))
    place = held(lease)[0].placement
    assert (place.lower, place.upper) == (4, 8)
    refused = life.ask(kestrel, offering("1g.10gb"))
    life.run()
    assert fresh(refused).state == LeaseState.QUEUED
    with as_tenant(kestrel.tenant.pk):
        free = capacity.availability([offering("2g.20gb"), offering("3g.40gb"), offering("card")])
    assert list(free.values()) == [1, 0, 0]


def test_nothing_new_goes_to_a_cordoned_node(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    kestrel = home()
    first = life.lease(kestrel, offering("card"))
    node = node_of(first)
    life.release(first)
    life.run(10)
    set_node(node, NodeState.CORDONED, life)
    second = life.lease(kestrel, offering("card"))
    third = life.ask(kestrel, offering("card"))
    life.run()
    assert node_of(second) != node
    assert fresh(third).state == LeaseState.QUEUED
    set_node(node, NodeState.READY, life)
    life.run()
    assert fresh(third).state == LeaseState.PROVISIONING


def test_a_card_that_fails_between_choice_and_hold_is_not_taken(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    kestrel = home()
    seat, chosen = placing.seat, []

    def and_it_fails(*args: object, **named: object) -> object:
        seating = seat(*args, **named)  # type: ignore[arg-type]
        if not chosen:
            chosen.append(next(iter(seating.cards)))  # type: ignore[union-attr]
            Gpu.objects.filter(pk=chosen[0]).update(health=Health.UNHEALTHY)
        return seating

    monkeypatch.setattr(placing, "seat", and_it_fails)
    lease = life.lease(kestrel, offering("card"), LeaseState.PROVISIONING)
    assert held(lease)[0].gpu_id != chosen[0]


def test_whoever_is_beaten_every_time_is_served_again_soon(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    lease = life.ask(home(), offering("card"))
    with monkeypatch.context() as always_late:
        always_late.setattr(placing, "_hold", lambda *args: False)
        life.run()
    assert fresh(lease).state == LeaseState.QUEUED
    assert [hint[2] for hint in life.hints] == ["broker.serve"]
    life.run(1)
    assert fresh(lease).state == LeaseState.PROVISIONING


def test_an_error_that_is_no_race_is_not_swallowed(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(1)
    lease = life.ask(home(), offering("card"))

    def hold(held: Lease, *args: object) -> bool:
        Gpu.objects.create(pk="gpu_x", node_id="nod_none", index=0, gpu_model_id=MODEL, health_since=life.now)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return True

    monkeypatch.setattr(placing, "_hold", hold)
    with as_tenant(lease.tenant_id), pytest.raises(IntegrityError):
        placing.place(fresh(lease), now=life.now)


def with_old_eyes(owner: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next look at the cards show them as they are now, whatever happens until then."""
    keeper = Keeper()
    with as_tenant(owner.tenant.pk), keeper.up_to_date() as stock:
        old = [nullcontext(stock)]
    monkeypatch.setattr(placing, "up_to_date", lambda: old.pop() if old else up_to_date())


def test_who_loses_a_race_for_a_place_takes_the_next(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(2)
    kestrel = home()
    winner, loser = life.ask(kestrel, offering("card")), life.ask(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        with_old_eyes(kestrel, monkeypatch)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(placing, "up_to_date", up_to_date)
            assert placing.place(fresh(winner), now=life.now)
        assert placing.place(fresh(loser), now=life.now)
    assert held(loser)[0].gpu_id != held(winner)[0].gpu_id


def test_who_loses_a_race_for_its_own_place_leaves_it(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering("card"))
    copy = fresh(lease)
    with as_tenant(kestrel.tenant.pk):
        with_old_eyes(kestrel, monkeypatch)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(placing, "up_to_date", up_to_date)
            assert placing.place(fresh(lease), now=life.now)
        assert not placing.place(copy, now=life.now)
    assert len(held(lease)) == 1


def test_a_lease_that_left_the_queue_meanwhile_is_not_tried(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    lease = life.ask(home(), offering("card"))
    queue = serving.waiting(POOL)
    life.release(lease)
    monkeypatch.setattr(serving, "waiting", lambda pool, upto: queue)
    assert serving.serve(POOL, now=life.now) == 1
    assert held(lease) == []


def test_a_lease_that_waits_beyond_its_end_date_expires_in_the_queue(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("card"))
    waiting = life.ask(kestrel, offering("card"), end_date=life.now + timedelta(minutes=10))
    life.run(599)
    life.sweep()
    assert fresh(waiting).state == LeaseState.QUEUED
    life.run(1)
    life.sweep()
    assert (fresh(waiting).state, fresh(waiting).end_reason) == ("released", "expired")
    assert path(waiting) == "requested queued releasing released"


def rung_for(life: Life, *leases: Lease) -> int:
    """Count the looks at some leases that somebody has asked for."""
    return sum(
        task == "broker.step" and subject in {each.pk for each in leases}
        for _, _, task, subject, _ in life.hints
    )


def test_each_of_several_that_come_at_once_is_looked_at_by_its_own_hint_and_by_no_other(life: Life) -> None:
    cards(1)
    kestrel = home()
    first, second, third = (life.ask(kestrel, offering()) for _ in range(3))
    life.hints.clear()
    reconcile.step(third.pk, third.tenant_id, now=life.now)  # was faster than theirs, and placed them all
    assert [fresh(lease).state for lease in (first, second)] == ["provisioning", "provisioning"]
    assert rung_for(life, first, second) == 0
    assert rung_for(life, third) == 1  # it was worked on: this is when to look again
    for lease in (first, second):
        reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    life.run(30)
    assert {fresh(lease).state for lease in (first, second, third)} == {"active"}


def test_one_that_waited_already_is_rung_for_when_the_hint_of_another_places_it(life: Life) -> None:
    cards(1)
    kestrel = home()
    waiting = life.ask(kestrel, offering())
    with as_tenant(waiting.tenant_id):
        Lease.objects.filter(pk=waiting.pk).update(waits_for="Waits for one free slice.")
    late = life.ask(kestrel, offering())
    life.hints.clear()
    reconcile.step(late.pk, late.tenant_id, now=life.now)
    assert rung_for(life, waiting) == 1


def test_the_hint_of_one_lease_places_no_younger_one_and_none_at_all_once_it_is_placed(life: Life) -> None:
    cards(1)
    kestrel = home()
    oldest, own, younger = (life.ask(kestrel, offering()) for _ in range(3))
    assert serving.serve(POOL, now=life.now, upto=own.pk) == 2
    assert [fresh(lease).state for lease in (oldest, own, younger)] == [
        "provisioning",
        "provisioning",
        "queued",
    ]
    assert serving.serve(POOL, now=life.now, upto=own.pk) == 0
    assert fresh(younger).state == "queued"


def test_one_whose_own_hint_was_lost_is_found_by_the_sweep(life: Life) -> None:
    cards(1)
    kestrel = home()
    first, second = life.ask(kestrel, offering()), life.ask(kestrel, offering())
    life.hints.clear()
    reconcile.step(second.pk, second.tenant_id, now=life.now)
    life.go(45)
    assert fresh(first).state == "active"


def test_one_that_somebody_places_while_its_own_hint_tries_is_gone_on_with(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    life.hints.clear()
    place = placing.place

    def faster(one: Lease, *, now: datetime) -> bool:
        assert place(fresh(one), now=now)
        one.refresh_from_db(fields=placing.AS_IT_STANDS)
        return False

    monkeypatch.setattr(placing, "place", faster)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert rung_for(life, lease) == 1
    life.run(30)
    assert fresh(lease).state == "active"
