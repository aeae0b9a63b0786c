"""What no lease accounts for goes late, never in bulk, and never when the books may be what is wrong."""

from datetime import timedelta

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Installation, Lease, Orphan, SimulatedPod, our_mark
from broker.provisioners.base import order_name, order_parts
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, orphans
from tenants.services.walls import as_staff
from tests.world import OPERATOR, Life, cards, home, offering

DAY = timedelta(hours=24)


def strange(life: Life, count: int) -> list[str]:
    """Run what our books know nothing of, as after they were restored from an old backup."""
    names = [f"l-strange{number:03}-g1" for number in range(count)]
    for name in names:
        SimulatedPod.objects.create(name=name, created_at=life.now)
    return names


def there() -> set[str]:
    return set(SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True))


def test_what_the_books_do_not_know_waits_a_day(life: Life) -> None:
    (name,) = strange(life, 1)
    assert orphans.remove_all(now=life.now) == 0
    assert orphans.remove_all(now=life.now + DAY - timedelta(seconds=1)) == 0
    assert there() == {name}
    assert orphans.remove_all(now=life.now + DAY) == 1
    assert there() == set()


def test_what_a_lease_went_on_without_goes_at_once(life: Life) -> None:
    cards(1)
    over = life.lease(home(), offering(), LeaseState.RELEASED)
    SimulatedPod.objects.create(name=order_name(over.pk, 1), created_at=life.now)
    assert orphans.remove_all(now=life.now) == 1
    assert there() == set()


def test_one_cluster_is_looked_at_alone_where_its_agent_rang(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    over = life.lease(home(), offering(), LeaseState.RELEASED)
    SimulatedPod.objects.create(name=order_name(over.pk, 1), created_at=life.now)
    cluster, fleet = Cluster.objects.get(), SimulatedProvisioner()
    monkeypatch.setattr(clusters, "by_cluster", lambda: [(None, fleet), (cluster.pk, fleet)])
    assert orphans.remove_in("clu_other", now=life.now) == 0
    assert orphans.remove_in(cluster.pk, now=life.now) == 1
    assert there() == set()


def test_a_generation_that_the_books_have_not_reached_is_not_taken_for_an_old_one(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    ahead = order_name(lease.pk, lease.generation + 1)
    SimulatedPod.objects.create(name=ahead, created_at=life.now)
    assert orphans.remove_all(now=life.now) == 0
    assert there() == {ahead, order_name(lease.pk, lease.generation)}


def test_what_is_accounted_for_after_all_begins_its_day_anew(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    with as_staff():
        generation = Lease.objects.get().generation
    ahead = order_name(lease.pk, generation + 1)
    SimulatedPod.objects.create(name=ahead, created_at=life.now)
    orphans.remove_all(now=life.now)
    assert Orphan.objects.get().name == ahead
    SimulatedPod.objects.filter(name=ahead).delete()
    orphans.remove_all(now=life.now + DAY)
    assert not Orphan.objects.exists()


def test_too_many_at_once_stop_the_sweep_until_an_operator_agrees(life: Life) -> None:
    names = strange(life, orphans.FEW + 1)
    orphans.remove_all(now=life.now)
    later = life.now + DAY
    assert orphans.remove_all(now=later) == 0
    assert there() == set(names)
    assert set(Orphan.objects.exclude(held_at=None).values_list("name", flat=True)) == set(names)
    assert orphans.agree(None, names[:4], why="a drill", actor=OPERATOR, now=later) == 4
    # What was not agreed to is few now, but it was held, and stays so until somebody says a word about it.
    assert orphans.remove_all(now=later) == 4
    assert there() == set(names[4:])


def test_a_few_more_than_usual_go_where_much_more_runs(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    running = [order_name(f"lse_{number:04}", 1) for number in range(200)]
    for name in running:
        SimulatedPod.objects.create(name=name, created_at=life.now)
    Orphan.objects.bulk_create(Orphan(name=name, found_at=life.now - DAY) for name in running[:20])
    assert orphans.remove_all(now=life.now) == 20
    assert len(there()) == 181
    assert order_name(lease.pk, lease.generation) in there()


def test_what_is_slow_to_go_is_told_again_and_counts_no_more(life: Life) -> None:
    first = strange(life, orphans.FEW)
    SimulatedPod.objects.update(slow=True)
    orphans.remove_all(now=life.now)
    later = life.now + DAY
    assert orphans.remove_all(now=later) == len(first)
    for number in range(3):
        SimulatedPod.objects.create(name=f"l-more{number}-g1", created_at=later)
    Orphan.objects.bulk_create(Orphan(name=f"l-more{number}-g1", found_at=life.now) for number in range(3))
    assert orphans.remove_all(now=later) == len(first) + 3


def test_an_installation_is_told_from_another_by_one_mark_for_ever(life: Life) -> None:
    assert our_mark() == our_mark() == Installation.objects.get().mark
    assert our_mark().startswith("ins_")


@pytest.mark.parametrize("name", ["", "l-", "l-x-g", "x-abc-g1", "l-a_b-g1", "l-abc-g1 "])
def test_a_name_that_was_never_an_orders_belongs_to_no_lease(name: str) -> None:
    assert order_parts(name) == ("", 0)
    assert order_parts(order_name("lse_abc", 12)) == ("lse_abc", 12)
