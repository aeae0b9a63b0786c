"""Extending a lease."""

from datetime import UTC, datetime, timedelta

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases.ending import AlreadyOver
from broker.services.leases.growing import extend
from broker.services.leases.request import FARTHEST
from tenants.models import AuditEvent, QuotaKind
from tenants.services.refusals import Invalid, QuotaExceeded
from tenants.services.walls import as_tenant
from tests.world import NOW, Home, Life, cards, fresh, home, offering


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    return home("Kestrel")


def grow(life: Life, owner: Home, lease: object, more_s: int) -> None:
    with as_tenant(owner.tenant.pk):
        extend(lease, more_s=more_s, actor=owner.actor, now=life.now)  # type: ignore[arg-type]


def test_an_active_lease_ends_that_much_later(life: Life, kestrel: Home) -> None:
    lease = fresh(life.lease(kestrel, offering(), max_duration_s=120))
    assert lease.ends_at
    grow(life, kestrel, lease, 300)
    assert fresh(lease).ends_at == lease.ends_at + timedelta(seconds=300)
    assert fresh(lease).version == lease.version + 1
    life.run(130)
    assert fresh(lease).state == LeaseState.ACTIVE
    life.run(300)
    assert fresh(lease).end_reason == "expired"


def test_a_fixed_end_moves_along(life: Life, kestrel: Home) -> None:
    end = life.now + timedelta(seconds=600)
    lease = life.lease(kestrel, offering(), end_date=end)
    grow(life, kestrel, lease, 60)
    assert fresh(lease).ends_at == end + timedelta(seconds=60)


def test_a_queued_lease_may_wait_that_much_longer(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, offering("card"))
    waiting = life.ask(kestrel, offering("card"), end_date=life.now + timedelta(seconds=120))
    grow(life, kestrel, waiting, 600)
    life.go(130)
    assert fresh(waiting).state == LeaseState.QUEUED


def test_what_is_being_made_keeps_its_next_look(life: Life, kestrel: Home) -> None:
    lease = fresh(life.lease(kestrel, offering(), LeaseState.PROVISIONING))
    grow(life, kestrel, lease, 60)
    assert fresh(lease).due_at == lease.due_at
    assert fresh(lease).max_duration_s == lease.max_duration_s + 60


def test_an_extension_beyond_quota_changes_nothing(life: Life, kestrel: Home) -> None:
    kestrel.quota(QuotaKind.GPU_SECONDS, 4000 * 1000)
    lease = fresh(life.lease(kestrel, offering(), max_duration_s=3600))
    with pytest.raises(QuotaExceeded):
        grow(life, kestrel, lease, 600)
    after = fresh(lease)
    assert (after.ends_at, after.max_duration_s, after.version) == (lease.ends_at, 3600, lease.version)
    assert kestrel.used(QuotaKind.GPU_SECONDS) == 3600 * 1000


@pytest.mark.parametrize("more_s", [0, -60, 59, 10**9])
def test_an_extension_has_its_bounds(life: Life, kestrel: Home, more_s: int) -> None:
    lease = life.lease(kestrel, offering())
    with pytest.raises(Invalid) as refusal:
        grow(life, kestrel, lease, more_s)
    assert refusal.value.fix.text == "Extend by at most 719 h."


def test_what_is_ending_cannot_be_extended(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering())
    life.release(lease)
    with pytest.raises(AlreadyOver, match="it cannot be extended"):
        grow(life, kestrel, lease, 600)


def test_a_lease_whose_end_has_passed_cannot_be_extended(life: Life, kestrel: Home) -> None:
    lease = fresh(life.lease(kestrel, offering(), max_duration_s=120))
    life.hints.clear()  # nobody has ended it yet
    life.clock.at += timedelta(seconds=121)
    with pytest.raises(AlreadyOver, match="reached its end at 2026-11-21 09:02"):
        grow(life, kestrel, lease, 600)
    assert fresh(lease).max_duration_s == 120


@pytest.mark.parametrize("end", [NOW + FARTHEST, datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_no_extension_moves_a_fixed_end_out_of_sight(life: Life, kestrel: Home, end: datetime) -> None:
    lease = life.ask(kestrel, offering("card"), end_date=life.now + FARTHEST)
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(end_date=end)  # asked for before there was a bound
    with pytest.raises(Invalid, match="five years"):
        grow(life, kestrel, lease, 3600)
    assert fresh(lease).end_date == end


def test_an_extension_is_audited_with_before_and_after(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), max_duration_s=3600)
    grow(life, kestrel, lease, 600)
    with as_tenant(kestrel.tenant.pk):
        detail = AuditEvent.objects.get(action="lease.extend").detail
    assert detail == {"before_s": 3600, "after_s": 4200}
