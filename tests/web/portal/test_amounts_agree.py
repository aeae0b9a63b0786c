"""Every page states the same amount for the same thing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from billing.models import AccountTerms
from billing.services.invoicing import metering
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.models import User
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import create_budget
from tests.simulation import offering
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
AMOUNT = r"€([\d,]+\.\d\d)"
LAUNCH = {"class": "on_demand", "count": "1", "runs": "own", "image": "python:3"}


def amount(pattern: str, text: str) -> Decimal:
    """Return the amount at the place of {} in a pattern, which must be on the page."""
    found = re.search(pattern.replace("{}", AMOUNT), text)
    assert found, f"{pattern!r} is not in {text}"
    return Decimal(found[1].replace(",", ""))


@contextmanager
def operator(settings: Any) -> Iterator[Client]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    yield client


def launch(portal: PortalSession, name: str, *, profile: str = "3g.40gb", **more: str) -> Lease:
    """Launch through the portal, by its quote, and wait until it is active."""
    form = {**LAUNCH, "offering": offering(profile).pk, "name": name, "key": name, "lasts": "8 h", **more}
    page = portal.get("/launch/?" + "&".join(f"{field}={value}" for field, value in form.items() if field != "key"))
    quote = re.search(r'name="quote" form="launch" value="([^"]+)"', page.content.decode())
    answer = portal.post("/launch/", **form, **({"quote": quote[1]} if quote else {}))
    assert answer.status_code == 302, visible_text(answer)
    portal.sim.run(60)
    with tenant_scope(portal.owner.tenant.pk):
        return Lease.objects.get(name=name)


@pytest.fixture
def seeded(portal: PortalSession) -> PortalSession:
    """Leases that run, ended, wait and are metered in part, under a budget."""
    create_budget(portal.owner, 100_000, portal.sim)
    launch(portal, "long", lasts="200 h")
    launch(portal, "short")
    portal.sim.run(1800)
    metering.run_metering(now=portal.sim.now)
    ended = launch(portal, "ended")
    portal.sim.run(1234)
    portal.sim.release_lease(ended)
    portal.sim.run(1000)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, name="waits")
    return portal


def test_the_forecast_is_the_same_on_home_spend_budgets_and_in_the_api(seeded: PortalSession) -> None:
    home = amount("Forecast {}", seeded.read("/"))
    assert amount("Forecast for 30 November {}", seeded.read("/spend/")) == home
    assert amount("forecast {}", seeded.read("/budgets/")) == home
    api = ApiClient(seeded.owner.token(now=seeded.sim.now))
    assert Decimal(api.send("GET", "usage-forecast").json()["going_on"]["amount"]) == home
    (budget,) = api.send("GET", "budgets").json()["items"]
    assert Decimal(budget["forecast"]["amount"]) == home
    with tenant_scope(seeded.owner.tenant.pk):
        ended = Lease.objects.get(name="ended")
    over = amount("Cost {}", seeded.read(f"/leases/{ended.pk}/"))
    assert home == over + Decimal("3.00") * (200 + 8), "both leases run to their own end"


def test_what_was_spent_is_the_same_on_home_top_bar_spend_and_budgets(seeded: PortalSession) -> None:
    home = seeded.read("/")
    spent = amount("Spent in November {}", home)
    assert amount("November Spend {}", home) == spent
    assert amount("{} spent", seeded.read("/budgets/")) == spent
    assert amount(r"Total 100 % {}", seeded.read("/spend/")) == spent


def test_a_running_lease_is_charged_the_same_on_home_its_page_and_budgets(seeded: PortalSession) -> None:
    with tenant_scope(seeded.owner.tenant.pk):
        lease = Lease.objects.get(name="short")
    own = amount("Cost {}", seeded.read(f"/leases/{lease.pk}/"))
    assert own > 0
    assert amount("short Active .*?/h {} so far", seeded.read("/")) == own
    budgets = seeded.read("/budgets/")
    shown = re.search(rf"short Kestrel {AMOUNT} reserved Active {AMOUNT} {AMOUNT}", budgets)
    assert shown, budgets
    assert Decimal(shown[2]) == own
    assert Decimal(shown[3]) == Decimal(shown[1]) == Decimal("24.00") - own
    api = ApiClient(seeded.owner.token(now=seeded.sim.now))
    assert (
        Decimal(api.send("GET", f"leases/{lease.pk}/charges").json()["cost_so_far"]["amount"]).quantize(Decimal("0.01"))
        == own
    )


def test_the_maximum_is_the_same_when_launching_and_on_the_lease(portal: PortalSession) -> None:
    until = portal.sim.now + timedelta(hours=7, minutes=20)
    form = {"lasts": "50 h", "until": f"{until:%Y-%m-%dT%H:%M}"}
    page = portal.read(f"/launch/?offering={offering('3g.40gb').pk}&lasts=50+h&until={form['until']}")
    promised = amount("Launch — max {}", page)
    assert promised == Decimal("22.00"), "not for 50 h: it ends earlier"
    with tenant_scope(portal.owner.tenant.pk):
        assert not Lease.objects.exists()
    lease = launch(portal, "dated", **form)
    shown = amount("max {}", portal.read(f"/leases/{lease.pk}/"))
    assert promised - Decimal("0.05") <= shown <= promised, "the minute until it was active costs nothing"
    portal.sim.run(3600)
    assert amount("max {}", portal.read(f"/leases/{lease.pk}/")) == shown
    portal.sim.release_lease(lease)
    portal.sim.run(60)
    over = portal.read(f"/leases/{lease.pk}/")
    assert "max €" not in over


def test_the_maximum_of_a_quote_counts_until_the_end_date(portal: PortalSession) -> None:
    api = ApiClient(portal.owner.token(now=portal.sim.now))
    body = {"offering": offering("3g.40gb").pk, "project": portal.owner.project.pk, "max_duration_s": 180_000,
            "end_date": (portal.sim.now + timedelta(hours=7, minutes=20)).isoformat()}  # fmt: skip
    found = api.send("POST", "quotes", body).json()
    assert found["hold"]["amount"] == "22.000000"


def test_the_spend_rate_is_the_same_on_home_leases_and_the_top_bar(seeded: PortalSession) -> None:
    home = seeded.read("/")
    rate = amount("Spend rate {}/h", home)
    assert rate == Decimal("6.00")
    assert amount(r"Spend rate {}/h.*Spent in", seeded.read("/leases/")) == rate


def test_what_a_tenant_used_and_was_not_invoiced_is_no_zero_on_its_terms(seeded: PortalSession, settings: Any) -> None:
    spent = amount("Spent in November {}", seeded.read("/"))
    with tenant_scope(seeded.owner.tenant.pk):
        assert not AccountTerms.objects.exists()
    with operator(settings) as client:
        terms = visible_text(client.get(f"/ops/tenants/{seeded.owner.tenant.pk}/payment-terms/"))
    assert amount("Committed {}", terms) == spent


def test_the_budget_left_is_the_same_on_budgets_and_when_launching(seeded: PortalSession) -> None:
    budgets = seeded.read("/budgets/")
    left = amount(r"Kestrel {} left of €1,000.00", budgets)
    page = seeded.read(f"/launch/?offering={offering('1g.10gb').pk}&lasts=1+h")
    assert amount("Budget remaining {} of €1,000.00", page) == left - amount("Maximum, 1 h {}", page)
