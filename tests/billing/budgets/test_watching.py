"""People are told once of each share of a budget that is spent, or will be; who raises it is told anew."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError

from billing.domain.watching import Terms
from billing.models import Budget, BudgetAlert, Letter
from billing.services.funds import budgets, rota, standings, watching
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import alerts, budget, meter, post, stands, watched
from tests.billing.histories import EURO, reprice
from tests.world import Home, Life, alive, home, offering

pytestmark = pytest.mark.django_db
HOUR = 3600
SPENT_ONLY = Terms(forecast_thresholds=())


@pytest.fixture
def life() -> Iterator[Life]:
    with alive() as life:
        yield life


def test_every_share_is_told_once_and_of_several_at_once_the_highest_is_written(
    kestrel: Home, life: Life
) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 100, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering())
    life.run(1780)
    watched(life)
    assert alerts(purse) == [], "49.5 % are no 50 %"
    life.run(20)
    watched(life)
    watched(life)
    assert alerts(purse) == [("spent", 50, True)]
    assert [subject for _, subject, _ in post(life)] == ["The budget of Kestrel has come to 50 %"]
    life.run(1799)
    watched(life)
    assert alerts(purse) == [("spent", 50, True), ("spent", 80, True), ("spent", 100, True)]
    ((to, subject, text),) = post(life)
    assert subject == "The budget of Kestrel has come to 100 %"
    assert to.startswith("owner-")
    assert "€1.00 are spent of the €1.00 that Kestrel may cost in November 2026: 100 % of its budget." in text
    assert "At 100 %, counting what is set aside, no lease begins that it has no room for." in text
    assert post(life) == [], "it is sent once"


def test_a_forecast_is_what_is_spent_and_what_runs_to_its_own_end(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.BILLING)
    purse = budget(kestrel, 400, life)
    life.lease(kestrel, offering(), max_duration_s=3 * HOUR)
    life.ask(kestrel, offering())
    life.run(3)
    assert stands(purse, life)[:2] == (0, 400)
    with as_tenant(kestrel.tenant.pk):
        (one,) = standings.standing([Budget.objects.get()], tenant=kestrel.tenant, now=life.now)
    assert one.forecast in (300, 400), "what waits is no part of it, unless it began meanwhile"
    life.run(60)
    watched(life)
    assert ("forecast", 80, True) in alerts(purse)
    ((_, subject, text),) = post(life)
    assert subject == "The budget of Kestrel is forecast to come to 100 %"
    assert "By the end of it this will come to €4.00 of the €4.00" in text
    assert "what runs now until its own end or the month's" in text


def test_what_waits_is_no_part_of_a_forecast(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 400, life)
    life.ask(kestrel, offering(), max_duration_s=4 * HOUR)
    with as_tenant(kestrel.tenant.pk):
        (one,) = standings.standing([Budget.objects.get()], tenant=kestrel.tenant, now=life.now)
    assert (one.forecast, one.held) == (0, 400)
    assert watching.watch(now=life.now) == 1, "all of it is taken, so it is looked at"
    assert alerts(purse) == []


def test_raising_a_budget_lifts_what_is_no_longer_so_and_begins_anew(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 100, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering(), max_duration_s=3600)
    life.run(3000)
    watched(life)
    assert [percent for _, percent, _ in alerts(purse)] == [50, 80]
    post(life)
    budget(kestrel, 150, life)
    assert alerts(purse) == [("spent", 50, True), ("spent", 80, False)], "55 % of it are still spent"
    watched(life)
    assert len(alerts(purse)) == 2
    assert post(life) == []
    life.run(600)
    budget(kestrel, 120, life)
    watched(life)
    assert alerts(purse)[2:] == [("spent", 80, True)]
    assert [subject for _, subject, _ in post(life)] == ["The budget of Kestrel has come to 80 %"]


def test_lowering_a_budget_tells_what_it_makes_true_and_lifts_nothing(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 200, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering())
    life.run(3590)
    watched(life)
    budget(kestrel, 110, life)
    watched(life)
    assert alerts(purse) == [("spent", 80, True)] or [p for _, p, held in alerts(purse) if held] == [50, 80]


def test_a_share_that_is_added_below_what_was_told_is_noted_and_not_written(
    kestrel: Home, life: Life
) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 100, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering())
    life.run(3000)
    watched(life)
    post(life)
    budget(kestrel, 100, life, terms=Terms(thresholds=(20, 50, 80, 100), forecast_thresholds=()))
    watched(life)
    assert ("spent", 20, True) in alerts(purse)
    assert post(life) == []


def test_a_new_month_begins_anew(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 100, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering())
    life.run(1900)
    watched(life)
    life.clock.at += timedelta(days=12)
    watched(life)
    assert alerts(purse) == [("spent", 50, True)]
    budget(kestrel, 300, life)
    assert alerts(purse) == [("spent", 50, True)], "what is over is not lifted"


def test_a_budget_of_nothing_is_used_up_once_anything_is_spent(kestrel: Home, life: Life) -> None:
    life.lease(kestrel, offering())
    purse = budget(kestrel, 0, life, terms=SPENT_ONLY)
    life.run(1)
    watched(life)
    assert alerts(purse) == []
    life.run(60)
    watched(life)
    assert [percent for _, percent, _ in alerts(purse)] == [50, 80, 100]


def test_one_tenant_that_cannot_be_looked_at_keeps_nobody_elses_waiting(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 100, life)
    life.lease(kestrel, offering())
    life.run(1900)
    for odd in (DatabaseError("odd"), KeyError("odd")):
        with mock.patch.object(watching, "standing", side_effect=odd):
            assert watching.watch(now=life.now) == 0
    assert alerts(purse) == []
    watched(life)
    assert alerts(purse) != []


def test_where_there_are_more_than_a_round_can_look_at_everybody_has_a_turn(
    kestrel: Home, life: Life
) -> None:
    owners = [kestrel, home("Osprey"), home("Merlin")]
    purses = [budget(owner, 100, life) for owner in owners]
    for owner in owners:
        life.lease(owner, offering(), max_duration_s=HOUR)
    life.run(1900)
    with mock.patch.object(rota, "LASTS_S", -1.0):
        for n in range(1, 4):
            life.clock.at += timedelta(minutes=1)
            assert watching.watch(now=life.now) == 1
            assert sum(bool(alerts(purse)) for purse in purses) == n


def test_letters_reach_who_leads_the_project_and_who_owns_or_pays(kestrel: Home, life: Life) -> None:
    child, beside = kestrel.child("docking"), kestrel.child("beside")
    wanted = {
        kestrel.member(role, where).email
        for role, where in (
            (Role.OWNER, None),
            (Role.BILLING, None),
            (Role.ADMIN, None),
            (Role.ADMIN, kestrel.project),
            (Role.OWNER, child),
        )
    }
    for role, where in ((Role.MEMBER, None), (Role.ADMIN, beside), (Role.VIEWER, child)):
        kestrel.member(role, where)
    budget(kestrel, 100, life, project=child, terms=SPENT_ONLY)
    life.lease(kestrel, offering(), project=child)
    life.run(1900)
    watched(life)
    assert {to for to, _, _ in post(life)} == wanted


def test_a_letter_about_a_budget_that_is_gone_is_not_sent(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 100, life, terms=SPENT_ONLY)
    life.lease(kestrel, offering())
    life.run(1900)
    watched(life)
    with as_tenant(kestrel.tenant.pk):
        budgets.remove(
            Budget.objects.select_related("project").get(pk=purse.pk), actor=kestrel.actor, now=life.now
        )
        assert not BudgetAlert.objects.exists()
    assert post(life) == []
    with as_tenant(kestrel.tenant.pk):
        letter = Letter.objects.get()
    assert (letter.unsent, letter.sent_at, letter.due_at) == ("overtaken", None, None), "nobody tries again"


def test_prices_that_rise_beyond_a_hard_budget_are_told(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 100, life, terms=Terms(thresholds=(100, 150), forecast_thresholds=(120,)))
    life.lease(kestrel, offering())
    reprice(offering(), 2 * EURO, since=life.now.replace(microsecond=0) + timedelta(minutes=1))
    life.run(600)
    meter(life)
    watched(life)
    assert alerts(purse) == [("forecast", 120, True)]


@pytest.mark.parametrize(
    ("terms", "then"),
    [
        (Terms(stop_new_at=None), "Nothing stops at its limit: leases begin beyond it, too."),
        (
            Terms(stop_idle_at=90),
            "At 90 % leases are ended of which nothing has run for a quarter of an hour, 60 minutes",
        ),
        (
            Terms(stop_all_at=120, grace_minutes=5),
            "At 120 % all that runs or waits there is ended, 5 minutes after a letter",
        ),
    ],
)
def test_a_letter_says_what_follows(kestrel: Home, life: Life, terms: Terms, then: str) -> None:
    kestrel.member(Role.OWNER)
    budget(kestrel, 100, life, terms=terms)
    life.lease(kestrel, offering())
    life.run(1900)
    watched(life)
    said = [text for _, subject, text in post(life) if "has come to" in subject]
    assert then in said[0]


def test_terms_change_alone_and_the_trail_says_how(kestrel: Home, life: Life) -> None:
    from tenants.models import AuditEvent

    budget(kestrel, 100, life)
    budget(kestrel, 100, life, terms=Terms(stop_new_at=None, stop_all_at=90))
    budget(kestrel, 100, life, terms=Terms(stop_new_at=None, stop_all_at=90))
    with as_tenant(kestrel.tenant.pk):
        rows: list[Any] = list(
            AuditEvent.objects.filter(action="budget.set").order_by("pk").values_list("detail", flat=True)
        )
    assert len(rows) == 2
    assert {name: rows[1][name] for name in ("new stopped at", "all stopped at")} == {
        "new stopped at": "never",
        "all stopped at": "90 %",
    }
