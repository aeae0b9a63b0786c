"""Refused decisions about relocation plans."""

import pytest
from django.test import Client

from broker.models import RelocationPlan
from tests.simulation import Simulation, TenantContext
from tests.web.portal.operators.relocations.test_relocation_plan_pages import plan

REASONS = ("", "   ", "x" * 1000, "a\x00b", "a\x07b", "a\u202eb")


@pytest.mark.parametrize("step", ["accept", "decline"])
@pytest.mark.deep
def test_a_decision_without_a_readable_reason_is_refused(
    sim: Simulation, kestrel: TenantContext, operator: Client, step: str
) -> None:
    found = plan(operator, sim)
    for reason in REASONS:
        answer = operator.post(f"/ops/relocation-plans/{found.pk}/{step}/", {"reason": reason})
        assert answer.status_code == 400, repr(reason)
        assert "A reason must have 1 to 150 characters." in answer.content.decode()
    assert list(RelocationPlan.objects.values_list("pk", "state")) == [(found.pk, "proposed")]


@pytest.mark.deep
def test_a_step_out_of_order_is_refused_on_its_page(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    one = f"/ops/relocation-plans/{plan(operator, sim).pk}"
    early = operator.post(f"{one}/cancel/", {"reason": "too early"})
    assert (early.status_code, "The plan is proposed." in early.content.decode()) == (409, True)
    assert operator.post(f"{one}/accept/", {"reason": "go"}).status_code == 302
    for step in ("accept", "decline"):
        assert operator.post(f"{one}/{step}/", {"reason": "again"}).status_code == 409
    assert operator.put(f"{one}/accept/").status_code == operator.delete(f"{one}/").status_code == 405
    assert RelocationPlan.objects.get().state == "accepted"
