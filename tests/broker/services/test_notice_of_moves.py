"""What a tenant is told before a move cannot be taken for another moment than is meant."""

from typing import Any

import pytest

from broker.models import MovePlan
from tests.broker.services.movers import accepted, apart, moves
from tests.world import Home, Life, cards, home

DAY_S = 24 * 3600


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


def told(plan: MovePlan) -> str:
    (move,) = moves(plan)
    return move.why


@pytest.mark.parametrize(
    ("notice_s", "moment"),
    [
        (3600, "{at:%H:%M} UTC"),
        (2 * DAY_S, "{at:%H:%M} UTC on 23 November"),
        (DAY_S, "{at:%H:%M} UTC on 22 November"),
    ],
)
def test_a_notice_names_the_day_where_it_is_another(
    life: Life, kestrel: Home, settings: Any, notice_s: int, moment: str
) -> None:
    settings.MOVE_NOTICE_S = notice_s
    apart(life, kestrel, kestrel, movable=True)
    plan = accepted(life)
    assert plan.not_before
    assert told(plan) == f"will be moved to another card, not before {moment.format(at=plan.not_before)}"
