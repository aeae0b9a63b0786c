"""Several leases of one tenant placed in one transaction."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.states import LeaseState
from broker.models import Allocation, Gpu, Lease, Transition
from broker.services.leases import bursts, serving
from broker.services.leases.request import Wanted, request
from ports import clock, doorbell
from tenants.services.walls import as_tenant
from tests.database import OwnDatabase
from tests.world import (
    MODEL,
    NOW,
    REGION,
    Home,
    Life,
    cards,
    fresh,
    held,
    home,
    ledger,
    offering,
    path,
    soft_offering,
)

POOL = (MODEL, REGION)


def ids(*leases: Lease) -> list[str]:
    return [lease.pk for lease in leases]


def alone(life: Life, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place a lease as if there were no bursts."""
    with monkeypatch.context() as one_by_one:
        one_by_one.setattr(serving, "_burst", lambda queue: [])
        serving.serve(POOL, now=life.now)


def test_a_lease_of_a_burst_is_written_as_one_that_is_placed_alone(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    kestrel = home()
    single = life.ask(kestrel, offering("3g.40gb"))
    alone(life, single, monkeypatch)
    first, second = life.ask(kestrel, offering("3g.40gb")), life.ask(kestrel, offering("card"))
    monkeypatch.setattr(serving, "_try", lambda *given, **more: pytest.fail("nobody is placed alone here"))
    assert serving.serve(POOL, now=life.now) == 2
    own = {
        "lease_id",
        "id",
        "gpu_id",
        "placement",
        "position",
        "recorded_at",
        "cause",
        "prev_at",
        "at",
        "xid",
    }

    def written(lease: Lease) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        with as_tenant(kestrel.tenant.pk):
            row = Lease.objects.filter(pk=lease.pk).values().get()
            rows += [{k: v for k, v in row.items() if k not in own | {"created_at", "name", "quota_uses"}}]
            rows += [
                {k: v for k, v in step.items() if k not in own}
                for step in Transition.objects.filter(lease_id=lease.pk).order_by("seq").values()
            ]
            rows += [{k: v for k, v in place.items() if k not in own} for place in lease.allocations.values()]
        return rows

    assert written(first) == written(single)
    assert path(first) == "requested queued provisioning"
    assert {place.profile for place in held(second)} == {"card"}
    assert all(
        ledger(lease)[-1].cause.startswith("placed on north-1 / n01 / card") for lease in (first, second)
    )
    life.run(30)
    assert {fresh(lease).state for lease in (single, first, second)} == {LeaseState.ACTIVE}


def test_the_first_that_finds_no_room_is_told_why_and_smaller_ones_pass_it(life: Life) -> None:
    cards(1)
    kestrel = home()
    small, large, late = (life.ask(kestrel, offering(what)) for what in ("1g.10gb", "card", "1g.10gb"))
    assert serving.serve(POOL, now=life.now) == 2
    assert [fresh(lease).state for lease in (small, large, late)] == [
        "provisioning",
        "queued",
        "provisioning",
    ]
    assert "Waits for one free" in fresh(large).waits_for


def test_what_needs_a_closer_look_is_no_part_of_a_burst(life: Life) -> None:
    cards(2)
    kestrel, swift = home("Kestrel"), home("Swift")
    plain, gang = life.ask(kestrel, offering()), life.ask(kestrel, offering(), quantity=2)
    share, stranger = life.ask(kestrel, soft_offering()), life.ask(swift, offering())
    queue = serving.waiting(POOL)
    assert [entry.lease_id for entry in queue] == ids(plain, gang, share, stranger)
    assert [len(serving._burst(queue[n:])) for n in range(4)] == [1, 0, 0, 1]
    assert serving.serve(POOL, now=life.now) == 4


def test_one_that_cannot_be_written_leaves_the_others_to_go_one_by_one(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    kestrel = home()
    leases = [life.ask(kestrel, offering()) for _ in range(2)]
    monkeypatch.setattr(bursts, "allocation_id", lambda: "alc_twice")
    outcome = bursts.place(POOL, kestrel.tenant.pk, ids(*leases), rings_for=[], now=life.now)
    assert outcome == (set(), True)
    assert serving.serve(POOL, now=life.now) == 2


def lost_to_another(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let somebody be faster so many times: what was chosen is taken when it is written."""
    take, left = bursts._take, [times]

    def late(choices: list[bursts.Choice], now: datetime) -> set[str]:
        if not left[0]:
            return take(choices, now)
        left[0] -= 1
        at, lease = choices[0].seat, Lease.objects.get(pk=choices[0].row.id)
        for generation in (8, 9):
            Allocation.objects.create(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=generation,
                gpu_id=at.gpu,
                placement=NumericRange(at.placement.start, at.placement.end, "[)"),
                profile=choices[0].row.profile,
                isolation=choices[0].row.isolation,
                held_at=now,
            )
        raise AssertionError("PostgreSQL lets nobody have a place twice")

    monkeypatch.setattr(bursts, "_take", late)


def test_who_loses_a_place_to_somebody_faster_looks_again_and_all_are_placed_together(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    kestrel = home()
    leases = [life.ask(kestrel, offering()) for _ in range(3)]
    lost_to_another(monkeypatch, 1)
    monkeypatch.setattr(serving, "_try", lambda *given, **more: pytest.fail("nobody is placed alone here"))
    assert serving.serve(POOL, now=life.now) == 3
    assert [len(held(lease)) for lease in leases] == [1, 1, 1]


def test_who_loses_every_time_goes_alone_and_those_behind_it_together_again(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    kestrel = home()
    leases = [life.ask(kestrel, offering()) for _ in range(4)]
    lost_to_another(monkeypatch, bursts.TRIES)
    went: list[str] = []
    one_by_one = serving._try

    def seen(entry: serving.Waiting, *given: Any, **more: Any) -> bool:
        went.append(entry.lease_id)
        return one_by_one(entry, *given, **more)

    monkeypatch.setattr(serving, "_try", seen)
    assert serving.serve(POOL, now=life.now) == 4
    assert went == ids(leases[0])


def test_a_lease_that_waits_no_longer_is_settled(life: Life) -> None:
    cards(1)
    kestrel = home()
    first, second = life.ask(kestrel, offering()), life.ask(kestrel, offering())
    life.release(first)
    outcome = bursts.place(POOL, kestrel.tenant.pk, ids(first, second), rings_for=[], now=life.now)
    assert outcome == (set(ids(first, second)), False)
    assert held(first) == []


def queue_of(owner: Home, count: int) -> list[Lease]:
    with as_tenant(owner.tenant.pk):
        wanted = Wanted(offering_id=offering("3g.40gb").pk, name="job", max_duration_s=3600)
        return [request(wanted, project=owner.project, actor=owner.actor, now=NOW) for _ in range(count)]


def test_cards_and_leases_in_anothers_hands_are_left_to_them(own_database: OwnDatabase) -> None:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), ThreadPoolExecutor(1) as stranger:
        cards(3)
        kestrel, swift = home("Kestrel"), home("Swift")
        leases, others = queue_of(kestrel, 3), queue_of(swift, 1)
        with transaction.atomic():
            with as_tenant(kestrel.tenant.pk):
                list(Lease.objects.filter(pk=leases[0].pk).select_for_update(no_key=True))
            list(Gpu.objects.filter(index=0).select_for_update(no_key=True))
            place = lambda: bursts.place(POOL, kestrel.tenant.pk, ids(*leases), rings_for=[], now=NOW)  # noqa: E731
            assert stranger.submit(place).result(60) == (set(ids(*leases)), False)
        assert [len(held(lease)) for lease in leases] == [0, 1, 1]
        assert not {place.gpu.index for lease in leases for place in held(lease)} & {0}
        assert serving.serve(POOL, now=NOW) == 2
        assert len(held(leases[0])) == len(held(others[0])) == 1
        stranger.submit(connections.close_all).result(60)


def test_while_every_card_is_in_anothers_hands_nobody_is_placed_and_nobody_waits(
    own_database: OwnDatabase,
) -> None:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), ThreadPoolExecutor(1) as stranger:
        cards(2)
        kestrel = home()
        leases = queue_of(kestrel, 2)
        with transaction.atomic():
            list(Gpu.objects.all().select_for_update(no_key=True))
            place = lambda: bursts.place(POOL, kestrel.tenant.pk, ids(*leases), rings_for=[], now=NOW)  # noqa: E731
            assert stranger.submit(place).result(60) == (set(), True)
        stranger.submit(connections.close_all).result(60)


def test_who_finds_every_card_in_anothers_hands_too_often_leaves_it_to_the_closer_look(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "TRIES", 1)
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), ThreadPoolExecutor(1) as stranger:
        cards(2)
        kestrel = home()
        leases = queue_of(kestrel, 2)
        with transaction.atomic():
            list(Gpu.objects.all().select_for_update(no_key=True))
            place = lambda: bursts.place(POOL, kestrel.tenant.pk, ids(*leases), rings_for=[], now=NOW)  # noqa: E731
            assert stranger.submit(place).result(60) == (set(), False)
        stranger.submit(connections.close_all).result(60)
