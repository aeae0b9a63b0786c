"""Rewrite lease histories in ways that must not change their invoices."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, pairwise
from typing import Any

from billing.models import Invoice, InvoiceLine
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.models import Lease, Transition
from tenants.services.rls import tenant_scope
from tests.billing import random_tenants
from tests.billing.histories import utc
from tests.billing.random_tenants import SECOND, Market, RandomTenant, month_start

SINCE, UNTIL = month_start(2026, 2), month_start(2026, 5)
NOW = utc("2026-12-01 00:00:00")
# Zones whose clocks have been alike for years: no second is in another month there.
ALIKE = {
    "Europe/Berlin": "Europe/Vienna",
    "Asia/Kolkata": "Asia/Colombo",
    "UTC": "Africa/Abidjan",
    "America/St_Johns": "Canada/Newfoundland",
    "Australia/Lord_Howe": "Australia/LHI",
    "Asia/Kathmandu": "Asia/Katmandu",
}
_numbers = count(1)


@dataclass(frozen=True)
class Step:
    """A transition in plain values: time, state, subject, quantity and reason."""

    at: datetime
    after: str
    offering: str
    price_class: str
    quantity: int
    reason: str


Life = tuple[int, tuple[Step, ...]]  # in which of the tenant's projects, and what happened


@dataclass(frozen=True)
class LeaseHistory:
    """What the leases of one tenant did, and how it is told."""

    sells: Market
    zone: str
    lives: tuple[Life, ...]
    prefix: str = "lse_a"
    piecemeal: bool = False  # step by step in any order of leases, and charged in between
    twice: bool = False  # the beginning is told again

    @classmethod
    def by_chance(cls, chance: random.Random, *, leases: int = 6) -> "LeaseHistory":
        sells, zone = (
            random_tenants.create_market(chance, SINCE, UNTIL, offerings=3, changes=3),
            chance.choice(sorted(ALIKE)),
        )
        by, lives = random_tenants.create_random_tenant(zone), []
        turns = [*random_tenants.critical_hours(zone, SINCE, UNTIL), *sells.changes]
        for _ in range(leases):
            begun = max(chance.choice(turns) + SECOND * chance.randrange(-300, 60), SINCE)
            _, steps = random_tenants.random_lease(chance, by, sells, begun)
            project = next(n for n, each in enumerate(by.projects) if each.pk == steps[0].project_id)
            lives.append((project, tuple(_step(step) for step in steps)))
        return cls(sells, zone, tuple(lives))


def _step(row: Transition) -> Step:
    return Step(row.at, str(row.after), row.offering_id, row.price_class, row.quantity, row.reason)


def split(tale: LeaseHistory, chance: random.Random) -> LeaseHistory:
    """Split active intervals by a tick that changes nothing."""
    return replace(tale, lives=tuple((project, tuple(_cut(steps, chance))) for project, steps in tale.lives))


def _cut(steps: tuple[Step, ...], chance: random.Random) -> list[Step]:
    found = []
    for begun, ended in pairwise(steps):
        found.append(begun)
        length = (ended.at - begun.at) // SECOND
        if begun.after == "active" and length > 1:
            inside = sorted({chance.randrange(1, length) for _ in range(chance.randrange(4))})
            found += [replace(begun, at=begun.at + SECOND * n, reason="none") for n in inside]
    return [*found, steps[-1]]


CHANGES: dict[str, Callable[[LeaseHistory, random.Random], LeaseHistory]] = {
    "cut by ticks": split,
    "a zone whose clocks are alike": lambda tale, _: replace(tale, zone=ALIKE[tale.zone]),
    "other names": lambda tale, _: replace(tale, prefix="lse_z", lives=tale.lives[::-1]),
    "in pieces, in any order": lambda tale, _: replace(tale, piecemeal=True),
    "its beginning told twice": lambda tale, _: replace(tale, twice=True),
}


def invoice_history(tale: LeaseHistory, chance: random.Random) -> tuple[tuple[Any, ...], ...]:
    """Write a history for a new tenant, rate it, and return its invoices."""
    story = random_tenants.create_random_tenant(tale.zone)
    lives = [_rows(story, tale, *life) for life in tale.lives]
    with tenant_scope(story.tenant.pk):
        Lease.objects.bulk_create(lease for lease, _ in lives)
    if tale.piecemeal:
        _tell_in_pieces(story, [rows for _, rows in lives], chance)
    else:
        _tell(story, [row for _, rows in lives for row in rows])
    lease_rating.rate_tenant_leases(story.tenant, now=NOW)
    if tale.twice:
        for _, rows in lives:
            _tell(story, rows[: chance.randrange(len(rows) + 1)], again=True)
        lease_rating.rate_all_leases(now=NOW, whole=True)
    drafts.refresh_drafts(story.tenant, now=NOW)
    return _facts(story)


def _rows(
    story: RandomTenant, tale: LeaseHistory, project: int, steps: tuple[Step, ...]
) -> tuple[Lease, list[Transition]]:
    node = story.projects[project]
    lease = Lease(
        id=f"{tale.prefix}{next(_numbers):025d}",
        tenant=story.tenant,
        project=node,
        offering_id=steps[-1].offering,
        name="twin",
        quantity=steps[-1].quantity,
        state=steps[-1].after,
        seq=len(steps) - 1,
        state_since=steps[-1].at,
        created_at=steps[0].at,
        max_duration_s=3600,
    )
    rows = [
        Transition(
            lease_id=lease.pk,
            seq=seq,
            tenant_id=story.tenant.pk,
            at=step.at,
            prev_seq=seq - 1 if seq else None,
            prev_at=steps[seq - 1].at if seq else None,
            before=steps[seq - 1].after if seq else "",
            after=step.after,
            reason=step.reason,
            offering_id=step.offering,
            project_id=node.pk,
            quantity=step.quantity,
            price_class=step.price_class,
            generation=1,
            actor_kind="system",
        )
        for seq, step in enumerate(steps)
    ]
    return lease, rows


def _tell(story: RandomTenant, rows: list[Transition], *, again: bool = False) -> None:
    with tenant_scope(story.tenant.pk):
        Transition.objects.bulk_create(rows, ignore_conflicts=again)


def _tell_in_pieces(story: RandomTenant, lives: list[list[Transition]], chance: random.Random) -> None:
    """Write leases in portions; each lease's steps stay in order."""
    left = [rows.copy() for rows in lives]
    while any(left):
        rows = chance.choice([rows for rows in left if rows])
        many = chance.randrange(1, len(rows) + 1)
        _tell(story, rows[:many])
        del rows[:many]
        if chance.random() < 0.3:
            lease_rating.rate_tenant_leases(story.tenant, now=NOW)
            drafts.refresh_drafts(story.tenant, now=NOW)


def _facts(story: RandomTenant) -> tuple[tuple[Any, ...], ...]:
    places = {project.pk: n for n, project in enumerate(story.projects)}
    with tenant_scope(story.tenant.pk):
        lines = InvoiceLine.objects.values_list(
            "invoice__period__label", "project_id", "offering_id", "price_version_id", "leases", "unit_seconds",
            "given_back_s", "exact_num", "minor", "tax_minor",
        )  # fmt: skip
        rows = [(label, places[project], *more) for label, project, *more in lines]
        totals = Invoice.objects.values_list("period__label", "total", "tax")
        return (*sorted(rows), *sorted(totals))
