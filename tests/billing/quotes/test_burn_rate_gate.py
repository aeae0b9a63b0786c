"""Burn rate quotas, and leases without a price."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils.module_loading import import_string
from pytest_django import DjangoAssertNumQueries

from billing.services.approvals import approval_gate
from billing.services.catalogue.price_list import NoPrice
from billing.services.funds.holds import budget_holds
from billing.services.new_tenants import new_tenant_gate
from billing.services.quotes import burn_rate_gate
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Offering
from broker.services import quotas
from broker.services.leases.lifecycle import extension
from config.env import EnvironmentSettings
from tenants.models import QuotaKind
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.simulation import (
    NOW,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    offering,
    reload_lease,
    simulate,
)

pytestmark = pytest.mark.django_db


GATES = EnvironmentSettings.model_fields["lease_gates"].default


@pytest.fixture
def kestrel(settings: Any) -> TenantContext:
    settings.LEASE_GATES = GATES
    create_fleet()
    return create_tenant("Kestrel")


def priced_offering(profile: str = "1g.10gb", nano: int = EURO) -> Offering:
    if not offering(profile).price_versions.exists():
        set_price(offering(profile), nano, since=LONG_AGO)
    return offering(profile)


def test_a_lease_counts_in_the_burn_rate_quotas_of_all_parent_projects(kestrel: TenantContext) -> None:
    child = kestrel.create_project("child")
    kestrel.set_quota(QuotaKind.BURN, 5 * EURO)
    kestrel.set_quota(QuotaKind.BURN, 3 * EURO, project=child)
    with simulate() as sim:
        lease = sim.request_lease(kestrel, priced_offering(), project=child, quantity=2)
        assert kestrel.quota_used(QuotaKind.BURN) == 2 * EURO
        assert kestrel.quota_used(QuotaKind.BURN, child) == 2 * EURO
        with pytest.raises(QuotaExceeded) as refusal:
            sim.request_lease(kestrel, priced_offering(), project=child, quantity=2)
        assert refusal.value.extra["quota"]["kind"] == "burn"
        sim.run(60)
        sim.release_lease(reload_lease(lease))
        sim.run(60)
        assert reload_lease(lease).state == LeaseState.RELEASED
    assert kestrel.quota_used(QuotaKind.BURN) == 0


def test_an_offering_without_a_price_cannot_be_leased(kestrel: TenantContext) -> None:
    with simulate() as sim, pytest.raises(NoPrice, match="no price in EUR"):
        sim.request_lease(kestrel, unpriced_offering())


def unpriced_offering() -> Offering:
    return next(o for o in Offering.objects.order_by("pk") if not o.price_versions.exists())


def test_a_new_burn_rate_quota_counts_running_leases(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, priced_offering())
        extend_by_an_hour(sim, kestrel, lease)
        assert reload_lease(lease).quota_uses["burn"] == {"amount": EURO, "parts": []}
        kestrel.set_quota(QuotaKind.BURN, EURO)
        assert kestrel.quota_used(QuotaKind.BURN) == EURO
        sim.release_lease(lease)
        sim.run(60)
    assert kestrel.quota_used(QuotaKind.BURN) == 0


def test_the_burn_rate_gate_needs_one_query_without_quotas(
    kestrel: TenantContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with simulate() as sim:
        lease = reload_lease(sim.request_lease(kestrel, priced_offering()))
    with tenant_scope(kestrel.tenant.pk):
        lease = Lease.objects.select_related("offering", "project").get(pk=lease.pk)
        with django_assert_num_queries(1):
            burn_rate_gate.gate(lease, now=NOW)


def test_an_extension_does_not_increase_the_burn_rate(kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.BURN, EURO)
    with simulate() as sim:
        lease = sim.create_lease(kestrel, priced_offering())
        extend_by_an_hour(sim, kestrel, lease)
    assert kestrel.quota_used(QuotaKind.BURN) == EURO


def extend_by_an_hour(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    with tenant_scope(owner.tenant.pk):
        grown = extension.extend_lease(lease, more_s=3600, actor=owner.actor, now=sim.now)
    assert grown.ends_at - lease.ends_at == timedelta(hours=1)


def test_every_gate_is_enabled_by_default_and_approval_comes_last() -> None:
    assert [import_string(name) for name in GATES] == [
        quotas.gate,
        burn_rate_gate.gate,
        new_tenant_gate.gate,
        budget_holds.gate,
        approval_gate.gate,
    ]
