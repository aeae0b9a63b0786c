"""Budget figures and alerts on pages, events and API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from billing.domain.budgets import BudgetTerms
from billing.models import Budget
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import create_budget, latest_stop, run_budget_watch
from tests.simulation import NOW, Simulation, TenantContext, offering, simulate
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.budgets.test_budget_pages import visitor
from tests.web.portal.page_text import page_words

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
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def the_budget(kestrel: TenantContext) -> Budget:
    with tenant_scope(kestrel.tenant.pk):
        return Budget.objects.get()


def test_terms_are_set_and_changed_on_the_page(kestrel: TenantContext, sim: Simulation) -> None:
    client = visitor(kestrel)
    sent = {"project": kestrel.project.pk, "limit": "5.00", **TERMS}
    assert client.post("/budgets/", sent).status_code == 302
    budget = the_budget(kestrel)
    assert budget.terms == BudgetTerms((25, 75), (), 90, 60, None, 15)
    shown = page_words(client.get("/budgets/"))
    assert "Blocks new leases at 90 %; ends idle leases at 60 %. Alerts at 25, 75 %." in shown
    page = client.get(f"/budgets/?of={budget.pk}").content.decode()
    for value in ("5.00", "25, 75", "90", "60", "15"):
        assert f'value="{value}"' in page
    client.post("/budgets/", {**sent, "kind": "soft", "stop_all_at": "120", "stop_idle_at": "", "thresholds": ""})
    assert the_budget(kestrel).terms == BudgetTerms((), (), None, None, 120, 15)
    shown = page_words(client.get("/budgets/"))
    assert "Notify only; ends all leases at 120 %, 15 min after an e-mail." in shown
    assert 'value="soft" checked' in client.get(f"/budgets/?of={budget.pk}").content.decode()
    client.post("/budgets/", {"project": kestrel.project.pk, "limit": "6"})
    assert the_budget(kestrel).terms == BudgetTerms((), (), None, None, 120, 15), "what is not sent stays"
    client.post("/budgets/", {**sent, "stop_new_at": "", "grace_minutes": ""})
    assert the_budget(kestrel).terms == BudgetTerms((25, 75), (), 100, 60, None, 0)


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("thresholds", "half", "'half' is not a whole percentage."),
        ("stop_new_at", "0", "from 1 to 1000, not 0"),
        ("grace_minutes", "99999", "0 to 10080 minutes"),
        ("project", "prj_none", "This project does not exist."),
    ],
)
def test_an_invalid_alert_threshold_shows_a_field_error_and_keeps_the_input(
    kestrel: TenantContext, sim: Simulation, field: str, typed: str, said: str
) -> None:
    client = visitor(kestrel)
    sent = {"project": kestrel.project.pk, "limit": "5.00", **TERMS, field: typed}
    answer = client.post("/budgets/", sent)
    assert said in page_words(answer, 400)
    page = answer.content.decode()
    assert 'value="25, 75"' in page or field == "thresholds"
    with tenant_scope(kestrel.tenant.pk):
        assert not Budget.objects.exists()


@pytest.mark.deep
def test_home_and_budgets_pages_show_forecasts_exhausted_budgets_and_stops(
    kestrel: TenantContext, sim: Simulation
) -> None:
    child = kestrel.create_project("docking")
    client, below = visitor(kestrel), visitor(kestrel, Role.MEMBER, child)
    budget = create_budget(
        kestrel, 100, sim, terms=BudgetTerms(forecast_thresholds=(100,), stop_all_at=100, grace_minutes=30)
    )
    sim.create_lease(kestrel, offering(), project=child)
    sim.run(60)
    run_budget_watch(sim)
    assert "Kestrel is forecast to reach €1.00 of €1.00 this month." in page_words(client.get("/"))
    assert "Budget of Kestrel is forecast to reach €1.00, 100 % of €1.00" in page_words(client.get("/"))
    sim.run(3538)
    run_budget_watch(sim)
    due = latest_stop(budget).due_at
    for page in ("/", "/budgets/"):
        shown = page_words(client.get(page))
        assert f"Kestrel: all leases end at {due:%H:%M}." in shown
        assert "is forecast to reach €1.00 of €1.00 this month" not in shown
        assert "A parent project: all leases end" in page_words(below.get(page))
    assert "Alert history" in page_words(client.get("/budgets/"))
    assert "Kestrel reached 100 % of €1.00: €1.00" in page_words(client.get("/budgets/"))
    assert "Kestrel" not in page_words(below.get("/budgets/")).partition("Alert history")[2]
    sim.clock.at += timedelta(minutes=30)
    run_budget_watch(sim)
    assert "Kestrel: its budget ended all leases." in page_words(client.get("/"))
    create_budget(kestrel, 10_000, sim)
    shown = page_words(client.get("/budgets/"))
    assert "its budget ended" not in shown
    assert "100 % of €1.00; the budget was changed since" in shown


def test_an_exhausted_soft_budget_shows_that_it_only_notifies(kestrel: TenantContext, sim: Simulation) -> None:
    client = visitor(kestrel)
    create_budget(kestrel, 50, sim, terms=BudgetTerms(stop_new_at=None, stop_idle_at=90, forecast_thresholds=()))
    sim.create_lease(kestrel, offering())
    sim.run(2000)
    run_budget_watch(sim)
    shown = page_words(client.get("/"))
    assert (
        "Kestrel has used its budget of €0.50 for this month. Its budget only notifies: leases are not blocked."
        in shown
    )
    assert "Kestrel: idle leases end from" in shown


def test_an_exhausted_hard_budget_shows_that_new_leases_are_blocked(kestrel: TenantContext, sim: Simulation) -> None:
    create_budget(kestrel, 100, sim, terms=BudgetTerms(forecast_thresholds=()))
    sim.create_lease(kestrel, offering())
    sim.run(3599)
    run_budget_watch(sim)
    shown = page_words(visitor(kestrel).get("/"))
    assert "for this month. Running leases continue; leases that would exceed the budget are blocked." in shown


def test_a_lease_ended_by_a_budget_is_listed_among_the_events(kestrel: TenantContext, sim: Simulation) -> None:
    create_budget(kestrel, 500, sim, terms=BudgetTerms(stop_all_at=10, grace_minutes=0))
    sim.create_lease(kestrel, offering(), name="fold")
    sim.run(2000)
    assert run_budget_watch(sim) == 1
    assert "fold ended: the budget of Kestrel ended all leases" in page_words(visitor(kestrel).get("/"))


def test_the_api_sets_budget_terms_and_lists_alerts_and_stops(kestrel: TenantContext, sim: Simulation) -> None:
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    terms = {"thresholds": [80, 50, 50], "stop_new_percent": None, "stop_all_percent": 50, "grace_minutes": 20}
    made = api.send("POST", "budgets", {"project": kestrel.project.pk, "limit": "1", **terms})
    assert made.status_code == 201, made.content
    values = {name: made.json()[name] for name in (*terms, "forecast_thresholds", "stop_idle_percent")}
    assert values == {**terms, "thresholds": [50, 80], "forecast_thresholds": [80, 100], "stop_idle_percent": None}
    sim.create_lease(kestrel, offering())
    sim.run(2000)
    run_budget_watch(sim)
    key = made.json()["id"]
    assert api.send("GET", f"budgets/{key}").json()["forecast"]["amount"] == "1.000000"
    alerts = api.send("GET", f"budget-alerts?budget={key}").json()["items"]
    assert {(row["measure"], row["threshold_percent"], row["lifted_at"]) for row in alerts} == {
        ("spent", 50, None), ("forecast", 80, None), ("forecast", 100, None),
    }  # fmt: skip
    assert alerts[0]["project"] == kestrel.project.pk
    assert alerts[0]["month"] == "2026-11"
    assert alerts[0]["limit"] == {"amount": "1.000000", "currency": "EUR"}
    (stop,) = api.send("GET", "budget-stops?kind=all").json()["items"]
    assert (stop["threshold_percent"], stop["done_at"], stop["ended_count"], stop["lifted_at"]) == (50, None, 0, None)
    assert stop["spent"]["currency"] == stop["limit"]["currency"] == "EUR"
    tag = api.send("GET", f"budgets/{key}")["ETag"]
    changed = api.send("PATCH", f"budgets/{key}", {"stop_all_percent": None}, If_Match=tag)
    assert changed.status_code == 200, changed.content
    assert changed.json()["stop_all_percent"] is None
    assert changed.json()["limit"] == made.json()["limit"]
    assert api.send("GET", "budget-stops").json()["items"][0]["lifted_at"] is not None


@pytest.mark.parametrize(
    "wrong", [{"thresholds": [0]}, {"stop_all_percent": 1001}, {"grace_minutes": -1}, {"thresholds": ["x"]}]
)
def test_invalid_budget_terms_are_refused(kestrel: TenantContext, sim: Simulation, wrong: dict[str, Any]) -> None:
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    answer = api.send("POST", "budgets", {"project": kestrel.project.pk, "limit": "1", **wrong})
    assert answer.status_code == 400, answer.content
