"""What operators end, and what they may do to offerings."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease, Node, Offering, OfferingState
from broker.services import offerings, upkeep
from broker.services.leases import ending, evicting
from ports import doorbell
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid, Missing, Stale
from tenants.services.walls import as_staff
from tests import world
from tests.world import OPERATOR, Home, Life

pytestmark = pytest.mark.django_db


def test_an_operator_ends_a_lease_of_any_tenant_with_a_reason_it_can_read(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    evicting.evict(lease.pk, why="  the card   is replaced ", actor=OPERATOR, now=life.now)
    step = world.ledger(lease)[-1]
    assert (step.after, step.reason, step.cause) == ("releasing", "by_operator", "the card is replaced")
    assert (step.actor_kind, step.actor_label) == ("staff", OPERATOR.label)


def test_a_waiting_lease_leaves_the_queue_for_good(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, world.offering("1g.10gb"))
    evicting.evict(lease.pk, why="asked for by mistake", actor=OPERATOR, now=life.now)
    assert world.fresh(lease).state == LeaseState.RELEASED


def test_a_lease_that_is_not_there_is_missing(life: Life, kestrel: Home) -> None:
    with pytest.raises(Missing):
        evicting.evict("lse_nobody", why="cleaning", actor=OPERATOR, now=life.now)


@pytest.mark.parametrize("why", ["", "   ", "x" * 151, "a\x00b"])
def test_without_a_readable_reason_nothing_ends(life: Life, kestrel: Home, why: str) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    with pytest.raises(Invalid):
        evicting.evict(lease.pk, why=why, actor=OPERATOR, now=life.now)
    assert world.fresh(lease).state == LeaseState.ACTIVE


def test_all_leases_of_a_node_end_and_no_other(life: Life, kestrel: Home) -> None:
    tern = world.home("Tern")
    first, second = life.lease(kestrel, world.offering("1g.10gb")), life.lease(tern, world.offering("card"))
    node = world.node_of(first)
    world.fleet(world.Rack("west-2", "eu-west", "A100-80GB", nodes=1, cards_per_node=1))
    elsewhere = life.lease(kestrel, world.offering("card", model="A100-80GB"))
    ended = evicting.evict_all(node, why="power works", actor=OPERATOR, now=life.now)
    assert {lease.pk for lease in ended} == {first.pk, second.pk}
    assert {world.fresh(lease).state for lease in (first, second)} == {LeaseState.RELEASING}
    assert world.fresh(elsewhere).state == LeaseState.ACTIVE
    assert evicting.evict_all(node, why="power works", actor=OPERATOR, now=life.now) == []


def test_a_lease_that_ends_by_itself_meanwhile_is_passed_over(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.lease(kestrel, world.offering("1g.10gb"))

    def over(*_: object, **__: object) -> None:
        raise ending.AlreadyOver("it ended", fix="nothing")

    monkeypatch.setattr(ending, "release", over)
    assert evicting.evict_all(Node.objects.get(), why="power works", actor=OPERATOR, now=life.now) == []


def test_an_offering_is_renamed_once_and_the_trail_tells(life: Life, kestrel: Home) -> None:
    offering = world.offering("card")
    offerings.rename(offering, label=" H100,  whole ", actor=OPERATOR, now=life.now)
    offerings.rename(offering, label="H100, whole", actor=OPERATOR, now=life.now)
    assert Offering.objects.get(pk=offering.pk).label == "H100, whole"
    with as_staff():
        events = AuditEvent.objects.filter(action="offering.rename")
        assert [event.detail["after"] for event in events] == ["H100, whole"]


@pytest.mark.parametrize("label", ["", "x" * 121, "a\x07b"])
def test_a_label_nobody_can_read_is_refused(kestrel: Home, label: str) -> None:
    with pytest.raises(Invalid):
        offerings.rename(world.offering("card"), label=label, actor=OPERATOR, now=world.NOW)


def test_an_offering_is_published_and_retired_and_never_a_draft_again(kestrel: Home) -> None:
    offering = world.offering("card")
    for state in (OfferingState.RETIRED, OfferingState.PUBLISHED, OfferingState.PUBLISHED):
        offerings.move(offering, state, actor=OPERATOR, now=world.NOW)
        assert Offering.objects.get(pk=offering.pk).state == state
    with pytest.raises(offerings.NotThere):
        offerings.move(offering, OfferingState.DRAFT, actor=OPERATOR, now=world.NOW)


def test_two_operators_at_once_do_not_overwrite_each_other(kestrel: Home) -> None:
    mine, theirs = world.offering("card"), world.offering("card")
    offerings.rename(theirs, label="Theirs", actor=OPERATOR, now=world.NOW)
    with pytest.raises(Stale):
        offerings.rename(mine, label="Mine", actor=OPERATOR, now=world.NOW)


def test_upkeep_counts_what_is_due_and_what_is_late(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorbell, "reachable", lambda: True)
    with as_staff():
        seen = upkeep.look(now=life.now)
    assert (seen.hints, seen.oldest, seen.due, seen.overdue, seen.late) == (0, None, 0, 0, False)
    life.lease(kestrel, world.offering("card"), LeaseState.PROVISIONING)
    doorbell._write("broker.step", "lse_x", "", life.now)
    life.clock.at += 2 * upkeep.LATE
    with as_staff():
        seen = upkeep.look(now=life.now)
    assert (seen.hints, seen.oldest, seen.due, seen.overdue) == (1, 2 * upkeep.LATE, 1, 1)
    assert seen.late
    assert seen.valkey
    assert seen.looked is None
    active = life.lease(kestrel, world.offering("1g.10gb"))
    with as_staff():
        assert upkeep.look(now=life.now).looked == active.seen_at
    assert Lease.objects.count() == 0  # nobody but staff sees another's
