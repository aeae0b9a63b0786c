"""A lease that one place does not take goes to the next, and the first is free only when it is proven empty."""

from datetime import timedelta

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Node
from broker.provisioners.base import Observation, Seen
from broker.services import proofs, reconcile
from broker.services.connections import connections
from broker.services.inventory import Rack
from broker.services.leases import evicting, leaving
from tenants.services.walls import as_staff, as_tenant
from tests.broker.services.leavers import Moody, begin, cluster, gone_on, names, other, two_clusters, where
from tests.world import MODEL, OPERATOR, REGION, Life, fleet, fresh, held, home, ledger, offering, path


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Moody:
    return two_clusters(monkeypatch)


def books_balance(life: Life) -> None:
    with as_staff():
        assert [proof for proof in proofs.check(now=life.now) if not proof.holds] == []


def test_what_one_cluster_does_not_take_runs_on_the_next_with_the_reason_kept(
    life: Life, moody: Moody
) -> None:
    lease, first = begin(life)
    moody.full = {cluster(first).pk}
    life.run(30)
    lease = fresh(lease)
    assert lease.state == LeaseState.ACTIVE
    assert where(lease) == other(first)
    assert path(lease) == "requested queued provisioning queued provisioning active"
    assert any("does not take it" in step.cause for step in ledger(lease))
    assert names(lease) == [other(first)]
    books_balance(life)


def test_what_one_cluster_cannot_start_runs_on_the_next_with_the_reason_kept(
    life: Life, moody: Moody
) -> None:
    lease, first = begin(life)
    moody.refuses = {cluster(first).pk}
    life.run(30)
    assert (fresh(lease).state, where(lease)) == (LeaseState.ACTIVE, other(first))
    assert any("no route to its registry" in step.cause for step in ledger(lease))
    assert names(lease) == [other(first)]
    books_balance(life)


def test_what_no_cluster_can_start_was_tried_once_in_each(life: Life, moody: Moody) -> None:
    fleet(Rack("north-3", REGION, MODEL, nodes=2, cards_per_node=1))
    moody.refuses = {each.pk for each in Cluster.objects.all()}
    lease, _ = begin(life)
    life.run(60)
    lease = fresh(lease)
    assert (lease.state, lease.end_reason) == ("released", "spec_refused")
    assert path(lease).count("provisioning") == 3
    placed = [step.cause for step in ledger(lease) if step.after == "provisioning"]
    assert len({cause.split(" / ")[0] for cause in placed}) == 3


def test_what_no_other_cluster_has_room_for_is_refused_at_once(life: Life, moody: Moody) -> None:
    Cluster.objects.filter(name="north-2").update(silent_since=life.now)
    lease, first = begin(life)
    moody.refuses = {cluster(first).pk}
    life.run(30)
    assert fresh(lease).end_reason == "spec_refused"
    assert path(lease).count("provisioning") == 1


def test_what_is_not_ready_in_time_is_tried_in_each_cluster_once(life: Life, moody: Moody) -> None:
    fleet(Rack("north-3", REGION, MODEL, nodes=1, cards_per_node=1))
    moody.slow = {each.pk for each in Cluster.objects.all()}
    lease, _ = begin(life)
    life.go(50 * 60)
    lease = fresh(lease)
    assert (lease.state, lease.end_reason) == ("released", "provision_timeout")
    placed = [step.cause for step in ledger(lease) if step.after == "provisioning"]
    assert len(placed) == len({cause.split(" / ")[0] for cause in placed}) == 3


def test_what_began_in_a_cluster_that_fell_silent_begins_in_no_other(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.slow = {cluster(first).pk}
    life.go(30)
    moody.silent = moody.slow
    life.go(20 * 60)
    assert fresh(lease).end_reason == "provision_timeout"
    assert path(lease).count("provisioning") == 1


def test_the_first_place_is_free_only_when_it_is_proven_empty(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.full = moody.keeps = {cluster(first).pk}
    life.go(30)
    assert names(lease) == [first, other(first)]
    books_balance(life)
    second = life.ask(home("Wren"), offering("card"))
    moody.full = set()
    life.go(30)
    assert fresh(second).state == LeaseState.QUEUED
    moody.keeps = set()
    life.go(30)
    assert fresh(second).state == LeaseState.ACTIVE
    assert where(second) == first
    assert names(lease) == [other(first)]
    books_balance(life)


def test_nothing_begins_while_an_earlier_try_may_still_run(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.full = moody.keeps = {cluster(first).pk}
    life.go(90)
    lease = fresh(lease)
    assert lease.state == LeaseState.PROVISIONING
    assert "still ending" in lease.progress["text"]
    assert moody.names() == []
    moody.keeps = set()
    life.go(30)
    assert fresh(lease).state == LeaseState.ACTIVE


def test_a_cluster_that_says_nothing_of_an_earlier_try_begins_no_other(life: Life, moody: Moody) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    Cluster.objects.filter(name="north-2").update(silent_since=life.now)
    lease, first = begin(life)
    moody.full = moody.mute = {cluster(first).pk}
    life.run(5)
    moody.full = set()
    life.go(30)
    assert names(lease) == [first, first]
    assert moody.names() == []
    moody.mute = set()
    life.go(30)
    assert fresh(lease).state == LeaseState.ACTIVE
    assert names(lease) == [first]


def test_a_first_try_asks_for_no_earlier_one(
    life: Life, moody: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, _ = begin(life)
    monkeypatch.setattr(leaving, "step", None)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert fresh(lease).progress["text"] != ""


def test_what_an_earlier_place_said_does_not_count_for_the_next(life: Life, moody: Moody) -> None:
    fleet(Rack("north-3", REGION, MODEL, nodes=1, cards_per_node=1))
    lease, first = begin(life)
    moody.full = moody.keeps = {cluster(first).pk}
    life.go(20)
    second = names(lease)[-1]
    assert second != first
    moody.silent = {cluster(second).pk}
    moody.keeps = set()
    life.go(90)
    lease = fresh(lease)
    assert lease.state == LeaseState.ACTIVE
    assert where(lease) not in (first, second)


def test_a_silent_cluster_is_asked_once_for_all_that_is_left_in_it(life: Life, moody: Moody) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=3, cards_per_node=1))
    Cluster.objects.filter(name="north-2").update(silent_since=life.now)
    lease, first = begin(life)
    moody.full = moody.mute = {cluster(first).pk}
    life.go(70)
    assert names(lease) == [first, first, first]
    moody.told_to_go.clear()
    leaving.step(lease.pk, lease.tenant_id, now=life.now)
    assert len(moody.told_to_go) == 1


def test_a_try_elsewhere_does_not_wait_for_a_cluster_known_to_be_silent(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.full = moody.mute = {cluster(first).pk}
    life.run(1)
    Cluster.objects.filter(name=first).update(silent_since=life.now)
    moody.told_to_go.clear()
    beside = leaving.step(lease.pk, lease.tenant_id, now=life.now, beside=cluster(other(first)).pk)
    assert (beside, moody.told_to_go) == ({}, [])
    assert leaving.step(lease.pk, lease.tenant_id, now=life.now, beside=cluster(first).pk) != {}


def test_what_left_a_place_may_end_before_the_place_is_empty(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.full = moody.keeps = {cluster(first).pk}
    life.go(30)
    life.release(fresh(lease))
    life.go(60)
    assert fresh(lease).state == LeaseState.RELEASED
    assert names(lease) == [first]
    books_balance(life)
    moody.keeps = set()
    life.go(10)
    assert names(lease) == []


def test_a_cluster_that_never_answers_is_left_after_45_seconds(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.silent = {cluster(first).pk}
    life.go(40)
    assert path(lease) == "requested queued provisioning"
    life.go(40)
    lease = fresh(lease)
    assert lease.state == LeaseState.ACTIVE
    assert names(lease) == [first, other(first)]
    assert any("does not answer" in step.cause for step in ledger(lease))
    moody.silent = set()
    life.go(10)
    assert names(lease) == [other(first)]
    books_balance(life)


def test_what_had_begun_there_is_waited_for(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert fresh(lease).progress
    moody.silent = {cluster(first).pk}
    life.go(120)
    assert names(lease) == [first]
    assert fresh(lease).state == LeaseState.PROVISIONING


def test_nothing_new_is_placed_in_a_silent_cluster(life: Life, moody: Moody) -> None:
    Cluster.objects.filter(name="north-1").update(silent_since=life.now)
    kestrel = home()
    leases = [life.ask(kestrel, offering("card")) for _ in range(2)]
    life.go(30)
    assert sorted(fresh(each).state for each in leases) == ["active", "queued"]
    assert [where(each) for each in leases if fresh(each).state == "active"] == ["north-2"]


def test_it_waits_two_minutes_before_it_goes_back(life: Life, moody: Moody) -> None:
    Cluster.objects.filter(name="north-2").update(silent_since=life.now)
    lease, first = begin(life)
    moody.full = {cluster(first).pk}
    life.go(60)
    lease = fresh(lease)
    assert lease.state == LeaseState.QUEUED
    assert "did not take it" in lease.waits_for
    moody.full = set()
    life.go(120)
    assert fresh(lease).state == LeaseState.ACTIVE
    assert where(lease) == first


def test_after_a_dozen_places_somebody_must_ask_what_is_the_matter(life: Life, moody: Moody) -> None:
    moody.full = {cluster("north-1").pk, cluster("north-2").pk}
    lease, _ = begin(life)
    life.go(40 * 60)
    lease = fresh(lease)
    assert (lease.state, lease.end_reason) == ("released", "provision_timeout")
    assert any("places did not take it" in step.cause for step in ledger(lease))
    assert names(lease) == []


def test_a_place_is_given_back_once(life: Life, moody: Moody) -> None:
    lease, first = begin(life)
    moody.full = moody.keeps = {cluster(first).pk}
    life.run(1)
    moody.keeps = set()
    for _ in range(3):
        leaving.step(lease.pk, lease.tenant_id, now=life.now + timedelta(seconds=1))
    assert names(lease) == [other(first)]


def test_who_comes_second_to_an_empty_place_wakes_nobody(life: Life, moody: Moody) -> None:
    lease, _ = begin(life)
    life.hints.clear()
    leaving._give_back(lease, lease.generation, now=life.now)
    assert (life.hints, len(held(lease))) == ([], 1)


def test_a_cluster_without_a_word_is_asked_again(
    life: Life, moody: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, _ = begin(life)
    monkeypatch.setattr(moody, "ensure", lambda order, *, now: Observation(Seen.PENDING))
    life.run(30)
    assert (fresh(lease).state, fresh(lease).progress) == (LeaseState.PROVISIONING, {})


def test_who_waited_long_for_one_cluster_leaves_the_next_to_another_look(life: Life, moody: Moody) -> None:
    lease = life.lease(home(), offering("card"), LeaseState.PROVISIONING)
    with as_tenant(lease.tenant_id):
        leaving.leave(fresh(lease), now=life.now)
    going = leaving.step(
        lease.pk, lease.tenant_id, now=life.now, beside="clu_x", asks_by=life.now - timedelta(seconds=1)
    )
    assert [each.answered for each in going.values()] == [True]  # it may still run: nobody asked
    assert moody.told_to_go == []


def test_releasing_all_on_a_node_spares_what_went_on_elsewhere(life: Life, moody: Moody) -> None:
    lease, first = gone_on(life, moody)
    left = Node.objects.get(cluster__name=first)
    assert evicting.evict_all(left, why="power works", actor=OPERATOR, now=life.now) == []
    assert fresh(lease).state == LeaseState.ACTIVE
    there = Node.objects.get(cluster__name=other(first))
    assert evicting.evict_all(there, why="power works", actor=OPERATOR, now=life.now) == [fresh(lease)]


def test_the_way_in_leads_to_where_it_runs_now(life: Life, moody: Moody) -> None:
    lease, first = gone_on(life, moody, workload="jupyter")
    for name in (first, other(first)):
        Cluster.objects.filter(name=name).update(domain=f"{name}.example", door="ingress/public")
    with as_tenant(lease.tenant_id):
        (way,) = connections(lease)
    assert way.line.endswith(f".{other(first)}.example/")
