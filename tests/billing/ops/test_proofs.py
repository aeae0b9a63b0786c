"""Every proof holds while nothing is wrong, and turns red for its own fault."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion, RatedCharge
from billing.services import proofs, rating
from broker.domain.states import EndReason, LeaseState
from broker.models import Allocation, Lease, Transition
from ports import clock
from tenants.models import Quota, QuotaKind
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_staff, as_tenant
from tests import world
from tests.billing.histories import promise
from tests.database import OwnDatabase
from tests.world import Home, Life

LATER = timedelta(seconds=2 * proofs.RATED_AFTER_S)
Plant = Callable[[Life, Home, Lease], None]


def red() -> dict[str, tuple[str, ...]]:
    """Return the proofs that fail, with their examples."""
    with as_staff():
        return {proof.name: proof.examples for proof in proofs.check(now=clock.now()) if not proof.holds}


def busy(life: Life, owner: Home) -> Lease:
    """Let a few leases live, and return one that is active."""
    life.lease(owner, world.offering("3g.40gb"), LeaseState.RELEASED)
    life.lease(owner, world.offering("card"), LeaseState.QUEUED)
    lease = life.lease(owner, world.offering("1g.10gb"), quantity=2)
    life.run(LATER.total_seconds())
    rating.rate(now=life.now)
    return lease


@pytest.mark.django_db
def test_all_hold_in_an_ordinary_life_and_say_when_they_were_checked(life: Life, kestrel: Home) -> None:
    busy(life, kestrel)
    with as_staff():
        found = proofs.check(now=life.now)
    assert [proof.name for proof in found if not proof.holds] == []
    assert len(found) == 20
    assert {proof.checked_at for proof in found} == {life.now}


def lose_place(life: Life, owner: Home, lease: Lease) -> None:
    first = Allocation.objects.filter(lease=lease).order_by("id").first()
    Allocation.objects.filter(pk=first.pk).update(released_at=life.now)


def keep_place(life: Life, owner: Home, lease: Lease) -> None:
    Allocation.objects.filter(lease=lease).update(generation=lease.generation + 1)


def miscount(life: Life, owner: Home, lease: Lease) -> None:
    Quota.objects.filter(kind=QuotaKind.UNITS).update(used=1)


def forget_hours(life: Life, owner: Home, lease: Lease) -> None:
    Quota.objects.create(
        tenant=owner.tenant,
        project=owner.project,
        kind=QuotaKind.GPU_SECONDS,
        limit=1,
        soft_limit=1,
        window_start=life.now,
    )
    part = [Quota.objects.get(kind=QuotaKind.GPU_SECONDS).pk, 5, life.now.isoformat()]
    Lease.objects.filter(pk=lease.pk).update(
        quota_uses={**lease.quota_uses, "gpu_seconds": {"amount": 5, "parts": [part]}}
    )


def break_chain(life: Life, owner: Home, lease: Lease) -> None:
    step = lease.step(
        lease.seq + 1, before=LeaseState.QUEUED, after=LeaseState.ACTIVE, actor=SYSTEM, cause="?"
    )
    Transition.objects.bulk_create([step])
    Lease.objects.filter(pk=lease.pk).update(seq=lease.seq + 1)


def leave_ledger(life: Life, owner: Home, lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(seq=lease.seq - 1)


def charge_nothing(life: Life, owner: Home, lease: Lease) -> None:
    RatedCharge.objects.create(
        lease_id=lease.pk,
        seq=99,
        price_version_id=1,
        period_id=1,
        billed_period_id=1,
        tenant_id=owner.tenant.pk,
        project_id=owner.project.pk,
        offering_id=lease.offering_id,
        s=life.now - timedelta(seconds=5),
        e=life.now,
        unit_seconds=5,
        exact_num=5,
        run_id=1,
    )


def charge_too_little(life: Life, owner: Home, lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(ended_at=life.now - LATER)
    lease.move(LeaseState.RELEASING, now=life.now, reason=EndReason.BY_TENANT)


def break_promise(life: Life, owner: Home, lease: Lease) -> None:
    promise(lease, PriceVersion.objects.get(offering=lease.offering_id))
    charge_nothing(life, owner, lease)


def forget_price(life: Life, owner: Home, lease: Lease) -> None:
    row = PriceVersion.objects.get(offering=lease.offering_id)
    PriceVersion.objects.filter(pk=row.pk).update(valid=DateTimeTZRange(row.valid.lower, life.now))


FAULTS: list[tuple[Plant, str]] = [
    (lose_place, "no lease without its place"),
    (keep_place, "no place without a lease"),
    (miscount, "quotas match holdings"),
    (forget_hours, "quotas match holdings"),
    (break_chain, "ledger chains whole"),
    (leave_ledger, "ledger chains whole"),
    (charge_too_little, "charged is active"),
    (charge_nothing, "no charge without use"),
    (break_promise, "promised is charged"),
    (forget_price, "nothing runs unpriced"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("plant", "name"), FAULTS, ids=[plant.__name__ for plant, _ in FAULTS])
def test_each_turns_red_for_its_own_fault(life: Life, kestrel: Home, plant: Plant, name: str) -> None:
    lease = world.fresh(busy(life, kestrel))
    with as_tenant(kestrel.tenant.pk):
        plant(life, kestrel, lease)
    found = red()
    assert name in found
    assert len(found[name]) >= 1


def test_an_oversold_place_is_seen_even_where_the_database_no_longer_guards(
    own_database: OwnDatabase,
) -> None:
    with world.alive() as life:
        world.cards(1)
        owner = world.home("Kestrel")
        life.lease(owner, world.offering("1g.10gb"))
        life.lease(owner, world.offering("1g.10gb"))
        assert "no oversell" not in red()
        with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as admin:
            admin.execute("ALTER TABLE broker_allocation DROP CONSTRAINT one_lease_per_place")
        with as_tenant(owner.tenant.pk):
            Allocation.objects.update(placement="[3,4)")
        assert [example.split()[1] for example in red()["no oversell"]] == ["[3,4)"]
