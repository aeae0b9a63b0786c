"""Plans carried out while everything else happens too: whatever comes when, no lease is harmed or counted twice."""

from contextlib import suppress
from datetime import timedelta
from random import Random

import pytest

from broker.domain.moves import PlanState
from broker.models import Cluster, Gpu, Health, Lease, MovePlan, SimulatedPod
from broker.services import inventory
from broker.services.leases import allowing, ending, stopping
from broker.services.moving import deciding, proposing
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant
from tests.broker.services.movers import moves, no_contradiction
from tests.world import OPERATOR, Home, Life, cards, fresh, home, offering

PROFILES = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")


class Days:
    """A small fleet in which leases come, go, stop and are moved, cards fail, and hints are lost."""

    def __init__(self, life: Life, seed: int) -> None:
        self.life, self.chance, self.plans = life, Random(seed), set[str]()
        cards(3)
        self.owners = [home("Kestrel"), home("Merlin")]
        self.leases: list[Lease] = []
        for _ in range(16):
            self.launch("1g.10gb")
        life.run(20)
        for lease in self.chance.sample(self.leases, 9):  # and so the others lie far apart
            life.release(lease)
        life.run(20)

    def one(self) -> None:
        """Let one thing happen, and some time pass."""
        acts = (self.launch, self.end, self.decide, self.decide, self.cancel, self.stop, self.fail)
        with suppress(Refused):  # not now, it was told
            self.chance.choice((*acts, self.refuse))()
        if self.chance.random() < 0.2:
            self.life.hints.clear()  # workers killed, Valkey away
        seconds = self.chance.choice((0.4, 1.3, 3, 20, 70, 300))
        self.life.run(min(seconds, 4))
        self.life.go(int(seconds))
        self.life.sweep()
        no_contradiction(self.life)
        self.nothing_runs_twice()

    def nothing_runs_twice(self) -> None:
        names = SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True)
        leases = [name.rpartition("-g")[0] for name in names]
        assert len(leases) == len(set(leases)), f"runs twice: {sorted(leases)}"

    def live(self) -> Lease | None:
        live = [each for each in map(fresh, self.leases) if each.state not in ("releasing", "released")]
        return self.chance.choice(live) if live else None

    def owner(self, lease: Lease) -> Home:
        return next(each for each in self.owners if each.tenant.pk == lease.tenant_id)

    def launch(self, what: str = "") -> None:
        owner, profile = self.chance.choice(self.owners), what or self.chance.choice(PROFILES)
        volume = self.life.volume(owner, f"v{len(self.leases)}").pk if self.chance.random() < 0.4 else ""
        movable = self.chance.random() < 0.8
        wanted = {"max_duration_s": 20_000, "volume": volume, "movable": movable}
        self.leases.append(self.life.ask(owner, offering(profile), **wanted))

    def end(self) -> None:
        if lease := self.live():
            self.life.release(lease)

    def open_plan(self) -> MovePlan | None:
        return MovePlan.objects.open().first()

    def decide(self) -> None:
        proposing.propose(Cluster.objects.get().pk, now=self.life.now)
        if (plan := self.open_plan()) and plan.state == PlanState.PROPOSED:
            deciding.accept(plan, why="go", actor=OPERATOR, now=self.life.now)
            self.plans.add(plan.pk)

    def cancel(self) -> None:
        if (plan := self.open_plan()) and self.chance.random() < 0.5:
            deciding.cancel(plan, why="not now", actor=OPERATOR, now=self.life.now)

    def stop(self) -> None:
        if lease := self.live():
            with as_tenant(lease.tenant_id):
                act = stopping.start if lease.state == "stopped" else stopping.stop
                act(lease, actor=self.owner(lease).actor, now=self.life.now)

    def refuse(self) -> None:
        if lease := self.live():
            with as_tenant(lease.tenant_id):
                actor = self.owner(lease).actor
                allowing.allow_moves(lease, not lease.movable, actor=actor, now=self.life.now)

    def fail(self) -> None:
        card = self.chance.choice(list(Gpu.objects.select_related("node__cluster")))
        ill = card.health == Health.HEALTHY and self.chance.random() < 0.3
        health = Health.UNHEALTHY if ill else Health.HEALTHY
        inventory.set_health(card, health, reason="a test", actor=OPERATOR, now=self.life.now)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_meanwhile_books_and_cards_agree(
    life: Life, seed: int, settings: pytest.FixtureRequest
) -> None:
    settings.MOVE_NOTICE_S = 20  # type: ignore[attr-defined]
    days = Days(life, seed)
    for _ in range(30):
        days.one()
    life.go(900)
    assert not MovePlan.objects.at_work().exists()
    assert all(move.over for plan in MovePlan.objects.filter(pk__in=days.plans) for move in moves(plan))
    for lease in map(fresh, days.leases):
        if lease.state != "released":
            with as_tenant(lease.tenant_id):
                ending.release(lease, reason=ending.EndReason.BY_TENANT, now=life.now + timedelta(seconds=1))
    life.go(120)
    assert {fresh(lease).state for lease in days.leases} <= {"released", "releasing"}
    assert not SimulatedPod.objects.filter(gone_at=None).exists()
    no_contradiction(life)
