"""What budgets say on pages, at the top of home, among the events and over the API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from billing.domain.watching import Terms
from billing.models import Budget
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, stop_of, watched
from tests.billing.budgets.test_pages import visitor, words
from tests.tenants.people import Api
from tests.world import NOW, Home, Life, alive, offering

pytestmark = pytest.mark.django_db
TERMS = {
    "thresholds": "25, 75",
    "forecast_thresholds": "",
    "kind": "hard",
    "stop_new_at": "90",
    "stop_idle_at": "60",
    "stop_all_at": "",
    "grace_minutes": "15",
}


@pytest.fixture
def life() -> Iterator[Life]:
    with alive() as life:
        yield life


def the_budget(kestrel: Home) -> Budget:
    with as_tenant(kestrel.tenant.pk):
        return Budget.objects.get()


def test_terms_are_set_and_changed_on_the_page(kestrel: Home, life: Life) -> None:
    client = visitor(kestrel)
    sent = {"project": kestrel.project.pk, "limit": "5.00", **TERMS}
    assert client.post("/budgets/", sent).status_code == 302
    purse = the_budget(kestrel)
    assert purse.terms == Terms((25, 75), (), 90, 60, None, 15)
    shown = words(client.get("/budgets/"))
    assert "No lease begins beyond 90 %; idle leases end at 60 %. Told at 25, 75 %." in shown
    page = client.get(f"/budgets/?of={purse.pk}").content.decode()
    for value in ("5.00", "25, 75", "90", "60", "15"):
        assert f'value="{value}"' in page
    client.post(
        "/budgets/", {**sent, "kind": "soft", "stop_all_at": "120", "stop_idle_at": "", "thresholds": ""}
    )
    assert the_budget(kestrel).terms == Terms((), (), None, None, 120, 15)
    shown = words(client.get("/budgets/"))
    assert "Soft: leases begin beyond it; all ends at 120 %, 15 min after a letter." in shown
    assert 'value="soft" checked' in client.get(f"/budgets/?of={purse.pk}").content.decode()
    client.post("/budgets/", {"project": kestrel.project.pk, "limit": "6"})
    assert the_budget(kestrel).terms == Terms((), (), None, None, 120, 15), "what is not sent stays"
    client.post("/budgets/", {**sent, "stop_new_at": "", "grace_minutes": ""})
    assert the_budget(kestrel).terms == Terms((25, 75), (), 100, 60, None, 0)


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("thresholds", "half", "'half' is no whole percent."),
        ("stop_new_at", "0", "from 1 to 1000, not 0"),
        ("grace_minutes", "99999", "from 0 to 10080 minutes"),
        ("project", "prj_none", "There is no such project here."),
    ],
)
def test_what_is_no_share_is_said_at_its_field_and_nothing_is_lost(
    kestrel: Home, life: Life, field: str, typed: str, said: str
) -> None:
    client = visitor(kestrel)
    sent = {"project": kestrel.project.pk, "limit": "5.00", **TERMS, field: typed}
    answer = client.post("/budgets/", sent)
    assert said in words(answer, 400)
    page = answer.content.decode()
    assert 'value="25, 75"' in page or field == "thresholds"
    with as_tenant(kestrel.tenant.pk):
        assert not Budget.objects.exists()


def test_home_and_budgets_say_what_is_used_up_and_what_is_stopped(kestrel: Home, life: Life) -> None:
    child = kestrel.child("docking")
    client, below = visitor(kestrel), visitor(kestrel, Role.MEMBER, child)
    purse = budget(
        kestrel, 100, life, terms=Terms(forecast_thresholds=(100,), stop_all_at=100, grace_minutes=30)
    )
    life.lease(kestrel, offering(), project=child)
    life.run(60)
    watched(life)
    assert "Kestrel will come to €1.00 of €1.00 this month." in words(client.get("/"))
    assert "Budget of Kestrel will come to €1.00, 100 % of €1.00" in words(client.get("/"))
    life.run(3538)
    watched(life)
    due = stop_of(purse).due_at
    for page in ("/", "/budgets/"):
        shown = words(client.get(page))
        assert f"Kestrel: all that runs there ends at {due:%H:%M}." in shown
        assert "will come to €1.00 of €1.00 this month" not in shown
        assert "A project above this one: all that runs there ends" in words(below.get(page))
    assert "What was told" in words(client.get("/budgets/"))
    assert "Kestrel has come to €1.00, 100 % of €1.00" in words(client.get("/budgets/"))
    assert "Kestrel" not in words(below.get("/budgets/")).partition("What was told")[2]
    life.clock.at += timedelta(minutes=30)
    watched(life)
    assert "Kestrel: its budget has ended all that ran." in words(client.get("/"))
    budget(kestrel, 10_000, life)
    shown = words(client.get("/budgets/"))
    assert "its budget has ended" not in shown
    assert "100 % of €1.00, and was changed since" in shown


def test_a_soft_budget_that_is_used_up_says_that_it_only_tells(kestrel: Home, life: Life) -> None:
    client = visitor(kestrel)
    budget(kestrel, 50, life, terms=Terms(stop_new_at=None, stop_idle_at=90, forecast_thresholds=()))
    life.lease(kestrel, offering())
    life.run(2000)
    watched(life)
    shown = words(client.get("/"))
    assert (
        "The €0.50 of Kestrel for this month are used up. Its budget only tells: leases begin and go on."
        in shown
    )
    assert "Kestrel: what is idle ends from" in shown


def test_a_hard_one_that_is_used_up_says_that_nothing_begins(kestrel: Home, life: Life) -> None:
    budget(kestrel, 100, life, terms=Terms(forecast_thresholds=()))
    life.lease(kestrel, offering())
    life.run(3599)
    watched(life)
    shown = words(visitor(kestrel).get("/"))
    assert "are used up. What runs goes on, and no lease begins that it has no room for." in shown


def test_what_a_budget_ended_is_among_the_events(kestrel: Home, life: Life) -> None:
    budget(kestrel, 500, life, terms=Terms(stop_all_at=10, grace_minutes=0))
    life.lease(kestrel, offering(), name="fold")
    life.run(2000)
    assert watched(life) == 1
    assert "fold ended: the budget of Kestrel ended all that ran" in words(visitor(kestrel).get("/"))


def test_over_the_api_terms_alerts_and_stops(kestrel: Home, life: Life) -> None:
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    terms = {"thresholds": [80, 50, 50], "stop_new_at": None, "stop_all_at": 50, "grace_minutes": 20}
    made = api.ask("POST", "budgets", {"project": kestrel.project.pk, "limit": "1", **terms})
    assert made.status_code == 201, made.content
    told = {name: made.json()[name] for name in (*terms, "forecast_thresholds", "stop_idle_at")}
    assert told == {**terms, "thresholds": [50, 80], "forecast_thresholds": [80, 100], "stop_idle_at": None}
    life.lease(kestrel, offering())
    life.run(2000)
    watched(life)
    key = made.json()["id"]
    assert api.ask("GET", f"budgets/{key}").json()["forecast"]["amount"] == "1.000000"
    alerts = api.ask("GET", f"budget-alerts?budget={key}").json()["items"]
    assert {(row["measure"], row["percent"], row["lifted_at"]) for row in alerts} == {
        ("spent", 50, None), ("forecast", 80, None), ("forecast", 100, None),
    }  # fmt: skip
    assert alerts[0]["project"] == kestrel.project.pk
    assert alerts[0]["month"] == "2026-11"
    assert alerts[0]["limit"] == {"amount": "1.000000", "currency": "EUR"}
    (stop,) = api.ask("GET", "budget-stops?what=all").json()["items"]
    assert (stop["percent"], stop["done_at"], stop["ended"], stop["lifted_at"]) == (50, None, 0, None)
    assert stop["spent"]["currency"] == stop["limit"]["currency"] == "EUR"
    tag = api.ask("GET", f"budgets/{key}")["ETag"]
    changed = api.ask("PATCH", f"budgets/{key}", {"stop_all_at": None}, If_Match=tag)
    assert changed.status_code == 200, changed.content
    assert changed.json()["stop_all_at"] is None
    assert changed.json()["limit"] == made.json()["limit"]
    assert api.ask("GET", "budget-stops").json()["items"][0]["lifted_at"] is not None


@pytest.mark.parametrize(
    "wrong", [{"thresholds": [0]}, {"stop_all_at": 1001}, {"grace_minutes": -1}, {"thresholds": ["x"]}]
)
def test_terms_that_cannot_be_are_refused(kestrel: Home, life: Life, wrong: dict[str, Any]) -> None:
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    answer = api.ask("POST", "budgets", {"project": kestrel.project.pk, "limit": "1", **wrong})
    assert answer.status_code == 400, answer.content
