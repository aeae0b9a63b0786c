"""What a month still waits for before it is closed, issued and collected, and what operators can do about it."""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from billing.gateways.simulated import Ill, SimulatedGateway
from billing.models import Invoice
from billing.services import closing, drafts, month_close, rating
from billing.services.ledger.books import Line, Totals
from billing.services.month_close import Item, State
from ports import clock, payments
from tenants.models import Tenant, User
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import HOUR, at, customer, ran, reprice, runs, sold
from tests.billing.payments.bills import NOW, bill, collect, heard, ill, pay
from tests.billing.tax.papers import LUMEN, taxed

pytestmark = pytest.mark.django_db
OCTOBER = "2026-10"


@pytest.fixture(autouse=True)
def _standing() -> Iterator[None]:
    with clock.standing_at(NOW), payments.through(SimulatedGateway()), heard():
        yield


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def items(label: str = OCTOBER, *, now: Any = NOW) -> dict[str, Item]:
    with as_staff():
        return {item.name: item for item in month_close.look(label, now=now).items}


def used() -> Tenant:
    """Let a tenant use an hour of October at two euros, charged and drafted."""
    tenant, project = customer()
    ran(project, sold(2 * 10**9), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    drafts.refresh(tenant, now=NOW)
    return tenant


def words(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def test_a_month_that_is_over_is_closed_issued_and_collected_in_turn() -> None:
    tenant = used()
    found = items()
    assert found["The month is over"].state is State.DONE
    assert found["Every month is closed"] == Item(
        "Every month is closed",
        found["Every month is closed"].says,
        State.WAITS,
        "1 month that is over is still open",
        (tenant.name,),
        "A run comes every ten minutes; close now to see at once what it says.",
    )
    assert found["Every draft is issued"].found == "0 invoices, 1 draft left"
    closing.close_due(now=NOW)
    found = items()
    assert found["Every month is closed"].state is State.DONE
    assert found["Every draft is issued"].found == "1 invoice of €2.00, 0 drafts left"
    assert found["Everything is collected"].found == "€2.00 is still due on 1 invoice"
    with as_tenant(tenant.pk):
        invoice = Invoice.objects.get()
    collect(pay(invoice))
    assert items()["Everything is collected"].found == "nothing is due"
    with as_staff():
        whole = month_close.look(OCTOBER, now=NOW)
    assert whole.done == len(whole.items)


def test_before_its_end_a_month_is_not_over_anywhere() -> None:
    used()
    found = items(now=at("2026-10-31 23:00:00"))
    assert found["The month is over"].state is State.WAITS
    assert "0 of 1 months are; the last ends 01 Nov 00:00 UTC" in found["The month is over"].found
    assert found["Every month is closed"].found == "0 months that are over are still open"
    assert found["Every month is closed"].state is State.WAITS


def test_a_lease_that_nobody_has_seen_since_is_a_late_meter() -> None:
    tenant, project = customer()
    ran(project, sold(), at("2026-10-05 00:00:00"), HOUR)
    lease = runs(project, sold(), at("2026-10-31 20:00:00"), seen_at=at("2026-10-31 21:00:00"))
    rating.rate(now=NOW)
    found = items()["No meter is late"]
    assert (found.state, found.examples) == (State.WAITS, (f"{lease.pk} of {tenant.name}",))


def test_a_second_without_a_price_is_named_and_where_to_mend_it() -> None:
    _, project = customer()
    ran(project, sold(), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    offering = sold(None)
    ran(project, offering, at("2026-10-06 00:00:00"), HOUR)
    found = items()["Everything has a price"]
    assert (found.state, found.found) == (State.BAD, "1 stretch is without a price")
    assert offering.label in found.examples[0]
    reprice(offering, 10**9, since=at("2026-10-01 00:00:00"))
    assert items()["Everything has a price"].state is State.DONE


def test_a_tax_that_nobody_knows_is_named(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    tenant = used()
    found = items()["Every tax has a rate"]
    assert (found.state, found.examples) == (State.BAD, (tenant.name,))
    taxed("DE", 19)
    drafts.refresh(tenant, now=NOW)
    assert items()["Every tax has a rate"].state is State.DONE


def test_a_payment_that_waits_for_a_person_is_named() -> None:
    invoice = bill()
    ill(invoice, Ill.REJECTED)
    collect(pay(invoice))
    found = items()["Everything is collected"]
    assert (found.state, found.examples) == (State.BAD, (str(invoice),))


def test_books_that_do_not_agree_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    used()
    odd = (Totals("EUR", (Line("EUR", "cash", 1, 5, 0),)),)
    monkeypatch.setattr(month_close.books, "trial_balance", lambda: odd)
    found = items()["The books agree"]
    assert (found.state, found.found, found.examples) == (State.BAD, "1 currency is not balanced", ("EUR",))


def test_the_page_closes_what_is_over_and_says_what_could_not_be(operator: Client, settings: Any) -> None:
    assert "No tenant has used anything yet" in words(operator.get("/ops/month-close/"))
    used()
    shown = words(operator.get("/ops/month-close/?month=odd"))
    assert "Month close 2026-10" in shown
    assert "1 month that is over is still open" in shown
    assert operator.post("/ops/month-close/?month=2026-10").status_code == 302
    shown = words(operator.get("/ops/month-close/?month=2026-10"))
    assert "1 month closed." in shown
    assert "1 invoice of €2.00, 0 drafts left" in shown
    operator.post("/ops/month-close/")
    assert "Nothing was there that could be closed now." in words(operator.get("/ops/month-close/"))
    settings.SUPPLIER = LUMEN.as_dict()
    used()
    _, project = customer()
    ran(project, sold(None), at("2026-10-06 00:00:00"), HOUR)
    drafts_of_the_gap = rating.rate(now=NOW)
    assert drafts_of_the_gap.gaps
    operator.post("/ops/month-close/")
    shown = words(operator.get("/ops/month-close/"))
    assert "No standard rate of tax is known for the last day of 2026-10" in shown


def test_the_same_over_the_api(operator: Client) -> None:
    assert operator.get("/api/v1/ops/month-closes/2026-10").status_code == 404
    used()
    told = operator.get("/api/v1/ops/month-closes/2026-10").json()
    assert [item["state"] for item in told["items"]].count("waits") == 2
    told = operator.put(
        "/api/v1/ops/month-closes/2026-10", '{"state": "closed"}', content_type="application/json"
    ).json()
    assert [item["name"] for item in told["items"] if item["state"] != "done"] == ["Everything is collected"]
