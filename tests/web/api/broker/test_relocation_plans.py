"""Operators decide about relocation plans over the API."""

from typing import Any

import pytest
from django.test import Client

from broker.models import RelocationPlan
from tenants.models import AuditEvent, User
from tenants.services.rls import staff_scope
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    assert_invariants,
    plan_log,
    propose_plan,
    scatter_leases,
)
from tests.simulation import Simulation, create_gpus, create_tenant


@pytest.fixture
def operator(db: None, settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


@pytest.fixture
def plan(sim: Simulation, operator: Client) -> RelocationPlan:
    create_gpus(2)
    scatter_leases(sim, create_tenant("Kestrel"), create_tenant("Merlin"), relocatable=True)
    return propose_plan(sim)


def ask(client: Client, plan: RelocationPlan, state: str, *, seen: str = "", reason: str = "asked for") -> Any:
    body = {"state": state, "reason": reason}
    headers = {"If-Match": seen} if seen else {}
    address = f"/api/v1/ops/relocation-plans/{plan.pk}"
    return client.patch(address, body, content_type="application/json", headers=headers)


def tag(client: Client, plan: RelocationPlan) -> str:
    return str(client.get(f"/api/v1/ops/relocation-plans/{plan.pk}")["ETag"])


@pytest.mark.deep
def test_a_plan_is_accepted_and_carried_out(sim: Simulation, operator: Client, plan: RelocationPlan) -> None:
    answer = ask(operator, plan, "accepted", seen=tag(operator, plan))
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["state"], body["relocations"][0]["state"], body["state_reason"]) == (
        "accepted",
        "noticed",
        "asked for",
    )
    assert answer["ETag"] == tag(operator, plan)
    sim.run_with_sweeps(NOTICE_S + 60)
    assert operator.get(f"/api/v1/ops/relocation-plans/{plan.pk}").json()["state"] == "done"
    with staff_scope():
        event = AuditEvent.objects.get(action="relocation_plan.accepted")
    assert (event.actor_label, event.detail["reason"]) == ("operator@example.org", "asked for")
    assert_invariants(sim)


@pytest.mark.deep
def test_an_accepted_plan_is_cancelled_and_a_proposed_one_declined(
    sim: Simulation, operator: Client, plan: RelocationPlan
) -> None:
    ask(operator, plan, "accepted", seen=tag(operator, plan))
    assert ask(operator, plan, "cancelled", seen=tag(operator, plan)).json()["state"] == "cancelling"
    sim.run_with_sweeps(60)
    assert plan_log(plan) == "proposed accepted 1:noticed cancelling 1:undone cancelled"
    another = propose_plan(sim)
    assert ask(operator, another, "declined", seen=tag(operator, another)).json()["state"] == "declined"


@pytest.mark.deep
def test_a_decision_without_the_current_version_of_the_plan_is_refused(operator: Client, plan: RelocationPlan) -> None:
    assert ask(operator, plan, "accepted").status_code == 428
    seen = tag(operator, plan)
    assert ask(operator, plan, "accepted", seen=seen).status_code == 200
    again = ask(operator, plan, "accepted", seen=seen)  # the same request twice has one effect
    assert (again.status_code, again.json()["code"]) == (412, "precondition-failed")
    assert plan_log(plan) == "proposed accepted 1:noticed"


@pytest.mark.parametrize(
    ("state", "reason", "status"),
    [("cancelled", "x", 409), ("running", "x", 400), ("accepted", "", 400), ("accepted", "x" * 151, 400)],
)
@pytest.mark.deep
def test_an_invalid_decision_changes_nothing(
    operator: Client, plan: RelocationPlan, state: str, reason: str, status: int
) -> None:
    assert ask(operator, plan, state, seen="*", reason=reason).status_code == status
    assert plan_log(plan) == "proposed"


def test_a_session_without_a_csrf_token_decides_nothing(operator: Client, plan: RelocationPlan) -> None:
    """A page elsewhere that an operator visits could send the session along."""
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = operator.cookies
    assert ask(careful, plan, "accepted", seen="*").status_code == 403
    assert plan_log(plan) == "proposed"
