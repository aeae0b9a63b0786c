"""Asking for a lease."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease, Offering
from broker.services.leases.request import FARTHEST, OfferingRetired, PlacementImpossible
from tenants.models import AuditEvent, QuotaKind
from tenants.services.refusals import Invalid, Missing, QuotaExceeded
from tenants.services.walls import as_tenant
from tests.world import NOW, Home, Life, cards, fleet, held, home, ledger, offering, path, soft_offering


@pytest.fixture
def kestrel(life: Life) -> Home:
    fleet()
    return home("Kestrel")


def count(owner: Home) -> int:
    with as_tenant(owner.tenant.pk):
        return Lease.objects.count()


def test_a_lease_is_queued_with_its_first_two_transitions(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, offering(), name=" fold-run-7 ")
    assert lease.state == LeaseState.QUEUED
    assert lease.name == "fold-run-7"
    assert path(lease) == "requested queued"
    first, second = ledger(lease)
    assert (first.actor_id, first.prev_at, second.prev_at) == (kestrel.actor.id, None, first.at)


def test_asking_rings_and_is_audited_with_its_actor(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, offering())
    assert [hint[2:] for hint in life.hints] == [("broker.step", lease.pk, kestrel.tenant.pk)]
    with as_tenant(kestrel.tenant.pk):
        event = AuditEvent.objects.get(action="lease.request", subject_id=lease.pk)
    assert (event.actor_id, event.actor_label) == (kestrel.actor.id, kestrel.actor.label)


def test_a_lease_beyond_quota_holds_nothing(life: Life, kestrel: Home) -> None:
    kestrel.quota(QuotaKind.UNITS, 6_999)
    with pytest.raises(QuotaExceeded) as refusal:
        life.ask(kestrel, offering("card"))
    assert "is 7 units; 0 are in use, 7 free, and this asks for 7" in refusal.value.detail
    assert refusal.value.extra["quota"]["limit"] == 6_999
    assert count(kestrel) == 0
    assert kestrel.used() == 0
    assert not life.hints


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 1000}, "name"),
        ({"name": "a\x07b"}, "name"),
        ({"name": "a\u2028b"}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "a\u200bb"}, "name"),
        ({"quantity": 0}, "quantity"),
        ({"quantity": 10**9}, "quantity"),
        ({"max_duration_s": 59}, "max_duration_s"),
        ({"max_duration_s": 10**9}, "max_duration_s"),
        ({"end_date": NOW - timedelta(days=1)}, "end_date"),
        ({"end_date": NOW + timedelta(seconds=30)}, "end_date"),
        ({"end_date": NOW + FARTHEST + timedelta(seconds=1)}, "end_date"),
        ({"end_date": datetime(9999, 12, 31, 23, 59, tzinfo=ZoneInfo("America/New_York"))}, "end_date"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(
    life: Life, kestrel: Home, wanted: dict[str, object], field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        life.ask(kestrel, offering(), **wanted)
    assert refusal.value.field == field
    assert refusal.value.fix.text
    assert count(kestrel) == 0


def test_an_unknown_and_a_drafted_offering_look_the_same(life: Life, kestrel: Home) -> None:
    drafted = offering()
    Offering.objects.filter(pk=drafted.pk).update(state="draft")
    with pytest.raises(Missing):
        life.ask(kestrel, drafted)
    with pytest.raises(Missing):
        life.ask(kestrel, Offering(pk="off_none"))


def test_a_retired_offering_takes_no_new_lease(life: Life, kestrel: Home) -> None:
    Offering.objects.update(state="retired")
    with pytest.raises(OfferingRetired):
        life.ask(kestrel, offering())


def test_a_gang_no_node_could_ever_hold_is_refused_with_the_most_there_is(life: Life, kestrel: Home) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        life.ask(kestrel, offering("card"), quantity=9, same_node=True)
    assert refusal.value.extra["most"] == 8
    assert "or allow several nodes" in refusal.value.fix.text


def test_a_gang_the_region_could_never_hold_is_refused(life: Life, kestrel: Home) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        life.ask(kestrel, offering("1g.10gb"), quantity=8 * 7 + 1)
    assert refusal.value.extra["most"] == 56


def test_a_gang_that_fits_when_empty_is_accepted(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("card"), quantity=8, same_node=True)
    assert len(held(lease)) == 8


def test_a_same_node_gang_where_no_card_stands_is_refused(life: Life) -> None:
    cards(1)
    owner = home()
    Offering.objects.update(region="nowhere")
    with pytest.raises(PlacementImpossible) as refusal:
        life.ask(owner, offering("card"), quantity=2, same_node=True)
    assert refusal.value.extra["most"] == 0


def test_two_shares_of_a_card_are_not_sold_to_one_lease(life: Life, kestrel: Home) -> None:
    """A pod gets one replica: with two asked for, its kubelet would refuse it again and again."""
    with pytest.raises(Invalid, match="not twice the compute"):
        life.ask(kestrel, soft_offering(), quantity=2)
    assert count(kestrel) == 0
