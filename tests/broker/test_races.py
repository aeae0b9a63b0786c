"""A hundred at once: a quota of eight grants eight, one free slice goes to one; twenty times over."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections

from broker.domain.states import EndReason
from broker.models import Allocation, Gpu, Lease
from broker.models.keys import allocation_id
from broker.services import reconcile
from broker.services.leases import ending, placing, serving
from broker.services.leases.growing import extend
from broker.services.leases.request import Wanted, request
from ports import clock, doorbell
from tenants.models import QuotaKind
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_sweep, as_tenant
from tests.database import OwnDatabase
from tests.world import NOW, Home, cards, fleet, fresh, held, home, offering

PARALLEL, TIMES = 100, 20
TAKE = "SELECT id FROM broker_gpu WHERE id = %s FOR NO KEY UPDATE NOWAIT"
WAITING = """
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE NOT l.granted AND a.datname = current_database()
"""


class Crowd:
    """As many threads as there are in a crowd, each with a connection of its own, all starting at one moment."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._start = threading.Barrier(size)
        self._pool = ThreadPoolExecutor(size)

    def all_at_once(self, act: Callable[[int], Any]) -> list[Any]:
        def one(number: int) -> Any:
            connection.ensure_connection()
            self._start.wait(120)
            return act(number)

        return list(self._pool.map(one, range(self.size)))

    def go_home(self) -> None:
        list(self._pool.map(lambda _: (self._start.wait(120), connections.close_all()), range(self.size)))
        self._pool.shutdown()


@pytest.fixture
def crowd(own_database: OwnDatabase) -> Iterator[Crowd]:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        crowd = Crowd(PARALLEL)
        yield crowd
        crowd.go_home()


def ask(owner: Home, offering_id: str, number: int) -> Lease:
    with as_tenant(owner.tenant.pk):
        return request(
            Wanted(offering_id=offering_id, name=f"job-{number}", max_duration_s=3600),
            project=owner.project,
            actor=owner.actor,
            now=NOW,
        )


def granted(owner: Home, offering_id: str, number: int) -> bool:
    try:
        ask(owner, offering_id, number)
    except QuotaExceeded:
        return False
    return True


def end_placed() -> None:
    for task, subject, tenant in reconcile.all_live():
        if task == "broker.step":
            finish(subject, tenant)


def finish(lease_id: str, tenant_id: str) -> None:
    with as_tenant(tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=lease_id)
        ending.release(lease, reason=EndReason.BY_TENANT, now=NOW)
        if lease.state != "released":
            ending.finish(lease, now=NOW)


def test_a_hundred_requests_against_a_quota_of_eight_grant_exactly_eight(crowd: Crowd) -> None:
    cards(8)
    kestrel, slice_ = home(), offering("1g.10gb").pk
    kestrel.quota(QuotaKind.UNITS, 8_000)
    for _ in range(TIMES):
        answers = crowd.all_at_once(lambda number: granted(kestrel, slice_, number))
        assert sum(answers) == 8
        assert kestrel.used() == 8_000
        with as_tenant(kestrel.tenant.pk):
            waiting = list(Lease.objects.filter(state="queued"))
        for lease in waiting:
            finish(lease.pk, lease.tenant_id)
        assert kestrel.used() == 0


def test_a_hundred_requests_for_one_free_slice_place_exactly_one(crowd: Crowd) -> None:
    cards(1)
    tenants = [home(f"Tenant {n}", units=100_000) for n in range(4)]
    card = offering("card").pk
    for _ in range(TIMES):

        def ask_and_place(number: int) -> str:
            owner = tenants[number % len(tenants)]
            lease = ask(owner, card, number)
            with as_tenant(owner.tenant.pk):
                placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
            return fresh(lease).state

        states = Counter(crowd.all_at_once(ask_and_place))
        assert states == {"provisioning": 1, "queued": PARALLEL - 1}
        with as_sweep():
            assert Allocation.objects.filter(released_at=None).count() == 1
        end_placed()  # those in the queue stay there: each round is about its own hundred
        with as_sweep():
            assert Allocation.objects.filter(released_at=None).count() == 0


def test_a_hundred_workers_serving_one_queue_place_every_lease_once(crowd: Crowd) -> None:
    fleet()
    kestrel, slice_ = home(), offering("1g.10gb").pk
    leases = [ask(kestrel, slice_, number) for number in range(60)]
    crowd.all_at_once(lambda _: serving.serve(("H100-80GB", "eu-north"), now=NOW))
    serving.serve(("H100-80GB", "eu-north"), now=NOW)
    assert Counter(len(held(lease)) for lease in leases) == {1: 56, 0: 4}


def test_gangs_that_want_each_others_cards_never_wait_in_a_circle(crowd: Crowd) -> None:
    cards(8)
    kestrel, card = home(units=10_000), offering("card").pk

    def gang(number: int) -> int:
        with as_tenant(kestrel.tenant.pk):
            lease = request(
                Wanted(offering_id=card, name=f"gang-{number}", max_duration_s=3600, quantity=2 + number % 3),
                project=kestrel.project,
                actor=kestrel.actor,
                now=NOW,
            )
        with as_tenant(kestrel.tenant.pk):
            placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
        return len(held(lease))

    sizes = crowd.all_at_once(gang)
    assert 4 <= sum(sizes) <= 8
    assert all(size in (0, 2 + number % 3) for number, size in enumerate(sizes))


def test_who_cannot_have_all_cards_of_a_gang_keeps_none_of_them(own_database: OwnDatabase) -> None:
    cards(4)
    kestrel, card = home(), offering("card").pk
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        with as_tenant(kestrel.tenant.pk):
            wanted = Wanted(offering_id=card, name="gang", max_duration_s=3600, quantity=2)
            lease = request(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)
        first, second = Gpu.objects.order_by("pk").values_list("pk", flat=True)[:2]
        another = connections["default"].copy()
        try:
            with another.cursor() as theirs:
                theirs.execute("BEGIN")
                theirs.execute(TAKE, [first])
                with as_tenant(kestrel.tenant.pk):
                    assert placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
                    assert {place.gpu_id for place in held(lease)}.isdisjoint([first, second])
                    theirs.execute(TAKE, [second])  # raises if it is still in our hands
                    assert theirs.fetchone() == (second,)
                theirs.execute("ROLLBACK")
        finally:
            another.close()


def test_a_place_that_is_left_while_its_next_holder_waits_is_held_from_then_on(
    own_database: OwnDatabase,
) -> None:
    cards(1)
    kestrel, card, left = home(), offering("card").pk, NOW + timedelta(seconds=2)
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        lease = ask(kestrel, card, 0)
        serving.serve(("H100-80GB", "eu-north"), now=NOW)
        (place,) = held(lease)
        with ThreadPoolExecutor(1) as pool, as_tenant(kestrel.tenant.pk):
            Allocation.objects.filter(pk=place.pk).update(released_at=left)  # it is being written
            since = pool.submit(held_anew, place)
            wait_until_it_waits()
        assert since.result(30) == left


def held_anew(place: Allocation) -> datetime:
    """Hold a place by a clock that was read before it was left; return since when it is held."""
    place.pk, place._state.adding = allocation_id(), True
    try:
        with as_tenant(place.tenant_id):
            place.save()
            place.refresh_from_db()
            return place.held_at
    finally:
        connections.close_all()


def wait_until_it_waits() -> None:
    """Return once somebody of this database waits for another's transaction."""
    for _ in range(1000):
        with connection.cursor() as cursor:
            cursor.execute(WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waited for a place that is being left")


def test_a_hundred_releases_of_one_lease_end_it_once(crowd: Crowd) -> None:
    cards(1)
    kestrel, card = home(), offering("card").pk
    lease = ask(kestrel, card, 0)
    serving.serve(("H100-80GB", "eu-north"), now=NOW)

    def release(_: int) -> None:
        with as_tenant(kestrel.tenant.pk):
            ending.release(fresh(lease), reason=EndReason.BY_TENANT, now=NOW)

    crowd.all_at_once(release)
    assert fresh(lease).state == "releasing"
    assert fresh(lease).seq == 3


def test_a_hundred_extensions_take_a_hundred_differences(crowd: Crowd) -> None:
    cards(1)
    kestrel, slice_ = home(), offering("1g.10gb").pk
    kestrel.quota(QuotaKind.GPU_SECONDS, 10**12)
    lease = ask(kestrel, slice_, 0)

    def longer(_: int) -> datetime | None:
        with as_tenant(kestrel.tenant.pk):
            return extend(lease, more_s=60, actor=kestrel.actor, now=NOW).ends_at

    crowd.all_at_once(longer)
    assert fresh(lease).max_duration_s == 3600 + PARALLEL * 60
    assert kestrel.used(QuotaKind.GPU_SECONDS) == (3600 + PARALLEL * 60) * 1000
