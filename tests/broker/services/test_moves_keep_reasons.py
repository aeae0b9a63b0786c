"""An operator's reason for a plan is for operators: it may name another tenant, and no tenant ever reads it."""

import pytest

from broker.models import Lease, Move, MoveEntry, MovePlan
from broker.services.moving import deciding
from tests.broker.services.movers import moves, story
from tests.broker.services.test_moves_that_fail import MOVING, S, until
from tests.broker.services.test_moves_that_fail import kestrel as kestrel
from tests.broker.services.test_moves_that_fail import lease as lease
from tests.broker.services.test_moves_that_fail import move as move
from tests.broker.services.test_moves_that_fail import plan as plan
from tests.world import OPERATOR, Life, ledger

SECRET = "Zanzibar asked for whole cards first"


@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
def test_why_a_plan_was_called_off_stands_in_no_tenants_ledger(
    life: Life, plan: MovePlan, move: Move, lease: Lease, state: str
) -> None:
    until(life, plan, lease, S(state))
    plan.refresh_from_db()
    deciding.cancel(plan, why=SECRET, actor=OPERATOR, now=life.now)
    life.go(60)
    assert story(plan) == f"{MOVING} cancelling 1:returning 1:undone cancelled"
    told = [step.cause for step in ledger(lease)] + [each.why for each in moves(plan)]
    assert [words for words in told if SECRET in words] == []
    assert MoveEntry.objects.get(plan=plan, why=SECRET).state == "cancelling"
