"""Daily and total spend caps of API tokens."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.domain.money import EXACT_PER_UNIT
from billing.models import TokenCap, TokenCapDay, TokenCapLease, TokenCapPart
from billing.services.funds.costs import max_costs
from billing.services.funds.holds import hold_settlement, token_cap_holds, token_caps
from billing.services.funds.holds.budget_holds import BudgetExceeded
from billing.services.funds.holds.token_cap_holds import TokenCapReached
from billing.services.funds.holds.token_caps import TokenCapRequest
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import extension
from tenants.domain.roles import Role
from tenants.models import ApiToken, Tenant
from tenants.services import tokens
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, NotAllowed
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import create_budget, run_metering
from tests.simulation import NOW, Simulation, TenantContext, offering, reload_lease, simulate
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.budgets.test_budget_pages import visitor
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def create_capped_token(kestrel: TenantContext, wanted: TokenCapRequest, *, name: str = "ci") -> Actor:
    """Return the actor of a new token with a cap."""
    with tenant_scope(kestrel.tenant.pk):
        token, _ = tokens.issue(
            tenant=kestrel.tenant,
            name=name,
            scopes=("leases:write",),
            expires_at=NOW + timedelta(days=30),
            actor=kestrel.actor,
            now=NOW,
            user_id=kestrel.create_member(Role.MEMBER).pk,
        )
        token_caps.set_token_cap(token, wanted, actor=kestrel.actor, now=NOW)
    return Actor("user", kestrel.actor.id, "ci@kestrel.example", "", token.pk)


def ask(kestrel: TenantContext, actor: Actor, sim: Simulation, **wanted: Any) -> Lease:
    values = {"offering_id": offering().pk, "name": "job", "max_duration_s": HOUR, **wanted}
    with tenant_scope(kestrel.tenant.pk):
        return request_lease(LeaseRequest(**values), project=kestrel.project, actor=actor, now=sim.now)


def cap_use(kestrel: TenantContext, actor: Actor, now: datetime) -> tuple[int, int]:
    """Return the use of a token's cap today and in total, in minor units."""
    with tenant_scope(kestrel.tenant.pk):
        tenant = Tenant.objects.get(pk=kestrel.tenant.pk)
        one = token_caps.token_cap_use([ApiToken(pk=actor.token)], tenant=tenant, now=now)[actor.token]
    return one.today, one.in_all


def taken_by_day(kestrel: TenantContext) -> dict[date, int]:
    """Return the taken cents by day."""
    with tenant_scope(kestrel.tenant.pk):
        return {row.day: int(row.taken_num) * 100 // EXACT_PER_UNIT for row in TokenCapDay.objects.order_by("day")}


def test_a_lease_beyond_the_daily_token_cap_is_refused(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=250))
    ask(kestrel, actor, sim, quantity=2)
    with pytest.raises(TokenCapReached) as refusal:
        ask(kestrel, actor, sim)
    assert refusal.value.status == 402
    assert refusal.value.detail == (
        "The token 'ci' may spend €2.50 a day; of 21 November 2026 €0.50 are left,"
        " and this lease could cost €1.00 that day."
    )
    assert cap_use(kestrel, actor, sim.now) == (200, 200)
    sim.request_lease(kestrel, offering())  # without it anybody may
    assert ask(kestrel, actor, sim, max_duration_s=1800).pk


def test_a_lease_beyond_the_total_token_cap_is_refused(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(total_minor=300))
    ask(kestrel, actor, sim, quantity=2)
    sim.clock.at += timedelta(days=2)
    with pytest.raises(TokenCapReached) as refusal:
        ask(kestrel, actor, sim, quantity=2)
    assert (
        "may spend €3.00 until it ends; of that €1.00 are left, and this lease could cost €2.00."
        in refusal.value.detail
    )
    ask(kestrel, actor, sim)


def test_a_lease_across_the_tenants_midnight_counts_in_the_caps_of_both_days(
    kestrel: TenantContext, sim: Simulation
) -> None:
    kestrel.tenant.time_zone = "Asia/Kolkata"
    with tenant_scope(kestrel.tenant.pk):
        kestrel.tenant.save()
    kestrel.project.tenant = kestrel.tenant
    sim.clock.at = datetime(2026, 11, 21, 17, 30, tzinfo=UTC)  # 23:00 there
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=225))
    ask(kestrel, actor, sim, max_duration_s=3 * HOUR)
    # It may begin a quarter of an hour later: then more of it falls into the next day.
    assert taken_by_day(kestrel) == {date(2026, 11, 21): 100, date(2026, 11, 22): 225}
    with pytest.raises(TokenCapReached, match=r"of 22 November 2026 €0\.00 are left"):
        ask(kestrel, actor, sim, max_duration_s=2 * HOUR)
    ask(kestrel, actor, sim, max_duration_s=1800)


def test_a_released_lease_frees_the_unused_part_of_the_cap(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=500))
    lease = ask(kestrel, actor, sim, max_duration_s=4 * HOUR)
    sim.run(1800 + 3)
    sim.release_lease(lease)
    sim.run(30)
    assert cap_use(kestrel, actor, sim.now)[0] == 400
    run_metering(sim)
    hold_settlement.settle_holds(now=sim.now)
    spent, in_all = cap_use(kestrel, actor, sim.now)
    assert spent == in_all
    with tenant_scope(kestrel.tenant.pk):
        row = reload_lease(lease)
        assert row.ended_at is not None
        assert row.active_at is not None
        lasted = int((row.ended_at - row.active_at.replace(microsecond=0)).total_seconds())
        assert int(TokenCapDay.objects.get().taken_num) == lasted * 10**9, "to the very second"


def test_charges_of_a_lease_count_on_the_days_of_their_seconds(kestrel: TenantContext, sim: Simulation) -> None:
    sim.clock.at = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=500))
    lease = ask(kestrel, actor, sim, max_duration_s=2 * HOUR)
    sim.run(HOUR)
    sim.release_lease(lease)
    sim.run(30)
    lease_rating.rate_all_leases(now=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        row = Lease.objects.select_related("project__tenant").get(pk=lease.pk)
        use = max_costs.lease_usages([row.pk])[row.pk]
        by_day = max_costs.usage_by_day(use, row, "UTC").by_month
        assert sum(by_day.values()) == sum(use.by_month.values())
        assert row.active_at is not None
        before = datetime(2026, 11, 22, tzinfo=UTC) - row.active_at.replace(microsecond=0)
        assert by_day[date(2026, 11, 21).toordinal()] == int(before.total_seconds()) * 10**9
    hold_settlement.settle_holds(now=sim.now)
    assert set(taken_by_day(kestrel)) == {date(2026, 11, 21), date(2026, 11, 22)}


def test_a_token_leases_only_its_permitted_offerings(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(offerings=(offering("2g.20gb").pk,)))
    with pytest.raises(NotAllowed, match="is restricted to certain offerings"):
        ask(kestrel, actor, sim)
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_a_capped_token_extends_only_its_own_leases_within_its_cap(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=200))
    mine, other = ask(kestrel, actor, sim), sim.request_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        extension.extend_lease(mine, more_s=HOUR, actor=actor, now=sim.now)
        with pytest.raises(TokenCapReached), transaction.atomic():
            extension.extend_lease(mine, more_s=HOUR, actor=actor, now=sim.now)
        with pytest.raises(NotAllowed, match="can only extend and start its own leases"), transaction.atomic():
            extension.extend_lease(other, more_s=HOUR, actor=actor, now=sim.now)
        extension.extend_lease(mine, more_s=HOUR, actor=kestrel.actor, now=sim.now)
    assert cap_use(kestrel, actor, sim.now)[0] == 300, "whoever extends it, it counts"


def test_a_queued_lease_that_exceeds_the_next_days_cap_is_ended(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=100))
    waits = ask(kestrel, actor, sim)
    sim.clock.at += timedelta(days=1)
    with tenant_scope(kestrel.tenant.pk):
        day = TokenCapDay.objects.create(
            tenant=kestrel.tenant, cap=TokenCap.objects.get(), day=sim.now.date(), taken_num=EXACT_PER_UNIT
        )
    hold_settlement.settle_holds(now=sim.now)
    assert (reload_lease(waits).state, reload_lease(waits).end_reason) == (LeaseState.RELEASED, EndReason.BUDGET)
    assert day.pk


def test_budgets_and_token_caps_both_apply(kestrel: TenantContext, sim: Simulation) -> None:
    actor = create_capped_token(kestrel, TokenCapRequest(daily_minor=10_000))
    create_budget(kestrel, 100, sim)
    ask(kestrel, actor, sim)
    with pytest.raises(BudgetExceeded):
        ask(kestrel, actor, sim)
    assert cap_use(kestrel, actor, sim.now)[0] == 100, "a refusal takes nothing"


def test_a_token_without_a_cap_is_not_limited(kestrel: TenantContext, sim: Simulation) -> None:
    with tenant_scope(kestrel.tenant.pk):
        token = ApiToken.objects.create(
            tenant=kestrel.tenant,
            user_id=kestrel.create_member(Role.MEMBER).pk,
            name="free",
            prefix="x",
            digest="x",
            scopes=[],
            created_at=NOW,
            expires_at=NOW + timedelta(days=1),
        )
        assert token_caps.set_token_cap(token, TokenCapRequest(), actor=kestrel.actor, now=NOW) is None
        assert token_caps.token_cap_use([token], tenant=kestrel.tenant, now=NOW) == {}
    ask(kestrel, Actor("user", kestrel.actor.id, "x", "", token.pk), sim)
    with tenant_scope(kestrel.tenant.pk):
        assert not TokenCapLease.objects.exists()
        lease = Lease.objects.select_related("project__tenant").get()
        token_cap_holds.settle_token_cap_hold(lease, max_costs.NO_USAGE)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (TokenCapRequest(daily_minor=-1), "daily"),
        (TokenCapRequest(total_minor=10**18), "total"),
        (TokenCapRequest(offerings=("off_none",)), "offerings"),
        (TokenCapRequest(offerings=tuple(f"off_{n}" for n in range(60))), "offerings"),
    ],
)
def test_an_invalid_token_cap_is_refused_at_its_field(
    kestrel: TenantContext, sim: Simulation, wanted: TokenCapRequest, field: str
) -> None:
    with pytest.raises(InvalidValue) as refusal:
        create_capped_token(kestrel, wanted)
    assert refusal.value.field == field


def test_postgresql_keeps_cap_parts_with_their_token_and_lease(kestrel: TenantContext, sim: Simulation) -> None:
    one, other = (
        create_capped_token(kestrel, TokenCapRequest(daily_minor=500), name=name) for name in ("one", "other")
    )
    ask(kestrel, one, sim)
    ask(kestrel, other, sim)
    with tenant_scope(kestrel.tenant.pk):
        part = TokenCapPart.objects.select_related("of", "day").order_by("pk")[0]
        strange = TokenCapDay.objects.exclude(cap=part.day.cap_id).get()
        for attack, why in (
            ({"day": strange}, "of one token"),
            ({"num": -1}, "token_part_not_negative"),
        ):
            with pytest.raises(DatabaseError, match=why), transaction.atomic():
                TokenCapPart.objects.filter(pk=part.pk).update(**attack)
        third = TokenCapDay.objects.create(tenant=kestrel.tenant, cap=part.day.cap, day=date(2030, 1, 1))
        with pytest.raises(DatabaseError, match="stays with its lease"), transaction.atomic():
            TokenCapPart.objects.filter(pk=part.pk).update(day=third)


def test_the_api_creates_a_capped_token_that_cannot_create_other_tokens(
    kestrel: TenantContext, sim: Simulation
) -> None:
    api: Any = ApiClient(kestrel.token(Role.OWNER, now=NOW))
    body = {
        "name": "ci",
        "scopes": ["tenant:admin"],
        "expires_at": (NOW + timedelta(days=9)).isoformat(),
        "cap": {"daily": "1.50", "total": "20", "offerings": [offering().pk]},
    }
    made = api.send("POST", "tokens", body)
    assert made.status_code == 201, made.content
    own: Any = ApiClient(made.json()["token"])
    values = {"offering": offering().pk, "project": kestrel.project.pk, "name": "a", "max_duration_s": HOUR}
    assert own.send("POST", "leases", values).status_code == 202
    refused = own.send("POST", "leases", values)
    assert (refused.status_code, refused.json()["code"]) == (402, "token-cap-reached")
    assert own.send("POST", "tokens", {**body, "cap": None}).status_code == 403
    answer = api.send("GET", f"tokens/{made.json()['id']}").json()
    assert answer["cap"] == {
        "daily": {"amount": "1.500000", "currency": "EUR"},
        "taken_today": {"amount": "1.000000", "currency": "EUR"},
        "total": {"amount": "20.000000", "currency": "EUR"},
        "taken": {"amount": "1.000000", "currency": "EUR"},
        "offerings": [offering().pk],
    }
    assert answer in api.send("GET", "tokens").json()["items"]
    assert [row["cap"] for row in api.send("GET", "tokens").json()["items"] if row["id"] != answer["id"]] == [None]
    wrong = api.send("POST", "tokens", {**body, "cap": {"daily": "much"}})
    assert wrong.status_code == 400
    assert "'much' is not an amount in EUR" in wrong.json()["detail"]
    free = api.send("POST", "tokens", {**body, "cap": {"offerings": []}})
    assert (free.status_code, free.json()["cap"]) == (201, None)


def test_the_tokens_page_creates_capped_tokens_and_shows_their_use(kestrel: TenantContext, sim: Simulation) -> None:
    client = visitor(kestrel)
    page = client.get("/tokens/").content.decode()
    assert "Daily cap" in page
    sent = {
        "name": "ci",
        "scopes": ["leases:write"],
        "days": "30",
        "bearer": "",
        "project": "",
        "daily": "5",
        "total": "",
    }
    shown = page_words(client.post("/tokens/", {**sent, "offerings": [offering().pk]}))
    assert "Copy ci now." in shown
    assert "€0.00 of €5.00 today only 1 offering" in shown
    shown = page_words(client.post("/tokens/", {**sent, "name": "all", "total": "9", "daily": ""}))
    assert "€0.00 of €9.00 total" in shown
    shown = page_words(client.post("/tokens/", {**sent, "name": "free", "daily": ""}))
    assert "no cap" in shown
    answer = client.post("/tokens/", {**sent, "daily": "much"})
    assert "'much' is not an amount in EUR" in page_words(answer, 400)
    with tenant_scope(kestrel.tenant.pk):
        assert ApiToken.objects.count() == 3
