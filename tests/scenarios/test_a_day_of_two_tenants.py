"""Two tenants share one node of four cards for a day: told in order, over the real services, in virtual time."""

from datetime import timedelta

import pytest

from broker.services.leases import growing
from tenants.models import QuotaKind
from tenants.services.quotas import set_limit
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_tenant
from tests.world import OPERATOR, Life, cards, fresh, held, home, ledger, offering, path

HOUR = 3600


def test_a_day_of_two_tenants_on_four_cards(life: Life) -> None:
    cards(4)
    card, slice_ = offering("card"), offering("1g.10gb")
    kestrel, swift = home("Kestrel", units=28), home("Swift", units=28)

    # 09:00 Kestrel's training takes three cards at once, all or nothing.
    training = life.ask(kestrel, card, quantity=3, same_node=True, max_duration_s=8 * HOUR)
    life.run(20)
    assert (fresh(training).state, len(held(training))) == ("active", 3)

    # 09:01 Swift wants two cards together. One is free, so it gets none, and is told what it waits for.
    gang = life.ask(swift, card, quantity=2, max_duration_s=2 * HOUR)
    life.run(60)
    assert (fresh(gang).state, held(gang)) == ("queued", [])
    assert fresh(gang).waits_for == "Waits for 2 × H100 whole card, free together. One is free now."

    # 09:02 A notebook is small and need not wait behind it.
    notebook = life.ask(swift, slice_, max_duration_s=HOUR)
    life.run(20)
    assert fresh(notebook).state == "active"

    # 09:05 Swift's owner caps a team that runs the notebook already: the cap begins with what runs.
    with as_tenant(swift.tenant.pk):
        cap = set_limit(
            project=swift.project, kind=QuotaKind.GPU_SECONDS, limit=10**12, actor=OPERATOR, now=life.now
        )
    assert cap.used == 2 * 7_000 * 2 * HOUR + 1_000 * HOUR

    # 09:10 Kestrel holds 21 of its 28 units. Two cards more are refused, and nothing of them stays behind.
    with pytest.raises(QuotaExceeded, match="21 are in use, 7 free, and this asks for 14"):
        life.ask(kestrel, card, quantity=2)
    assert kestrel.used() == 21_000

    # 09:30 The training is done early. Nobody sweeps: the release itself wakes the queue.
    life.clock.at += timedelta(minutes=20)
    life.release(training)
    life.run(20)
    assert path(training) == "requested queued provisioning active releasing released"
    assert (fresh(gang).state, len(held(gang))) == ("active", 2)

    # 10:00 The notebook's hour is too short; it grows by one, and ends by itself at the very second.
    with as_tenant(swift.tenant.pk):
        growing.extend(fresh(notebook), more_s=HOUR, actor=swift.actor, now=life.now)
    life.run(3 * HOUR)
    ended = fresh(notebook)
    assert ended.active_at
    assert (ended.end_reason, ended.ended_at) == ("expired", ended.active_at + timedelta(hours=2))

    # In the evening nothing runs, nobody holds anything, and both quotas of what runs stand at nought.
    assert fresh(gang).state == "released"
    assert (kestrel.used(), swift.used()) == (0, 0)
    for lease in (training, gang, notebook):
        assert held(lease) == []
        assert [step.seq for step in ledger(lease)] == list(range(6))
