"""A token with a cap spends no more than that, day by day and in all, on what it names, and nobody gets around it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.domain.money import EXACT_PER_UNIT
from billing.models import TokenCap, TokenDay, TokenLease, TokenPart
from billing.services import rating
from billing.services.funds import capping, caps, needs, settling
from billing.services.funds.capping import CapReached
from billing.services.funds.caps import Wanted
from billing.services.funds.holds import BudgetExceeded
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import growing
from broker.services.leases.request import Wanted as Asked
from broker.services.leases.request import request
from tenants.domain.roles import Role
from tenants.models import ApiToken, Tenant
from tenants.services import tokens
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, NotAllowed
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, meter
from tests.billing.budgets.test_pages import visitor, words
from tests.tenants.people import Api
from tests.world import NOW, Home, Life, alive, fresh, offering

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def life() -> Iterator[Life]:
    with alive() as life:
        yield life


def capped(kestrel: Home, wanted: Wanted, *, name: str = "ci") -> Actor:
    """Return who acts with a new token of a cap."""
    with as_tenant(kestrel.tenant.pk):
        token, _ = tokens.issue(
            tenant=kestrel.tenant,
            name=name,
            scopes=("leases:write",),
            expires_at=NOW + timedelta(days=30),
            actor=kestrel.actor,
            now=NOW,
            user_id=kestrel.member(Role.MEMBER).pk,
        )
        caps.set_cap(token, wanted, actor=kestrel.actor, now=NOW)
    return Actor("user", kestrel.actor.id, "ci@kestrel.example", "", token.pk)


def ask(kestrel: Home, actor: Actor, life: Life, **wanted: Any) -> Lease:
    asked = {"offering_id": offering().pk, "name": "job", "max_duration_s": HOUR, **wanted}
    with as_tenant(kestrel.tenant.pk):
        return request(Asked(**asked), project=kestrel.project, actor=actor, now=life.now)


def taken(kestrel: Home, actor: Actor, now: datetime) -> tuple[int, int]:
    """Return what of a token's cap is taken today and in all, in minor units."""
    with as_tenant(kestrel.tenant.pk):
        tenant = Tenant.objects.get(pk=kestrel.tenant.pk)
        one = caps.used([ApiToken(pk=actor.token)], tenant=tenant, now=now)[actor.token]
    return one.today, one.in_all


def days(kestrel: Home) -> dict[date, int]:
    """Return by day what is taken, in cents."""
    with as_tenant(kestrel.tenant.pk):
        return {
            row.day: int(row.taken_num) * 100 // EXACT_PER_UNIT for row in TokenDay.objects.order_by("day")
        }


def test_what_does_not_fit_the_day_is_refused_and_names_the_token_alone(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(daily_minor=250))
    ask(kestrel, actor, life, quantity=2)
    with pytest.raises(CapReached) as refusal:
        ask(kestrel, actor, life)
    assert refusal.value.status == 402
    assert refusal.value.detail == (
        "The token 'ci' may spend €2.50 a day; of 21 November 2026 €0.50 are left,"
        " and this could come to €1.00 that day."
    )
    assert taken(kestrel, actor, life.now) == (200, 200)
    life.ask(kestrel, offering())  # without it anybody may
    assert ask(kestrel, actor, life, max_duration_s=1800).pk


def test_what_does_not_fit_all_of_it_is_refused(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(total_minor=300))
    ask(kestrel, actor, life, quantity=2)
    life.clock.at += timedelta(days=2)
    with pytest.raises(CapReached) as refusal:
        ask(kestrel, actor, life, quantity=2)
    assert (
        "may spend €3.00 until it ends; of that €1.00 are left, and this could come to €2.00."
        in refusal.value.detail
    )
    ask(kestrel, actor, life)


def test_a_day_is_the_tenants_own_and_a_lease_across_midnight_takes_of_both(
    kestrel: Home, life: Life
) -> None:
    kestrel.tenant.time_zone = "Asia/Kolkata"
    with as_tenant(kestrel.tenant.pk):
        kestrel.tenant.save()
    kestrel.project.tenant = kestrel.tenant
    life.clock.at = datetime(2026, 11, 21, 17, 30, tzinfo=UTC)  # 23:00 there
    actor = capped(kestrel, Wanted(daily_minor=225))
    ask(kestrel, actor, life, max_duration_s=3 * HOUR)
    # It may begin a quarter of an hour later: then more of it falls into the next day.
    assert days(kestrel) == {date(2026, 11, 21): 100, date(2026, 11, 22): 225}
    with pytest.raises(CapReached, match=r"of 22 November 2026 €0\.00 are left"):
        ask(kestrel, actor, life, max_duration_s=2 * HOUR)
    ask(kestrel, actor, life, max_duration_s=1800)


def test_what_was_not_used_is_free_again_and_the_rest_is_what_was_charged(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(daily_minor=500))
    lease = ask(kestrel, actor, life, max_duration_s=4 * HOUR)
    life.run(1800 + 3)
    life.release(lease)
    life.run(30)
    assert taken(kestrel, actor, life.now)[0] == 400
    meter(life)
    settling.look_again(now=life.now)
    spent, in_all = taken(kestrel, actor, life.now)
    assert spent == in_all
    with as_tenant(kestrel.tenant.pk):
        row = fresh(lease)
        assert row.ended_at is not None
        assert row.active_at is not None
        lasted = int((row.ended_at - row.active_at.replace(microsecond=0)).total_seconds())
        assert int(TokenDay.objects.get().taken_num) == lasted * 10**9, "to the very second"


def test_charges_of_a_lease_fall_into_the_days_of_their_seconds(kestrel: Home, life: Life) -> None:
    life.clock.at = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    actor = capped(kestrel, Wanted(daily_minor=500))
    lease = ask(kestrel, actor, life, max_duration_s=2 * HOUR)
    life.run(HOUR)
    life.release(lease)
    life.run(30)
    rating.rate(now=life.now)
    with as_tenant(kestrel.tenant.pk):
        row = Lease.objects.select_related("project__tenant").get(pk=lease.pk)
        use = needs.uses([row.pk])[row.pk]
        by_day = needs.by_day(use, row, "UTC").by_month
        assert sum(by_day.values()) == sum(use.by_month.values())
        assert row.active_at is not None
        before = datetime(2026, 11, 22, tzinfo=UTC) - row.active_at.replace(microsecond=0)
        assert by_day[date(2026, 11, 21).toordinal()] == int(before.total_seconds()) * 10**9
    settling.look_again(now=life.now)
    assert set(days(kestrel)) == {date(2026, 11, 21), date(2026, 11, 22)}


def test_only_what_a_token_names_is_leased(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(offerings=(offering("2g.20gb").pk,)))
    with pytest.raises(NotAllowed, match="leases only what it names"):
        ask(kestrel, actor, life)
    with as_tenant(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_it_extends_what_it_asked_for_as_far_as_its_cap_goes(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(daily_minor=200))
    mine, other = ask(kestrel, actor, life), life.ask(kestrel, offering())
    with as_tenant(kestrel.tenant.pk):
        growing.extend(mine, more_s=HOUR, actor=actor, now=life.now)
        with pytest.raises(CapReached), transaction.atomic():
            growing.extend(mine, more_s=HOUR, actor=actor, now=life.now)
        with pytest.raises(NotAllowed, match="only what it asked for itself"), transaction.atomic():
            growing.extend(other, more_s=HOUR, actor=actor, now=life.now)
        growing.extend(mine, more_s=HOUR, actor=kestrel.actor, now=life.now)
    assert taken(kestrel, actor, life.now)[0] == 300, "whoever extends it, it counts"


def test_what_waits_into_a_day_that_is_full_is_ended(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(daily_minor=100))
    waits = ask(kestrel, actor, life)
    life.clock.at += timedelta(days=1)
    with as_tenant(kestrel.tenant.pk):
        day = TokenDay.objects.create(
            tenant=kestrel.tenant, cap=TokenCap.objects.get(), day=life.now.date(), taken_num=EXACT_PER_UNIT
        )
    settling.look_again(now=life.now)
    assert (fresh(waits).state, fresh(waits).end_reason) == (LeaseState.RELEASED, EndReason.BUDGET)
    assert day.pk


def test_budgets_and_caps_hold_side_by_side(kestrel: Home, life: Life) -> None:
    actor = capped(kestrel, Wanted(daily_minor=10_000))
    budget(kestrel, 100, life)
    ask(kestrel, actor, life)
    with pytest.raises(BudgetExceeded):
        ask(kestrel, actor, life)
    assert taken(kestrel, actor, life.now)[0] == 100, "a refusal takes nothing"


def test_a_token_without_a_cap_is_asked_nothing(kestrel: Home, life: Life) -> None:
    with as_tenant(kestrel.tenant.pk):
        token = ApiToken.objects.create(
            tenant=kestrel.tenant,
            user_id=kestrel.member(Role.MEMBER).pk,
            name="free",
            prefix="x",
            digest="x",
            scopes=[],
            created_at=NOW,
            expires_at=NOW + timedelta(days=1),
        )
        assert caps.set_cap(token, Wanted(), actor=kestrel.actor, now=NOW) is None
        assert caps.used([token], tenant=kestrel.tenant, now=NOW) == {}
    ask(kestrel, Actor("user", kestrel.actor.id, "x", "", token.pk), life)
    with as_tenant(kestrel.tenant.pk):
        assert not TokenLease.objects.exists()
        lease = Lease.objects.select_related("project__tenant").get()
        capping.settle(lease, needs.NO_USE)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (Wanted(daily_minor=-1), "daily"),
        (Wanted(total_minor=10**18), "total"),
        (Wanted(offerings=("off_none",)), "offerings"),
        (Wanted(offerings=tuple(f"off_{n}" for n in range(60))), "offerings"),
    ],
)
def test_a_cap_that_cannot_be_names_its_field(kestrel: Home, life: Life, wanted: Wanted, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        capped(kestrel, wanted)
    assert refusal.value.field == field


def test_postgresql_keeps_parts_with_their_token(kestrel: Home, life: Life) -> None:
    one, other = (capped(kestrel, Wanted(daily_minor=500), name=name) for name in ("one", "other"))
    ask(kestrel, one, life)
    ask(kestrel, other, life)
    with as_tenant(kestrel.tenant.pk):
        part = TokenPart.objects.select_related("of", "day").order_by("pk")[0]
        strange = TokenDay.objects.exclude(cap=part.day.cap_id).get()
        for attack, why in (
            ({"day": strange}, "of one token"),
            ({"num": -1}, "token_part_not_negative"),
        ):
            with pytest.raises(DatabaseError, match=why), transaction.atomic():
                TokenPart.objects.filter(pk=part.pk).update(**attack)
        third = TokenDay.objects.create(tenant=kestrel.tenant, cap=part.day.cap, day=date(2030, 1, 1))
        with pytest.raises(DatabaseError, match="stays with its lease"), transaction.atomic():
            TokenPart.objects.filter(pk=part.pk).update(day=third)


def test_over_the_api_a_token_is_made_with_its_cap_spends_and_makes_no_other(
    kestrel: Home, life: Life
) -> None:
    api: Any = Api(kestrel.token(Role.OWNER, now=NOW))
    body = {
        "name": "ci",
        "scopes": ["tenant:admin"],
        "expires_at": (NOW + timedelta(days=9)).isoformat(),
        "cap": {"daily": "1.50", "total": "20", "offerings": [offering().pk]},
    }
    made = api.ask("POST", "tokens", body)
    assert made.status_code == 201, made.content
    own: Any = Api(made.json()["token"])
    asked = {"offering": offering().pk, "project": kestrel.project.pk, "name": "a", "max_duration_s": HOUR}
    assert own.ask("POST", "leases", asked).status_code == 202
    refused = own.ask("POST", "leases", asked)
    assert (refused.status_code, refused.json()["code"]) == (402, "token-cap-reached")
    assert own.ask("POST", "tokens", {**body, "cap": None}).status_code == 403
    told = api.ask("GET", f"tokens/{made.json()['id']}").json()
    assert told["cap"] == {
        "daily": {"amount": "1.500000", "currency": "EUR"},
        "taken_today": {"amount": "1.000000", "currency": "EUR"},
        "total": {"amount": "20.000000", "currency": "EUR"},
        "taken": {"amount": "1.000000", "currency": "EUR"},
        "offerings": [offering().pk],
    }
    assert told in api.ask("GET", "tokens").json()["items"]
    assert [row["cap"] for row in api.ask("GET", "tokens").json()["items"] if row["id"] != told["id"]] == [
        None
    ]
    wrong = api.ask("POST", "tokens", {**body, "cap": {"daily": "much"}})
    assert wrong.status_code == 400
    assert "'much' is no amount of EUR" in wrong.json()["detail"]
    free = api.ask("POST", "tokens", {**body, "cap": {"offerings": []}})
    assert (free.status_code, free.json()["cap"]) == (201, None)


def test_on_the_page_a_token_is_made_with_its_cap_and_says_what_is_taken(kestrel: Home, life: Life) -> None:
    client = visitor(kestrel)
    page = client.get("/tokens/").content.decode()
    assert "May spend a day" in page
    sent = {
        "name": "ci",
        "scopes": ["leases:write"],
        "days": "30",
        "bearer": "",
        "project": "",
        "daily": "5",
        "total": "",
    }
    shown = words(client.post("/tokens/", {**sent, "offerings": [offering().pk]}))
    assert "Copy ci now." in shown
    assert "€0.00 of €5.00 today only 1 offering" in shown
    shown = words(client.post("/tokens/", {**sent, "name": "all", "total": "9", "daily": ""}))
    assert "€0.00 of €9.00 in all" in shown
    shown = words(client.post("/tokens/", {**sent, "name": "free", "daily": ""}))
    assert "no cap" in shown
    answer = client.post("/tokens/", {**sent, "daily": "much"})
    assert "'much' is no amount of EUR" in words(answer, 400)
    with as_tenant(kestrel.tenant.pk):
        assert ApiToken.objects.count() == 3
