"""What nobody can mean decides nothing about a plan: it stays as it is, and the page says what is wanted."""

import pytest
from django.test import Client

from broker.models import MovePlan
from tests.broker.ops.test_plans import kestrel as kestrel
from tests.broker.ops.test_plans import plan
from tests.world import Home, Life

REASONS = ("", "   ", "x" * 1000, "a\x00b", "a\x07b", "a\u202eb")


@pytest.mark.parametrize("step", ["accept", "decline"])
def test_a_decision_without_a_reason_that_can_be_read_is_none(
    life: Life, kestrel: Home, operator: Client, step: str
) -> None:
    found = plan(operator, life)
    for reason in REASONS:
        answer = operator.post(f"/ops/plans/{found.pk}/{step}/", {"reason": reason})
        assert answer.status_code == 400, repr(reason)
        assert "A reason has 1 to 150 characters." in answer.content.decode()
    assert list(MovePlan.objects.values_list("pk", "state")) == [(found.pk, "proposed")]


def test_a_step_that_is_not_the_next_is_refused_where_it_was_asked(
    life: Life, kestrel: Home, operator: Client
) -> None:
    one = f"/ops/plans/{plan(operator, life).pk}"
    early = operator.post(f"{one}/cancel/", {"reason": "too early"})
    assert (early.status_code, "The plan is proposed." in early.content.decode()) == (409, True)
    assert operator.post(f"{one}/accept/", {"reason": "go"}).status_code == 302
    for step in ("accept", "decline"):
        assert operator.post(f"{one}/{step}/", {"reason": "again"}).status_code == 409
    assert operator.put(f"{one}/accept/").status_code == operator.delete(f"{one}/").status_code == 405
    assert MovePlan.objects.get().state == "accepted"
