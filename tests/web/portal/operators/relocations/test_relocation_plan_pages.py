"""Operators see a plan's costs and gains, decide, and follow it."""

import re

import pytest
from django.test import Client

from broker.models import Cluster, RelocationPlan
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope
from tests.broker.services.relocation.scattered_leases import NOTICE_S, assert_invariants, relocations_of
from tests.simulation import Simulation, TenantContext, offering


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def plan(operator: Client, sim: Simulation) -> RelocationPlan:
    assert operator.post("/ops/relocation-plans/propose/")["Location"] == "/ops/relocation-plans/"
    sim.run(1)
    return RelocationPlan.objects.get(state="proposed")


def trail() -> list[tuple[str, str]]:
    with staff_scope():
        events = AuditEvent.objects.filter(action__startswith="relocation_plan").exclude(action__endswith=".seen")
        return [
            (event.action, event.detail.get("reason", ""))
            for event in events.order_by("at", "id")
            if "path" not in event.detail
        ]


@pytest.mark.deep
def test_a_plan_is_proposed_accepted_and_carried_out_from_the_pages(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    assert "No plans" in page(operator, "/ops/relocation-plans/")
    assert "Nothing changes before you accept the plan." in page(operator, "/ops/relocation-plans/propose/")
    one = f"/ops/relocation-plans/{plan(operator, sim).pk}/"
    assert one in page(operator, "/ops/relocation-plans/")
    shown = page(operator, one)
    assert all(word in shown for word in ("Before and after", "Accept", "Decline", "1 GPU", "Kestrel"))
    assert "GPU 0 after: empty" in shown
    assert "Tenants are notified immediately" in page(operator, f"{one}accept/")
    operator.post(f"{one}accept/", {"reason": "whole GPUs are asked for"})
    shown = page(operator, one)
    assert "Tenants are notified." in shown
    assert all(word in shown for word in ("Notified", "Relocation 1: tenant notified"))
    sim.run_with_sweeps(NOTICE_S + 60)
    shown = page(operator, one)
    assert all(word in shown for word in ("1 of 1 finished", "Relocation 1 done", "1 of 1 leases moved"))
    assert trail() == [("relocation_plans.propose", ""), ("relocation_plan.accepted", "whole GPUs are asked for")]
    assert_invariants(sim)


@pytest.mark.deep
def test_a_plan_for_a_queued_lease_is_shown_in_the_control_room_and_drawn(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    waits = sim.request_lease(kestrel, offering("whole-gpu"), name="whole-gpu")
    sim.run(1)
    found = plan(operator, sim)
    control = page(operator, "/ops/")
    assert "Moves are proposed for north-1" in control
    assert f"/ops/relocation-plans/{found.pk}/" in control
    shown = page(operator, f"/ops/relocation-plans/{found.pk}/")
    assert f"Frees {waits.offering.label} for a queued lease." in shown
    assert all(word in shown for word in ("whole-gpu</a> of Kestrel is queued", "for a queued lease"))
    assert re.search(r">queued lease\s*<", shown)
    assert operator.get(f"/api/v1/ops/relocation-plans/{found.pk}").json()["room_for"] == waits.pk


@pytest.mark.deep
def test_source_and_target_of_a_relocation_are_visible_on_a_phone(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    shown = page(operator, f"/ops/relocation-plans/{plan(operator, sim).pk}/")
    for word in ("From", "To"):
        (cell,) = re.findall(rf'<td class="([^"]*)">\s*<span class="phone-only faint">{word} </span>', shown)
        assert "cards-hidden" not in cell


@pytest.mark.deep
def test_a_plan_is_declined_with_a_reason_and_proposed_again(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    first = plan(operator, sim)
    operator.post("/ops/relocation-plans/propose/")
    sim.run(1)
    assert RelocationPlan.objects.get(state="proposed") == first  # it says the same
    assert operator.post(f"/ops/relocation-plans/{first.pk}/decline/", {"reason": ""}).status_code == 400
    operator.post(f"/ops/relocation-plans/{first.pk}/decline/", {"reason": "not this week"})
    assert "not this week" in page(operator, f"/ops/relocation-plans/{first.pk}/")
    assert plan(operator, sim) != first
    refused = operator.post(f"/ops/relocation-plans/{first.pk}/accept/", {"reason": "after all"})
    assert refused.status_code == 409


@pytest.mark.deep
def test_an_outdated_plan_is_declined_by_the_next_proposal(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    first = plan(operator, sim)
    with staff_scope():
        (move,) = relocations_of(first)
        lease = move.lease
    sim.release_lease(lease)
    sim.run(30)
    operator.post("/ops/relocation-plans/propose/")
    sim.run(1)
    first.refresh_from_db()
    assert (first.state, first.why) == ("declined", "it no longer has a benefit")


@pytest.mark.deep
def test_an_accepted_plan_is_cancelled(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    found = plan(operator, sim)
    operator.post(f"/ops/relocation-plans/{found.pk}/accept/", {"reason": "go"})
    assert "Cancel" in page(operator, f"/ops/relocation-plans/{found.pk}/")
    operator.post(f"/ops/relocation-plans/{found.pk}/cancel/", {"reason": "a launch is on"})
    sim.run_with_sweeps(10)
    shown = page(operator, f"/ops/relocation-plans/{found.pk}/")
    assert all(word in shown for word in ("Cancelled", "cancelled before it started", "a launch is on"))


@pytest.mark.deep
def test_an_unknown_plan_returns_404(operator: Client, kestrel: TenantContext) -> None:
    assert operator.get("/ops/relocation-plans/mpl_nothing/").status_code == 404


@pytest.mark.deep
def test_no_plan_is_proposed_for_a_cluster_with_the_plain_device_plugin(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    Cluster.objects.update(driver="device_plugin")
    operator.post("/ops/relocation-plans/propose/")
    sim.run(1)
    assert not RelocationPlan.objects.exists()
