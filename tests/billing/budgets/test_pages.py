"""Budgets on their page, over the API, and in the proofs."""

from typing import Any

import pytest
from django.test import Client

from billing.models import Budget, HoldPart
from billing.services import proofs
from broker.domain.states import LeaseState
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Project
from tenants.services.walls import as_staff, as_tenant
from tests.billing.budgets.purses import budget, meter
from tests.billing.pages import words
from tests.tenants.people import Api
from tests.world import NOW, Home, alive, offering

pytestmark = pytest.mark.django_db


def visitor(kestrel: Home, role: Role = Role.OWNER, project: Project | None = None) -> Client:
    client = Client()
    client.force_login(kestrel.member(role, project))
    return client


def test_whoever_pays_sets_a_budget_and_reads_what_is_spent_held_and_left(kestrel: Home) -> None:
    with alive() as life:
        client = visitor(kestrel, Role.BILLING)
        assert "Nothing limits what Kestrel may cost in a month." in words(client.get("/budgets/"))
        answer = client.post("/budgets/", {"project": kestrel.project.pk, "limit": "5.00"})
        assert answer.status_code == 302
        life.ask(kestrel, offering(), quantity=2, name="two slices")
        shown = words(client.get("/budgets/"))
        assert "Kestrel may cost €5.00 a month." in shown
        assert "November 2026" in shown
        assert "€0.00 spent, €2.00 held; €0.00 by the month's end No lease begins beyond it." in shown
        assert "Told at 50, 80, 100 %, forecast at 80, 100 %. €3.00 €5.00 Change" in shown
        assert "What holds Kestrel's budget" in shown
        assert "two slices Kestrel €2.00 held Queued €0.00 €2.00" in shown


def test_a_budget_is_raised_and_taken_away_and_the_trail_says_so(kestrel: Home) -> None:
    with alive() as life:
        client = visitor(kestrel)
        purse = budget(kestrel, 500, life)
        client.post("/budgets/", {"project": kestrel.project.pk, "limit": "7.5"})
        assert "€7.50" in words(client.get("/budgets/"))
        assert client.post(f"/budgets/{purse.pk}/remove/").status_code == 302
        assert "No budget yet" in words(client.get("/budgets/"))
    with as_tenant(kestrel.tenant.pk):
        told = list(
            AuditEvent.objects.filter(action__startswith="budget.")
            .order_by("pk")
            .values_list("action", "detail")
        )
    assert [action for action, _ in told] == ["budget.set", "budget.set", "budget.remove"]
    assert [(detail.get("before"), detail.get("after")) for _, detail in told] == [
        (None, "€5.00"),
        ("€5.00", "€7.50"),
        ("€7.50", None),
    ]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("many", "'many' is no amount of EUR"),
        ("-1", "'-1' is no amount of EUR"),
        ("1.005", "at most 2 decimals"),
        ("99999999999999", "no more than there is"),
    ],
)
def test_what_is_no_amount_is_said_where_it_was_typed(kestrel: Home, typed: str, said: str) -> None:
    with alive():
        answer = visitor(kestrel).post("/budgets/", {"project": kestrel.project.pk, "limit": typed})
        assert said in words(answer, 400)
        assert f'value="{typed}"' in answer.content.decode()
    with as_tenant(kestrel.tenant.pk):
        assert not Budget.objects.exists()


def test_a_ceiling_is_set_from_above(kestrel: Home) -> None:
    child = kestrel.child("docking")
    grandchild = kestrel.child("redocking", child)
    with alive() as life:
        lead, member = visitor(kestrel, Role.ADMIN, child), visitor(kestrel, Role.MEMBER)
        purse = budget(kestrel, 100, life, child)
        assert lead.post("/budgets/", {"project": child.pk, "limit": "9"}).status_code == 403
        assert lead.post(f"/budgets/{purse.pk}/remove/").status_code == 403
        assert lead.post("/budgets/", {"project": grandchild.pk, "limit": "9"}).status_code == 302
        assert lead.post("/budgets/", {"project": kestrel.project.pk, "limit": "9"}).status_code == 400
        assert member.post("/budgets/", {"project": child.pk, "limit": "9"}).status_code == 403
        shown = words(member.get("/budgets/"))
        assert "docking Kestrel €1.00 left of €1.00 €0.00 spent; €0.00 by the month's end" in shown
        assert "Set a budget" not in shown
        assert visitor(kestrel).post("/budgets/bud_none/remove/").status_code == 404


def test_over_the_api_a_budget_is_set_read_changed_and_removed(kestrel: Home) -> None:
    with alive() as life:
        api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
        made = api.ask("POST", "budgets", {"project": kestrel.project.pk, "limit": "5"})
        assert made.status_code == 201, made.content
        lease = life.lease(kestrel, offering())
        told = api.ask("GET", f"budgets/{made.json()['id']}")
        amounts = {name: told.json()[name]["amount"] for name in ("limit", "spent", "held", "left")}
        assert amounts == {"limit": "5.000000", "spent": "0.000000", "held": "1.000000", "left": "4.000000"}
        assert api.ask("GET", "budgets").json()["items"] == [told.json()]
        (hold,) = api.ask("GET", f"holds?lease={lease.pk}").json()["items"]
        assert hold["lease"] == lease.pk
        assert hold["parts"] == [
            {
                "budget": made.json()["id"],
                "month": "2026-11",
                "amount": {"amount": "1.000000000000", "currency": "EUR"},
                "captured": {"amount": "0.000000000000", "currency": "EUR"},
            }
        ]
        refused = api.ask(
            "POST", "leases", {"project": kestrel.project.pk, "offering": offering().pk, "name": "b", "quantity": 5,
                               "max_duration_s": 3600},
        )  # fmt: skip
        assert (refused.status_code, refused.json()["code"]) == (403, "policy-denied"), (
            "who pays does not launch"
        )
        changed = api.ask("PATCH", f"budgets/{made.json()['id']}", {"limit": "0.5"}, If_Match=told["ETag"])
        assert changed.json()["left"]["amount"] == "0.000000"
        odd = api.ask("PATCH", f"budgets/{made.json()['id']}", {"limit": "x"}, If_Match=changed["ETag"])
        assert odd.status_code == 400
        gone = api.ask("DELETE", f"budgets/{made.json()['id']}", If_Match=changed["ETag"])
        assert gone.status_code == 204


def test_over_the_api_a_lease_beyond_its_budget_is_refused_with_the_way_out(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 99, life)
        api: Any = Api(kestrel.token(now=NOW))
        body = {"project": kestrel.project.pk, "offering": offering().pk, "name": "b", "max_duration_s": 3600}
        answer = api.ask("POST", "leases", body)
        assert (answer.status_code, answer.json()["code"], answer.json()["budget"]) == (
            402,
            "budget-hold-failed",
            purse.pk,
        )
        assert answer.json()["fix"]["href"] == "/api/v1/budgets"


def test_proofs_say_that_what_runs_is_held_and_what_was_held_was_charged(kestrel: Home) -> None:
    def red() -> list[str]:
        with as_staff():
            return [proof.name for proof in proofs.check(now=life.now) if not proof.holds]

    with alive() as life:
        purse = budget(kestrel, 500, life)
        lease = life.lease(kestrel, offering(), LeaseState.RELEASED)
        running = life.lease(kestrel, offering())
        life.run(200)
        meter(life)
        assert red() == []
        with as_tenant(kestrel.tenant.pk):
            HoldPart.objects.filter(hold__lease=lease).update(num=10**15)
        assert red() == ["budgets are what was held"]
        meter(life)
        with as_tenant(kestrel.tenant.pk):
            HoldPart.objects.all().delete()
        assert red() == ["held before it runs"]
        assert running.pk
        assert purse.pk


def test_the_launch_page_says_what_is_left_of_the_budget_and_what_it_has_no_room_for(kestrel: Home) -> None:
    with alive() as life:
        client = visitor(kestrel, Role.MEMBER)
        wish = {"offering": f"{offering().pk} on_demand", "lasts": "1 h", "count": "1", "name": "a"}
        assert "Budget left" not in words(client.get("/launch/"))
        budget(kestrel, 1000, life)
        assert "Budget left after that €9.00 of €10.00" in words(client.post("/launch/quote/", wish))
        beyond = words(client.post("/launch/quote/", wish | {"count": "11"}), 200)
        assert "The budget of this project for 2026-11 is €10.00" in beyond
    with as_tenant(kestrel.tenant.pk):
        assert not HoldPart.objects.exists()


def test_the_top_bar_says_what_of_its_budget_is_spent(kestrel: Home) -> None:
    with alive() as life:
        client = visitor(kestrel)
        assert "Spent in November €0.00 Running" in words(client.get("/team/"))
        budget(kestrel, 1000, life)
        assert "Spent in November €0.00 of €10.00 Running" in words(client.get("/team/"))
        budget(kestrel, 0, life)
        assert "Spent in November €0.00 of €0.00 Running" in words(client.get("/team/"))
