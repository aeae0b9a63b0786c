"""A cluster that takes its time: what it says is of the moment at which it says it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from broker.domain.states import LeaseState as S
from broker.provisioners.base import Observation, Order
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters
from tests.world import Life, alive, cards, fresh, home, ledger, offering

pytestmark = pytest.mark.django_db
SLOW = timedelta(seconds=7)


class Slow(SimulatedProvisioner):
    """Answers late, by a clock that goes on meanwhile."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self.life, self.answered_at = life, life.now

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        self.life.clock.at += SLOW
        self.answered_at = self.life.now
        return super().ensure(order, now=self.life.now)


def test_a_lease_is_active_from_the_answer_on_and_not_from_the_question(monkeypatch: Any) -> None:
    with alive() as life:
        cards(1)
        slow = Slow(life)
        monkeypatch.setattr(clusters, "provisioner_of", lambda order: slow)
        lease = life.ask(home("Kestrel"), offering())
        while fresh(lease).state != S.ACTIVE:
            life.run(1)
        begun = next(step.at for step in ledger(lease) if step.after == S.ACTIVE)
        assert begun == fresh(lease).active_at == slow.answered_at.replace(microsecond=0)
        assert fresh(lease).ends_at == begun + timedelta(hours=1)
        assert fresh(lease).claimed_until is None
