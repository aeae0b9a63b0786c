"""Which leases count on a cluster that is to be given up."""

import pytest

from broker.domain.states import LeaseState
from broker.provisioners.base import order_name
from broker.services import parting
from tests.world import Life, cards, home, offering


@pytest.mark.parametrize(
    ("state", "counts"),
    [(LeaseState.PROVISIONING, True), (LeaseState.ACTIVE, True), (LeaseState.RELEASING, False)],
)
def test_only_what_starts_or_runs_there_counts_on_it(life: Life, state: LeaseState, counts: bool) -> None:
    cards(1)
    lease = life.lease(home(), offering(), state)
    there = [order_name(lease.pk, lease.generation), "nobody's", order_name("lse_" + "0" * 26, 1)]
    assert parting.counting_on(there) == ([lease.pk] if counts else [])


def test_what_a_lease_went_on_without_does_not_count(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    assert parting.counting_on([order_name(lease.pk, lease.generation + 1)]) == []
    assert parting.counting_on([]) == []
