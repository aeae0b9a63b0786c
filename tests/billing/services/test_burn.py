"""No lease without a price, and no project burns more per hour than it may."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils.module_loading import import_string
from pytest_django import DjangoAssertNumQueries

from billing.services import burn
from billing.services.funds import holds
from billing.services.prices import NoPrice
from broker.domain.states import LeaseState
from broker.models import Lease, Offering
from broker.services import quotas
from broker.services.leases import growing
from config.operator import Operator
from tenants.models import QuotaKind
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, LONG_AGO, reprice
from tests.world import NOW, Home, Life, alive, fleet, fresh, home, offering

pytestmark = pytest.mark.django_db


GATES = Operator.model_fields["lease_gates"].default


@pytest.fixture
def kestrel(settings: Any) -> Home:
    settings.LEASE_GATES = GATES
    fleet()
    return home("Kestrel")


def priced(profile: str = "1g.10gb", nano: int = EURO) -> Offering:
    if not offering(profile).price_versions.exists():
        reprice(offering(profile), nano, since=LONG_AGO)
    return offering(profile)


def test_a_lease_takes_its_price_from_every_burn_quota_above_it(kestrel: Home) -> None:
    child = kestrel.child("child")
    kestrel.quota(QuotaKind.BURN, 5 * EURO)
    kestrel.quota(QuotaKind.BURN, 3 * EURO, project=child)
    with alive() as life:
        lease = life.ask(kestrel, priced(), project=child, quantity=2)
        assert kestrel.used(QuotaKind.BURN) == 2 * EURO
        assert kestrel.used(QuotaKind.BURN, child) == 2 * EURO
        with pytest.raises(QuotaExceeded) as refusal:
            life.ask(kestrel, priced(), project=child, quantity=2)
        assert refusal.value.extra["quota"]["kind"] == "burn"
        life.run(60)
        life.release(fresh(lease))
        life.run(60)
        assert fresh(lease).state == LeaseState.RELEASED
    assert kestrel.used(QuotaKind.BURN) == 0


def test_an_offering_without_a_price_is_not_leased(kestrel: Home) -> None:
    with alive() as life, pytest.raises(NoPrice, match="no price in EUR"):
        life.ask(kestrel, unpriced())


def unpriced() -> Offering:
    return next(o for o in Offering.objects.order_by("pk") if not o.price_versions.exists())


def test_a_burn_quota_that_is_set_later_counts_what_burns_already(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, priced())
        extend(life, kestrel, lease)
        assert fresh(lease).quota_uses["burn"] == {"amount": EURO, "parts": []}
        kestrel.quota(QuotaKind.BURN, EURO)
        assert kestrel.used(QuotaKind.BURN) == EURO
        life.release(lease)
        life.run(60)
    assert kestrel.used(QuotaKind.BURN) == 0


def test_the_gate_costs_one_query_where_nothing_limits(
    kestrel: Home, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with alive() as life:
        lease = fresh(life.ask(kestrel, priced()))
    with as_tenant(kestrel.tenant.pk):
        lease = Lease.objects.select_related("offering", "project").get(pk=lease.pk)
        with django_assert_num_queries(1):
            burn.gate(lease, now=NOW)


def test_an_extension_takes_no_more_burn(kestrel: Home) -> None:
    kestrel.quota(QuotaKind.BURN, EURO)
    with alive() as life:
        lease = life.lease(kestrel, priced())
        extend(life, kestrel, lease)
    assert kestrel.used(QuotaKind.BURN) == EURO


def extend(life: Life, owner: Home, lease: Lease) -> None:
    with as_tenant(owner.tenant.pk):
        grown = growing.extend(lease, more_s=3600, actor=owner.actor, now=life.now)
    assert grown.ends_at - lease.ends_at == timedelta(hours=1)


def test_both_gates_stand_in_the_way_unless_an_operator_says_otherwise() -> None:
    assert [import_string(name) for name in GATES] == [quotas.gate, burn.gate, holds.gate]
