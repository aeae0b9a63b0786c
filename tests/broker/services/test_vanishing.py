"""What its cluster no longer knows is looked for again, and never ends in haste where many are gone at once."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from broker.models import Lease, NodeState, SimulatedPod, StaleLease
from broker.services import reconcile, vanishing
from broker.services.inventory import Rack
from tenants.services.walls import as_tenant
from tests.world import MODEL, REGION, Life, cards, fleet, fresh, home, ledger, node_of, offering, set_node

FEW = vanishing.FEW


def running(life: Life, count: int) -> list[Lease]:
    cards(count)
    owner, what = home(units=1000), offering()
    return [fresh(life.lease(owner, what, max_duration_s=36_000)) for _ in range(count)]


def vanish(*leases: Lease) -> list[SimulatedPod]:
    pods = [SimulatedPod.objects.get(name__startswith=f"l-{each.pk.removeprefix('lse_')}") for each in leases]
    SimulatedPod.objects.filter(pk__in=[each.pk for each in pods]).delete()
    return pods


def look(leases: Sequence[Lease], life: Life, *, after_s: float = 0) -> list[str]:
    """Look at each once, after a while in which nobody did, and return what becomes of them."""
    life.hints.clear()
    life.clock.at += timedelta(seconds=after_s)
    for each in leases:
        reconcile.step(each.pk, each.tenant_id, now=life.now)
    return [fresh(each).state for each in leases]


def test_one_that_is_gone_twice_ends_and_its_second_look_is_rung_for(life: Life) -> None:
    (lease,) = running(life, 1)
    vanish(lease)
    assert look([lease], life) == ["active"]
    assert fresh(lease).progress["text"] == vanishing.TEXT
    life.run(vanishing.SECOND_LOOK.total_seconds() + 3)
    assert (fresh(lease).state, fresh(lease).end_reason) == ("released", "device_lost")
    assert "gone" in ledger(lease)[-2].cause


def test_looks_that_follow_at_once_are_one_look(life: Life) -> None:
    (lease,) = running(life, 1)
    vanish(lease)
    assert look([lease], life) == look([lease], life, after_s=1) == ["active"]
    assert look([lease], life, after_s=2) == ["releasing"]


def test_one_that_was_there_between_is_looked_for_twice_more(life: Life) -> None:
    (lease,) = running(life, 1)
    (pod,) = vanish(lease)
    look([lease], life)
    pod.save(force_insert=True)
    assert look([lease], life, after_s=5) == ["active"]
    assert fresh(lease).progress == {}
    vanish(lease)
    assert look([lease], life, after_s=5) == ["active"]
    assert look([lease], life, after_s=5) == ["releasing"]


def test_a_first_look_of_long_ago_says_nothing(life: Life) -> None:
    (lease,) = running(life, 1)
    vanish(lease)
    look([lease], life)
    assert look([lease], life, after_s=vanishing.LOOKED.total_seconds() + 1) == ["active"]
    assert look([lease], life, after_s=3) == ["releasing"]


def test_a_mark_from_before_it_was_seen_is_none(life: Life) -> None:
    (lease,) = running(life, 1)
    vanish(lease)
    look([lease], life)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=life.now + timedelta(seconds=1))
    assert look([lease], life, after_s=5) == ["active"]


def test_a_few_at_once_end_and_more_wait_until_they_stayed_away(life: Life) -> None:
    leases = running(life, FEW + 2)
    there, gone = leases[0], leases[1:]
    assert len(gone) == FEW + 1
    vanish(*gone[1:])
    look(gone[1:], life)
    vanish(gone[0])
    look(gone[:1], life)
    assert set(look(gone, life, after_s=5)) == {"active"}
    assert all("nor others" in fresh(each).conditions["unreachable"] for each in gone)
    assert fresh(there).conditions == {}
    seen = {each.pk: fresh(each).seen_at for each in gone}
    for _ in range(21):
        assert set(look(gone, life, after_s=28)) == {"active"}
    assert set(look(gone, life, after_s=28)) == {"releasing"}
    for each in gone:
        assert fresh(each).ended_at == seen[each.pk].replace(microsecond=0)


def test_few_enough_go(life: Life) -> None:
    leases = running(life, FEW)
    vanish(*leases)
    look(leases, life)
    assert set(look(leases, life, after_s=5)) == {"releasing"}


def test_who_lets_go_of_what_waits_pays_up_to_its_last_proof_of_life(life: Life) -> None:
    leases = running(life, FEW + 1)
    vanish(*leases)
    look(leases, life)
    look(leases, life, after_s=5)
    seen = fresh(leases[0]).seen_at
    assert seen
    life.clock.at += timedelta(seconds=50)
    life.release(leases[0])
    assert fresh(leases[0]).ended_at == seen.replace(microsecond=0)


def test_many_on_one_cluster_make_nobody_wait_on_another(life: Life) -> None:
    leases = running(life, FEW + 1)
    vanish(*leases)
    look(leases, life)
    set_node(node_of(leases[0]), NodeState.CORDONED, life)
    fleet(Rack("south-1", REGION, MODEL, nodes=1, cards_per_node=1))
    other = fresh(life.lease(home("Merlin"), offering(), max_duration_s=36_000))
    assert node_of(other).cluster.name == "south-1"
    vanish(other)
    look([other], life)
    assert look([other], life, after_s=5) == ["releasing"]


def test_a_row_that_moved_meanwhile_is_left_alone(life: Life) -> None:
    (lease,) = running(life, 1)
    life.release(lease)
    with as_tenant(lease.tenant_id), pytest.raises(StaleLease):
        vanishing.is_doubted(lease, now=life.now)
