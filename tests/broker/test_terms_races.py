"""An extension that meets another step: whoever read the lease before it may not act on the old terms."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.provisioners.base import Observation, Order
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters
from broker.services.leases import ending, growing, placing
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.database import OwnDatabase
from tests.world import Home, Life, alive, cards, fresh, held, home, offering

HOUR = 3600


@pytest.fixture
def life(own_database: OwnDatabase) -> Iterator[Life]:
    with alive() as life:
        yield life


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    kestrel = home("Kestrel")
    kestrel.quota(QuotaKind.GPU_SECONDS, 10**12)
    return kestrel


def grow(life: Life, owner: Home, lease: Lease) -> None:
    with as_tenant(owner.tenant.pk):
        growing.extend(fresh(lease), more_s=HOUR, actor=owner.actor, now=life.now)


def test_an_extension_while_the_cluster_makes_it_counts(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = life.lease(kestrel, offering(), LeaseState.PROVISIONING, max_duration_s=HOUR)
    grown: list[str] = []

    class ExtendedMeanwhile(SimulatedProvisioner):
        def ensure(self, order: Order, *, now: object) -> Observation:  # type: ignore[override]
            seen = super().ensure(order, now=now)  # type: ignore[arg-type]
            if seen.seen == "ready" and not grown:
                grown.append(order.name)
                grow(life, kestrel, lease)
            return seen

    monkeypatch.setattr(clusters, "simulated", ExtendedMeanwhile)
    life.run(30)
    after = fresh(lease)
    assert grown
    assert after.active_at
    assert after.ends_at
    assert after.ends_at - after.active_at == timedelta(seconds=2 * HOUR)


def test_nobody_ends_what_was_extended_after_they_read_it(life: Life, kestrel: Home) -> None:
    lease = fresh(life.lease(kestrel, offering(), max_duration_s=120))
    stale = fresh(lease)
    grow(life, kestrel, lease)
    assert lease.ends_at
    with as_tenant(kestrel.tenant.pk):
        ending.release(stale, reason=EndReason.EXPIRED, now=lease.ends_at, at=lease.ends_at)
    assert fresh(lease).state == LeaseState.ACTIVE


def test_a_release_that_read_the_old_terms_gives_all_quota_back(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, offering("card"))
    before = kestrel.used(QuotaKind.GPU_SECONDS)
    waiting = life.ask(kestrel, offering("card"))
    stale = fresh(waiting)
    grow(life, kestrel, waiting)
    with as_tenant(kestrel.tenant.pk):
        ending.release(stale, reason=EndReason.BY_TENANT, now=life.now)
    assert fresh(waiting).state == LeaseState.RELEASED
    assert kestrel.used(QuotaKind.GPU_SECONDS) == before


def test_a_lease_that_is_extended_while_it_is_placed_gets_its_place(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, offering("card"), max_duration_s=HOUR)
    stale = fresh(lease)
    grow(life, kestrel, lease)
    with as_tenant(kestrel.tenant.pk):
        assert placing.place(stale, now=life.now)
    assert fresh(lease).max_duration_s == 2 * HOUR
    assert len(held(lease)) == 1
