"""A quota that an operator sets applies at once."""

import re

import pytest
from django.test import Client

from broker.domain.lifecycle.states import LeaseState
from tenants.models import Quota, QuotaKind
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import tenant_scope
from tests import simulation
from tests.simulation import Simulation, TenantContext
from tests.web.portal.operators.fleet.test_operator_actions import page, trail
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db


def set_quota(operator: Client, owner: TenantContext, kind: str, limit: str) -> None:
    answer = operator.post(f"/ops/tenants/{owner.tenant.pk}/quota/", {"kind": kind, "limit": limit})
    assert (answer.status_code, answer["Location"]) == (302, f"/ops/tenants/{owner.tenant.pk}/")


def test_a_lower_quota_refuses_new_leases_and_ends_no_running_one(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    slice_ = simulation.offering("1g.10gb")
    running = [sim.create_lease(kestrel, slice_) for _ in range(2)]
    set_quota(operator, kestrel, "units", "2")
    with pytest.raises(QuotaExceeded):
        sim.request_lease(kestrel, slice_)
    set_quota(operator, kestrel, "units", "1")
    sim.run_with_sweeps(60)
    assert {simulation.reload_lease(lease).state for lease in running} == {LeaseState.ACTIVE}
    sim.release_lease(running[0])
    sim.run(60)
    with pytest.raises(QuotaExceeded):
        sim.request_lease(kestrel, slice_)
    assert "1 of 1" in visible_text(operator.get("/ops/tenants/"))


def test_a_higher_quota_allows_the_next_lease_and_is_audited(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    set_quota(operator, kestrel, "units", "1")
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    set_quota(operator, kestrel, "units", "4")
    sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    assert "4 of 4" in visible_text(operator.get("/ops/tenants/"))
    lowered, raised = sorted(trail("quota.set"), key=lambda event: event.pk)
    assert (lowered.detail["before"], lowered.detail["after"]) == (1_000_000, 1_000)
    assert (raised.detail["before"], raised.detail["after"]) == (1_000, 4_000)
    assert (raised.actor_kind, raised.actor_label) == ("staff", "operator@example.org")


@pytest.mark.parametrize(
    ("kind", "limit", "kept"),
    [
        (QuotaKind.UNITS, "2.5", 2_500),
        (QuotaKind.GPU_SECONDS, "1.5", 5_400_000),
        (QuotaKind.STORAGE, "40", 40),
        (QuotaKind.BURN, "12.5", 12_500_000_000),
    ],
)
def test_each_kind_of_quota_is_stored_exactly_as_entered(
    kestrel: TenantContext, operator: Client, kind: QuotaKind, limit: str, kept: int
) -> None:
    set_quota(operator, kestrel, kind, limit)
    with tenant_scope(kestrel.tenant.pk):
        assert Quota.objects.get(project=kestrel.project, kind=kind).soft_limit == kept
    field = re.search(rf'<input[^>]*id="l-{kind}-{kestrel.tenant.pk}"[^>]*>', page(operator, "/ops/tenants/"))
    assert field
    assert f'value="{limit}"' in field.group()


def test_a_quota_applies_to_its_own_tenant_only(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    other = simulation.create_tenant("Merlin")
    set_quota(operator, kestrel, "units", "0")
    sim.create_lease(other, simulation.offering("1g.10gb"))
    with pytest.raises(QuotaExceeded):
        sim.request_lease(kestrel, simulation.offering("1g.10gb"))


def test_the_form_shows_todays_limit_and_an_empty_field_lifts_it(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    set_quota(operator, kestrel, "units", "2.5")
    form = operator.get(f"/ops/tenants/{kestrel.tenant.pk}/").content.decode()
    assert re.search(r'name="limit"\s+type="number"\s+value="2.5"', form)
    set_quota(operator, kestrel, "units", "")
    with tenant_scope(kestrel.tenant.pk):
        assert not Quota.objects.filter(kind=QuotaKind.UNITS).exists()
    (lifted,) = trail("quota.remove")
    assert lifted.detail["before"] == 2500


def test_a_quota_of_a_project_is_set_from_the_tenants_page(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    child, other = kestrel.create_project("docking"), simulation.create_tenant("Other")
    form = {"kind": "units", "limit": "3", "project": child.pk}
    assert operator.post(f"/ops/tenants/{kestrel.tenant.pk}/quota/", form).status_code == 302
    with tenant_scope(kestrel.tenant.pk):
        assert Quota.objects.get(project=child).soft_limit == 3000
    form["project"] = other.project.pk
    assert operator.post(f"/ops/tenants/{kestrel.tenant.pk}/quota/", form).status_code == 404
