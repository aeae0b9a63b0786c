"""A lease's life on the cluster: made, watched, lost, ended."""

from datetime import timedelta

import pytest
from django.conf import LazySettings

from broker.domain.states import EndReason, LeaseState
from broker.models import Gpu, Health, Lease, Node, NodeState, SimulatedPod, StaleLease
from broker.provisioners.base import Observation, Order, Seen, Unanswered
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, inventory, orphans, reconcile
from broker.services.inventory import Rack
from broker.services.leases import ending
from broker.services.outcomes import LOST_AFTER
from broker.services.reconcile import CLAIM, DEADLY
from tenants.services.walls import as_tenant
from tests.world import (
    MODEL,
    OPERATOR,
    REGION,
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
)

S = LeaseState
TWO_NODES = Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1)


class Cluster(SimulatedProvisioner):
    """A simulated cluster that may be told to stay silent, or to do something in the middle of an answer."""

    def __init__(self) -> None:
        self.silent = False
        self.asked = 0
        self.meanwhile: list[object] = []

    def ensure(self, order: Order, *, now: object) -> Observation:  # type: ignore[override]
        self.asked += 1
        self._perhaps_silent()
        seen = super().ensure(order, now=now)  # type: ignore[arg-type]
        while self.meanwhile:
            self.meanwhile.pop()()  # type: ignore[operator]
        return seen

    def remove(self, order: Order, *, now: object) -> Observation:  # type: ignore[override]
        self._perhaps_silent()
        return super().remove(order, now=now)  # type: ignore[arg-type]

    def _perhaps_silent(self) -> None:
        if self.silent:
            raise Unanswered("timed out after 5 s")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(clusters, "simulated", lambda: cluster)
    return cluster


def names() -> set[str]:
    return set(SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True))


def test_a_lease_lives_from_request_to_release_within_seconds(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering())
    life.run(12)
    assert fresh(lease).state == S.ACTIVE
    life.release(lease)
    life.run(5)
    assert path(lease) == "requested queued provisioning active releasing released"
    assert [step.reason for step in ledger(lease)][-2:] == ["by_tenant", "by_tenant"]
    assert held(lease) == []
    assert not SimulatedPod.objects.exists()
    assert kestrel.used() == 0


def test_progress_is_told_while_it_is_made(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(), S.PROVISIONING)
    life.run(1)
    assert fresh(lease).progress["text"] == "pulling image"
    assert 0 < fresh(lease).progress["percent"] < 100


def test_its_end_is_counted_from_the_second_it_became_active(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering(), max_duration_s=120))
    assert lease.active_at == ledger(lease)[-1].at
    assert lease.ends_at == lease.active_at + timedelta(seconds=120)


def test_it_expires_at_the_very_second_it_must(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering(), max_duration_s=120))
    life.run(130)
    ended = fresh(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "expired", lease.ends_at)


def test_an_earlier_end_date_wins(life: Life) -> None:
    cards(1)
    end = life.now + timedelta(seconds=90)
    lease = life.lease(home(), offering(), max_duration_s=3600, end_date=end)
    life.run(120)
    assert fresh(lease).ended_at == end


def test_an_end_date_also_ends_what_is_still_being_made(life: Life) -> None:
    cards(1)
    end = life.now + timedelta(seconds=90)
    lease = life.lease(home(), offering(), S.PROVISIONING, end_date=end, image="slow/image")
    life.go(240)
    assert (fresh(lease).end_reason, fresh(lease).active_at) == ("expired", None)
    assert ledger(lease)[-2].at == end


def test_whoever_looks_late_charges_nothing_after_the_end(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering(), max_duration_s=120))
    life.hints.clear()  # the workers are away for an hour
    life.run(3600)
    life.release(lease)
    assert fresh(lease).ended_at == lease.ends_at
    assert ledger(lease)[-1].at == lease.ends_at


def test_a_refused_image_ends_it_with_the_clusters_words(life: Life) -> None:
    cards(1)
    lease = life.ask(home(), offering(), image="refuse/nothing:1")
    life.run(10)
    assert (fresh(lease).state, fresh(lease).end_reason) == ("released", "spec_refused")
    assert "cannot be pulled" in ledger(lease)[-2].cause


def test_what_is_not_ready_in_time_is_given_up(life: Life, settings: LazySettings) -> None:
    settings.PROVISION_TIMEOUT_S = 60
    cards(1)
    lease = life.lease(home(), offering(), S.PROVISIONING, image="slow/image")
    life.go(55)
    assert fresh(lease).state == S.PROVISIONING
    life.go(90)
    assert (fresh(lease).state, fresh(lease).end_reason) == ("released", "provision_timeout")


def test_an_operator_may_end_it(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    with as_tenant(lease.tenant_id):
        ending.release(
            fresh(lease), reason=EndReason.BY_OPERATOR, now=life.now, actor=OPERATOR, cause="rack moves"
        )
    life.run(5)
    assert (fresh(lease).end_reason, ledger(lease)[-2].cause) == ("by_operator", "rack moves")
    assert ledger(lease)[-2].actor_label == OPERATOR.label


def test_what_never_left_the_queue_ends_at_once(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering())
    life.release(lease)
    assert path(lease) == "requested queued releasing released"
    assert kestrel.used() == 0


def test_releasing_twice_changes_nothing_and_after_the_end_says_so(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    life.release(lease)
    life.release(lease)
    assert path(lease).endswith("active releasing")
    life.run(5)
    with pytest.raises(ending.AlreadyOver, match="ended at 2026-11-21"):
        life.release(lease)


def test_a_release_that_meets_another_step_goes_through(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(), S.PROVISIONING)
    with as_tenant(lease.tenant_id):
        old = fresh(lease)
        life.run(12)
        ending.release(old, reason=EndReason.BY_TENANT, now=life.now)
    assert path(lease).endswith("provisioning active releasing")


def test_a_release_that_is_beaten_every_time_gives_up_loudly(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    lease = life.lease(home(), offering())

    def beaten(lease: Lease, *states: object, **changes: object) -> None:
        raise StaleLease(lease.pk)

    monkeypatch.setattr(Lease, "move", beaten)
    with pytest.raises(StaleLease):
        life.release(lease)


def test_capacity_is_not_sold_again_before_the_old_pod_is_gone(life: Life) -> None:
    cards(1)
    kestrel = home()
    slow = life.lease(kestrel, offering("card"), S.PROVISIONING, image="slow/image")
    waiting = life.ask(kestrel, offering("card"))
    life.release(slow)
    life.go(50)
    assert (fresh(slow).state, fresh(waiting).state) == ("releasing", "queued")
    assert len(held(slow)) == 1
    assert fresh(slow).progress == {"text": "shutting down", "percent": None}
    life.go(15)
    assert (fresh(slow).state, fresh(waiting).state) == ("released", "active")


def test_a_node_lost_while_it_is_made_places_it_anew_elsewhere(life: Life) -> None:
    fleet(TWO_NODES)
    lease = life.lease(home(), offering("card"), S.PROVISIONING)
    first_node, first = node_of(lease), fresh(lease).generation
    life.run(1)
    set_node(first_node, NodeState.LOST, life)
    life.run(20)
    assert fresh(lease).state == S.ACTIVE
    assert fresh(lease).generation == first + 1
    assert node_of(lease) != first_node
    assert path(lease) == "requested queued provisioning queued provisioning active"
    assert names() == {f"l-{lease.pk.removeprefix('lse_')}-g{first + 1}"}


def test_a_silent_node_ends_it_and_nothing_after_its_last_sign_is_charged(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    node = node_of(lease)
    life.run(60)
    silent_since = life.now
    set_node(node, NodeState.LOST, life)
    life.run(5)
    assert fresh(lease).state == S.ACTIVE
    assert "n01 lost contact at 09:0" in fresh(lease).conditions["unreachable"]
    life.go(2 * int(LOST_AFTER.total_seconds()) + 20)
    ended = fresh(lease)
    assert (ended.state, ended.end_reason) == ("released", "device_lost")
    assert ended.ended_at == silent_since.replace(microsecond=0)


def test_a_node_that_comes_back_in_time_costs_nobody_their_lease(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    set_node(node_of(lease), NodeState.LOST, life)
    life.run(5)
    set_node(node_of(lease), NodeState.READY, life)
    life.run(5)
    assert (fresh(lease).state, fresh(lease).conditions) == (S.ACTIVE, {})


def test_a_failed_card_ends_its_lease_from_the_moment_it_failed(life: Life) -> None:
    cards(2)
    lease = life.lease(home(), offering("card"))
    card = Gpu.objects.get(pk=held(lease)[0].gpu_id)
    life.run(60)
    failed_at = life.now
    inventory.set_health(card, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    life.go(60)
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == (
        "device_lost",
        failed_at.replace(microsecond=0),
    )
    assert f"card {card.index} of n01 failed: XID 79" in ledger(lease)[-2].cause


def test_a_pod_that_vanished_ends_it_at_the_last_proof_of_life(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering()))
    life.run(100)
    SimulatedPod.objects.all().delete()
    life.run(200)
    life.sweep()
    life.run(10)  # it is looked for twice
    ended = fresh(lease)
    assert (ended.end_reason, ended.ended_at) == ("device_lost", lease.active_at)
    assert ledger(lease)[-2].cause == "its pod is gone"


def test_what_is_being_ended_on_a_lost_node_is_let_go_after_a_while(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    set_node(node_of(lease), NodeState.LOST, life)
    life.release(lease)
    life.run(5)
    assert fresh(lease).state == S.RELEASING
    life.go(40)
    assert fresh(lease).state == S.RELEASED
    assert SimulatedPod.objects.exists()  # nobody has confirmed that it is gone
    set_node(Node.objects.get(), NodeState.READY, life)
    life.run()
    assert not SimulatedPod.objects.exists()


def test_a_silent_cluster_is_asked_again_and_the_lease_says_so(life: Life, cluster: Cluster) -> None:
    cards(1)
    cluster.silent = True
    lease = life.lease(home(), offering(), S.PROVISIONING)
    assert fresh(lease).progress["text"] == "the cluster does not answer: timed out after 5 s"
    cluster.silent = False
    life.run(20)
    assert fresh(lease).state == S.ACTIVE


def test_a_lease_that_kills_its_workers_is_given_up(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    with as_tenant(lease.tenant_id):
        reconcile.placing.place(fresh(lease), now=life.now)
    life.hints.clear()
    for _ in range(DEADLY):
        with as_tenant(lease.tenant_id):
            assert reconcile._claim(fresh(lease), life.now)  # and here the worker dies
        life.run(CLAIM.total_seconds() + 1)
    assert fresh(lease).state == S.PROVISIONING
    life.sweep()
    life.run(5)
    assert (fresh(lease).state, fresh(lease).end_reason) == ("released", "provision_timeout")
    assert "5 workers in a row died on it" in ledger(lease)[-2].cause


def test_a_worker_that_finishes_is_not_counted_as_dead(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(), S.PROVISIONING, image="slow/image")
    life.run(60)
    assert (fresh(lease).state, fresh(lease).tries) == (S.PROVISIONING, 0)


def test_two_workers_never_work_on_one_lease(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    asked: list[int] = []

    def second_worker() -> None:
        before = cluster.asked
        reconcile.step(lease.pk, lease.tenant_id, now=life.now)
        asked.append(cluster.asked - before)

    cluster.meanwhile = [second_worker]
    life.run()
    assert asked == [0]
    assert path(lease) == "requested queued provisioning"
    assert fresh(lease).claimed_until is None


def test_a_worker_whose_claim_ran_out_leaves_the_next_ones_alone(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease, later = life.ask(home(), offering()), life.now + CLAIM + timedelta(seconds=1)

    def the_next_one() -> None:
        with as_tenant(lease.tenant_id):
            assert reconcile._claim(fresh(lease), later)

    cluster.meanwhile = [the_next_one]
    life.run()
    assert cluster.meanwhile == []
    assert fresh(lease).claimed_until == later + CLAIM


def test_what_was_moved_since_it_was_loaded_is_not_taken(life: Life) -> None:
    cards(1)
    old = fresh(life.lease(home(), offering(), S.PROVISIONING))
    life.release(old)
    with as_tenant(old.tenant_id):
        loaded = fresh(old)
        loaded.state, loaded.seq = S.PROVISIONING, loaded.seq - 1
        assert reconcile._claim(loaded, life.now) is None


def test_a_release_during_the_work_is_taken_up_at_once(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    cluster.meanwhile = [lambda: life.release(lease), lambda: None]
    life.run()
    life.run(5)
    assert fresh(lease).state == S.RELEASED
    assert names() == set()


def test_what_a_worker_made_too_late_is_taken_down_at_once(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease = life.ask(home(), offering())

    def meanwhile_it_ended() -> None:
        SimulatedPod.objects.all().delete()
        life.release(lease)
        with as_tenant(lease.tenant_id):
            ending.finish(fresh(lease), now=life.now)

    def made_after_all() -> None:
        meanwhile_it_ended()
        SimulatedPod.objects.create(name=order, created_at=life.now)

    order = f"l-{lease.pk.removeprefix('lse_')}-g2"
    cluster.meanwhile = [made_after_all]
    life.run()
    assert fresh(lease).state == S.RELEASED
    assert names() == set()


def test_a_late_worker_whose_cluster_is_silent_leaves_it_to_the_sweep(life: Life, cluster: Cluster) -> None:
    cards(1)
    lease = life.ask(home(), offering())

    def ended_and_silent() -> None:
        life.release(lease)
        with as_tenant(lease.tenant_id):
            ending.finish(fresh(lease), now=life.now)
        cluster.silent = True

    cluster.meanwhile = [ended_and_silent]
    life.run()
    assert len(names()) == 1
    cluster.silent = False
    assert orphans.remove_all(now=life.now) == 1
    assert names() == set()


def test_hints_for_what_is_over_or_never_was_do_nothing(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering(), S.RELEASED)
    steps = len(ledger(lease))
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    reconcile.step("lse_none", lease.tenant_id, now=life.now)
    reconcile.step(lease.pk, "ten_none", now=life.now)
    assert len(ledger(lease)) == steps


def test_doubled_and_reordered_hints_change_nothing(life: Life) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    for _ in range(60):
        life.hints += [(at, -order, *rest) for at, order, *rest in life.hints][:1]
        life.run(0.2)
    assert path(lease) == "requested queued provisioning active"
    assert len(held(lease)) == 1


def test_with_every_hint_lost_the_sweep_does_it_all(life: Life) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    for _ in range(6):
        life.hints.clear()
        life.run(11)
        life.sweep()
    assert fresh(lease).state == S.ACTIVE
    life.release(lease)
    for _ in range(3):
        life.hints.clear()
        life.run(11)
        life.sweep()
    assert fresh(lease).state == S.RELEASED


def test_an_orphan_is_removed_and_what_lives_is_left(life: Life) -> None:
    cards(1)
    over = life.lease(home(), offering(), S.RELEASED)
    lease = life.lease(home("Osprey"), offering())
    assert orphans.remove_all(now=life.now) == 0
    SimulatedPod.objects.create(name=f"l-{over.pk.removeprefix('lse_')}-g1", created_at=life.now)
    assert orphans.remove_all(now=life.now) == 1
    life.run(5)
    assert orphans.remove_all(now=life.now) == 1  # slow to go: counted until it is gone
    assert orphans.remove_all(now=life.now) == 0
    assert fresh(lease).state == S.ACTIVE


def test_a_pod_of_an_older_generation_is_an_orphan(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    SimulatedPod.objects.create(name=f"l-{lease.pk.removeprefix('lse_')}-g1", created_at=life.now)
    assert orphans.remove_all(now=life.now) == 1


def test_the_great_sweep_looks_at_all_that_lives(life: Life) -> None:
    cards(1)
    kestrel = home()
    running = life.lease(kestrel, offering("card"))
    life.ask(kestrel, offering("card"))
    over = life.ask(kestrel, offering("card"))
    life.release(over)
    assert reconcile.all_live() == [
        ("broker.step", running.pk, kestrel.tenant.pk),
        ("broker.serve", f"{MODEL}|{REGION}", ""),
    ]


def test_a_step_that_is_not_in_the_state_table_is_refused(life: Life) -> None:
    with pytest.raises(ValueError, match="queued cannot become active"):
        list(
            Lease(state="queued", at=life.now)._steps(
                [S.ACTIVE], at=life.now, actor=OPERATOR, reason=EndReason.NONE, cause=""
            )
        )


@pytest.mark.parametrize("state", [S.PROVISIONING, S.ACTIVE])
def test_nothing_ends_without_saying_why(life: Life, state: S) -> None:
    cards(1)
    lease = life.lease(home(), offering(), state)
    with as_tenant(lease.tenant_id), pytest.raises(ValueError, match="releasing needs an EndReason"):
        ending.release(lease, reason=EndReason.NONE, now=life.now)
    assert fresh(lease).state == state


def test_seen_words_are_the_protocols(life: Life) -> None:
    assert {seen.value for seen in Seen} == {"pending", "ready", "refused", "lost", "ended", "gone"}


def test_a_worker_that_comes_to_its_work_too_late_leaves_it_to_the_next(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1)
    lease = life.ask(home(), offering())
    life.hints.clear()
    order_of = reconcile.order_of

    def held_up(lease: Lease) -> Order:
        life.clock.at += reconcile.LATE + timedelta(seconds=1)
        return order_of(lease)

    monkeypatch.setattr(reconcile, "order_of", held_up)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    late = fresh(lease)
    assert (late.state, late.claimed_until, late.tries) == (S.PROVISIONING, None, 0)
    assert not SimulatedPod.objects.exists()
    monkeypatch.setattr(reconcile, "order_of", order_of)
    life.run(20)
    assert fresh(lease).state == S.ACTIVE
