"""The operators' page of one tenant: everything that belongs to it, and nothing of another."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from broker.domain.lifecycle.states import LeaseState
from tenants.domain.roles import Role
from tests.billing.budgets.budget_setup import create_budget
from tests.simulation import OPERATOR, Simulation, TenantContext, create_tenant, offering
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db


def page(operator: Client, owner: TenantContext) -> str:
    answer: Any = operator.get(f"/ops/tenants/{owner.tenant.pk}/")
    assert answer.status_code == 200
    return visible_text(answer)


def test_the_page_shows_projects_leases_members_tokens_money_and_audit(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    child = kestrel.create_project("docking")
    create_budget(kestrel, 50_000, sim)
    sim.create_lease(kestrel, offering("3g.40gb"), name="fold", project=child)
    sim.create_lease(kestrel, offering("whole-gpu"), LeaseState.QUEUED, quantity=4, name="waits")
    member = kestrel.create_member(Role.BILLING)
    kestrel.token()
    new_grants.give_grant(
        kestrel.tenant, GrantTerms(minor=4260, reason="slow image pull"), idem="x", actor=OPERATOR, now=sim.now
    )
    sim.run(3600)
    shown = page(operator, kestrel)
    assert f"{kestrel.tenant.name} Good" in shown
    assert "docking" in shown
    assert "€500.00" in shown, "its budget"
    assert "fold" in shown
    assert "waits" in shown
    assert member.email in shown
    assert "test machine" in shown, "the token, and its service account"
    assert "slow image pull €42.60" in shown
    assert "project.create" in shown


def test_its_amounts_are_those_of_the_tenants_own_pages(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    own = Client()
    own.force_login(kestrel.create_member(Role.OWNER))
    sim.create_lease(kestrel, offering("3g.40gb"), name="fold", max_duration_s=8 * 3600)
    sim.run(3600)
    other = create_tenant("Other")
    sim.create_lease(other, offering("1g.10gb"), name="foreign")
    sim.run(1000)
    shown, home = page(operator, kestrel), visible_text(own.get("/"))
    spent = re.search(r"Spent in November (€[\d.,]+)", home)
    forecast = re.search(r"Forecast (€[\d.,]+)", home)
    rate = re.search(r"Spend rate (€[\d.,]+)/h", home)
    assert spent
    assert forecast
    assert rate
    assert f"Spent this month {spent[1]} forecast {forecast[1]}" in shown
    assert f"Spend rate {rate[1]}/h" in shown
    assert f"Committed {spent[1]} used but not invoiced, before VAT" in shown
    assert "foreign" not in shown


def test_the_number_of_queries_does_not_grow_with_projects_and_leases(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as spoken:
            page(operator, kestrel)
        return len(spoken)

    sim.create_lease(kestrel, offering("1g.10gb"), project=kestrel.create_project("first"))
    kestrel.create_member(Role.MEMBER)
    few = count()
    for n in range(3):
        sim.create_lease(kestrel, offering("1g.10gb"), project=kestrel.create_project(f"p{n}"))
        kestrel.create_member(Role.MEMBER)
    assert count() == few


def test_a_missing_tenant_is_not_found(operator: Client) -> None:
    assert operator.get("/ops/tenants/ten_00000000000000000000000000/").status_code == 404


def test_tenant_names_lead_to_the_page(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"))
    sim.create_lease(kestrel, offering("whole-gpu"), LeaseState.QUEUED, quantity=4)
    link = f'href="/ops/tenants/{kestrel.tenant.pk}/"'
    for address in ("/ops/tenants/", "/ops/leases/", f"/ops/leases/{lease.pk}/", "/ops/queue/", "/ops/gpus/?show=sold"):
        assert link in operator.get(address).content.decode(), address
