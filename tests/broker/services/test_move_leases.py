"""A lease that allows it is moved to another card after notice: stopped, started there, and not charged between."""

from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.moves import MoveState, PlanState
from broker.domain.states import LeaseState
from broker.models import Allocation, Lease, SimulatedPod
from broker.provisioners.base import order_name
from tenants.models import QuotaKind
from tests.broker.services.movers import (
    NOTICE_S,
    accepted,
    apart,
    card_of,
    moves,
    no_contradiction,
    proposed,
    story,
)
from tests.world import Home, Life, cards, fresh, held, home, ledger, path

S, M, P = LeaseState, MoveState, PlanState
BEFORE = "requested queued provisioning active"
MOVED = "active stopping stopped queued provisioning active"


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


@pytest.fixture
def merlin(kestrel: Home) -> Home:
    return home("Merlin")


def active_seconds(lease: Lease) -> int:
    spans = [(a, b) for a, b in pairwise(ledger(lease)) if a.after == S.ACTIVE]
    return int(sum((b.at - a.at).total_seconds() for a, b in spans))


def test_a_plan_is_a_dry_run_that_says_what_it_costs_and_wins(
    life: Life, kestrel: Home, merlin: Home
) -> None:
    one, _ = apart(life, kestrel, merlin, movable=True)
    before = card_of(one)
    plan = proposed(life)
    (move,) = moves(plan)
    assert (
        plan.reason
        == "One card holds so little that it finds room beside others; emptied, it can be sold whole."
    )
    assert (plan.cost_s, plan.gain_milli) == (move.cost_s, move.gain_milli)
    assert 5 < plan.cost_s < 15  # as starts took here lately
    assert plan.gain_milli == 1000  # a whole card
    assert len(plan.cards) == 2
    assert [len(card["after"]) for card in plan.cards] in ([0, 2], [2, 0])
    life.go(60)
    assert (card_of(one), fresh(one).state, path(one)) == (before, S.ACTIVE, BEFORE)
    assert story(plan) == "proposed"


def test_an_accepted_plan_moves_its_lease_after_notice_and_frees_the_old_card(
    life: Life, kestrel: Home, merlin: Home
) -> None:
    both = apart(life, kestrel, merlin, movable=True)
    plan = accepted(life)
    (move,) = moves(plan)
    lease = next(each for each in both if each.pk == move.lease_id)
    assert move.not_before == life.now + timedelta(seconds=NOTICE_S)
    assert "will be moved to another card, not before" in ledger(lease)[-1].cause
    life.go(NOTICE_S - 10)
    assert (fresh(lease).state, story(plan)) == (S.ACTIVE, "proposed accepted 1:noticed")
    life.go(60)
    plan.refresh_from_db()
    assert story(plan) == "proposed accepted 1:noticed running 1:moving 1:done done"
    assert path(lease) == f"{BEFORE} {MOVED}"
    assert card_of(both[0]) == card_of(both[1]) == move.to_gpu
    assert [place.placement.lower for place in held(lease)] == [move.to_start]
    assert not Allocation.objects.filter(gpu=move.from_gpu, released_at=None).exists()
    no_contradiction(life)
    assert SimulatedPod.objects.filter(name=order_name(lease.pk, fresh(lease).generation)).exists()
    assert not SimulatedPod.objects.filter(name=order_name(lease.pk, lease.generation)).exists()


def test_not_a_second_is_charged_between_and_none_of_its_time_is_lost(
    life: Life, kestrel: Home, merlin: Home
) -> None:
    both = apart(life, kestrel, merlin, movable=True)
    (move,) = moves(accepted(life))
    lease = next(each for each in both if each.pk == move.lease_id)
    owner = kestrel if lease.tenant_id == kestrel.tenant.pk else merlin
    used = owner.used(QuotaKind.UNITS)
    life.go(NOTICE_S + 60)
    moved = fresh(lease)
    stands_still = next(
        (back.at - left.at).total_seconds()
        for left in ledger(lease)
        if left.after == S.STOPPING
        for back in ledger(lease)
        if back.after == S.ACTIVE and back.seq > left.seq
    )
    assert stands_still > 0
    assert moved.ends_at == lease.ends_at + timedelta(seconds=stands_still)
    assert owner.used(QuotaKind.UNITS) == used
    life.release(lease)
    life.run(30)
    assert active_seconds(lease) == (fresh(lease).ended_at - lease.active_at).total_seconds() - stands_still
    no_contradiction(life)


def test_a_lease_that_does_not_allow_it_is_never_moved(life: Life, kestrel: Home, merlin: Home) -> None:
    apart(life, kestrel, merlin)
    with pytest.raises(ValueError, match="not enough values"):
        proposed(life)
