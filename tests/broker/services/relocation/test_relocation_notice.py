"""The time in the notice of a relocation."""

from typing import Any

import pytest

from broker.models import RelocationPlan
from tests.broker.services.relocation.scattered_leases import accept_plan, relocations_of, scatter_leases
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant

DAY_S = 24 * 3600


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def reason_of(plan: RelocationPlan) -> str:
    (move,) = relocations_of(plan)
    return move.why


@pytest.mark.parametrize(
    ("notice_s", "moment"),
    [
        (3600, "{at:%H:%M} UTC"),
        (2 * DAY_S, "{at:%H:%M} UTC on 23 November"),
        (DAY_S, "{at:%H:%M} UTC on 22 November"),
    ],
)
def test_a_notice_includes_the_date_if_it_is_not_today(
    sim: Simulation, kestrel: TenantContext, settings: Any, notice_s: int, moment: str
) -> None:
    settings.RELOCATION_NOTICE_S = notice_s
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    plan = accept_plan(sim)
    assert plan.not_before
    assert reason_of(plan) == f"will be moved to another GPU, not before {moment.format(at=plan.not_before)}"
