"""Budgets on their page, over the API, and in the invariant checks."""

from typing import Any

import pytest
from django.test import Client

from billing.models import Budget, HoldPart
from billing.services.ledger import invariant_checks
from broker.domain.lifecycle.states import LeaseState
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Project
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.budgets.budget_setup import create_budget, run_metering
from tests.simulation import NOW, TenantContext, offering, simulate
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db


def visitor(kestrel: TenantContext, role: Role = Role.OWNER, project: Project | None = None) -> Client:
    client = Client()
    client.force_login(kestrel.create_member(role, project))
    return client


def test_a_payer_sets_a_budget_and_sees_spent_reserved_and_left_amounts(kestrel: TenantContext) -> None:
    with simulate() as sim:
        client = visitor(kestrel, Role.BILLING)
        assert "The monthly cost of Kestrel is not limited." in page_words(client.get("/budgets/"))
        answer = client.post("/budgets/", {"project": kestrel.project.pk, "limit": "5.00"})
        assert answer.status_code == 302
        sim.request_lease(kestrel, offering(), quantity=2, name="two slices")
        shown = page_words(client.get("/budgets/"))
        assert "The monthly budget of Kestrel is €5.00." in shown
        assert "November 2026" in shown
        assert "€0.00 spent, €2.00 reserved; forecast €0.00 Blocks new leases." in shown
        assert "Alerts at 50, 80, 100 %, forecast at 80, 100 %. €3.00 €5.00 Change" in shown
        assert "Reserved in the budget of Kestrel" in shown
        assert "two slices Kestrel €2.00 reserved Queued €0.00 €2.00" in shown


def test_raising_and_removing_a_budget_is_audited(kestrel: TenantContext) -> None:
    with simulate() as sim:
        client = visitor(kestrel)
        budget = create_budget(kestrel, 500, sim)
        client.post("/budgets/", {"project": kestrel.project.pk, "limit": "7.5"})
        assert "€7.50" in page_words(client.get("/budgets/"))
        assert client.post(f"/budgets/{budget.pk}/remove/").status_code == 302
        assert "No budget yet" in page_words(client.get("/budgets/"))
    with tenant_scope(kestrel.tenant.pk):
        rows = list(
            AuditEvent.objects.filter(action__startswith="budget.").order_by("pk").values_list("action", "detail")
        )
    assert [action for action, _ in rows] == ["budget.set", "budget.set", "budget.remove"]
    assert [(detail.get("before"), detail.get("after")) for _, detail in rows] == [
        (None, "€5.00"),
        ("€5.00", "€7.50"),
        ("€7.50", None),
    ]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("many", "'many' is not an amount in EUR"),
        ("-1", "'-1' is not an amount in EUR"),
        ("1.005", "at most 2 decimals"),
        ("99999999999999", "below the maximum"),
    ],
)
def test_an_invalid_amount_shows_a_field_error_and_keeps_the_input(
    kestrel: TenantContext, typed: str, said: str
) -> None:
    with simulate():
        answer = visitor(kestrel).post("/budgets/", {"project": kestrel.project.pk, "limit": typed})
        assert said in page_words(answer, 400)
        assert f'value="{typed}"' in answer.content.decode()
    with tenant_scope(kestrel.tenant.pk):
        assert not Budget.objects.exists()


def test_a_project_admin_sets_budgets_of_subprojects_only(kestrel: TenantContext) -> None:
    child = kestrel.create_project("docking")
    grandchild = kestrel.create_project("redocking", child)
    with simulate() as sim:
        lead, member = visitor(kestrel, Role.ADMIN, child), visitor(kestrel, Role.MEMBER)
        budget = create_budget(kestrel, 100, sim, child)
        assert lead.post("/budgets/", {"project": child.pk, "limit": "9"}).status_code == 403
        assert lead.post(f"/budgets/{budget.pk}/remove/").status_code == 403
        assert lead.post("/budgets/", {"project": grandchild.pk, "limit": "9"}).status_code == 302
        assert lead.post("/budgets/", {"project": kestrel.project.pk, "limit": "9"}).status_code == 400
        assert member.post("/budgets/", {"project": child.pk, "limit": "9"}).status_code == 403
        shown = page_words(member.get("/budgets/"))
        assert "docking Kestrel €1.00 left of €1.00 €0.00 spent; forecast €0.00" in shown
        assert 'id="set"' not in member.get("/budgets/").content.decode()
        assert visitor(kestrel).post("/budgets/bud_none/remove/").status_code == 404


def test_the_api_creates_reads_changes_and_deletes_a_budget(kestrel: TenantContext) -> None:
    with simulate() as sim:
        api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
        made = api.send("POST", "budgets", {"project": kestrel.project.pk, "limit": "5"})
        assert made.status_code == 201, made.content
        lease = sim.create_lease(kestrel, offering())
        answer = api.send("GET", f"budgets/{made.json()['id']}")
        amounts = {name: answer.json()[name]["amount"] for name in ("limit", "spent", "held", "left")}
        assert amounts == {"limit": "5.000000", "spent": "0.000000", "held": "1.000000", "left": "4.000000"}
        assert api.send("GET", "budgets").json()["items"] == [answer.json()]
        (hold,) = api.send("GET", f"holds?lease={lease.pk}").json()["items"]
        assert hold["lease"] == lease.pk
        assert hold["parts"] == [
            {
                "budget": made.json()["id"],
                "month": "2026-11",
                "amount": {"amount": "1.000000", "currency": "EUR"},
                "captured": {"amount": "0.000000", "currency": "EUR"},
            }
        ]
        refused = api.send(
            "POST", "leases", {"project": kestrel.project.pk, "offering": offering().pk, "name": "b", "quantity": 5,
                               "max_duration_s": 3600},
        )  # fmt: skip
        assert (refused.status_code, refused.json()["code"]) == (403, "policy-denied"), "who pays does not launch"
        changed = api.send("PATCH", f"budgets/{made.json()['id']}", {"limit": "0.5"}, If_Match=answer["ETag"])
        assert changed.json()["left"]["amount"] == "0.000000"
        odd = api.send("PATCH", f"budgets/{made.json()['id']}", {"limit": "x"}, If_Match=changed["ETag"])
        assert odd.status_code == 400
        gone = api.send("DELETE", f"budgets/{made.json()['id']}", If_Match=changed["ETag"])
        assert gone.status_code == 204


def test_the_api_refuses_a_lease_beyond_its_budget_with_a_fix(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 99, sim)
        api: Any = ApiClient(kestrel.token(now=NOW))
        body = {"project": kestrel.project.pk, "offering": offering().pk, "name": "b", "max_duration_s": 3600}
        answer = api.send("POST", "leases", body)
        assert (answer.status_code, answer.json()["code"], answer.json()["budget"]) == (
            402,
            "budget-hold-failed",
            budget.pk,
        )
        assert answer.json()["fix"]["href"] == "/api/v1/budgets"


def test_integrity_checks_report_budgets_that_differ_from_holds_and_missing_holds(kestrel: TenantContext) -> None:
    def red() -> list[str]:
        with staff_scope():
            return [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds]

    with simulate() as sim:
        budget = create_budget(kestrel, 500, sim)
        lease = sim.create_lease(kestrel, offering(), LeaseState.RELEASED)
        running = sim.create_lease(kestrel, offering())
        sim.run(200)
        run_metering(sim)
        assert red() == []
        with tenant_scope(kestrel.tenant.pk):
            HoldPart.objects.filter(hold__lease=lease).update(num=10**15)
        assert red() == ["budgets match holds"]
        run_metering(sim)
        with tenant_scope(kestrel.tenant.pk):
            HoldPart.objects.all().delete()
        assert red() == ["holds before start"]
        assert running.pk
        assert budget.pk


def test_the_launch_page_shows_the_remaining_budget_and_refusals(kestrel: TenantContext) -> None:
    with simulate() as sim:
        client = visitor(kestrel, Role.MEMBER)
        form = {"offering": f"{offering().pk} on_demand", "lasts": "1 h", "count": "1", "name": "a"}
        assert "Budget remaining" not in page_words(client.get("/launch/"))
        create_budget(kestrel, 1000, sim)
        assert "Budget remaining €9.00 of €10.00" in page_words(client.post("/launch/quote/", form))
        beyond = page_words(client.post("/launch/quote/", form | {"count": "11"}), 200)
        assert "The budget of this project for 2026-11 is €10.00" in beyond
    with tenant_scope(kestrel.tenant.pk):
        assert not HoldPart.objects.exists()


def test_the_top_bar_shows_spend_and_budget_of_the_month(kestrel: TenantContext) -> None:
    with simulate() as sim:
        client = visitor(kestrel)
        assert "Spent in November €0.00 Running" in page_words(client.get("/team/"))
        create_budget(kestrel, 1000, sim)
        assert "Spent in November €0.00 of €10.00 Running" in page_words(client.get("/team/"))
        create_budget(kestrel, 0, sim)
        assert "Spent in November €0.00 of €0.00 Running" in page_words(client.get("/team/"))
