"""Disputes as tenants open them and operators answer them: on pages, and over the API."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from billing.gateways.simulated import Ill
from billing.models import Dispute, Invoice
from billing.portal import invoices
from billing.services import closing, rating
from billing.services.disputes import answering, asking, window
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import User
from tenants.services.walls import as_tenant
from tests.billing.histories import HOUR, at, ran, sold
from tests.billing.pages import words
from tests.billing.payments.bills import MIRA, NOW, collect, ill, pay
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db
WHY = "that card was down all night"
AFTER = at("2026-11-16 00:00:00")


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


@pytest.fixture
def october(kestrel: Home) -> Invoice:
    """A month of a line of two euros and one of a euro and five cents."""
    for n, cents in enumerate((200, 105)):
        ran(kestrel.project, sold(cents * 10**7), at(f"2026-10-0{n + 1} 00:00:00"), HOUR)
    rating.rate(now=NOW)
    found = closing.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


@pytest.fixture
def admin(kestrel: Home) -> Client:
    """Who may read invoices and pay none."""
    client = Client()
    client.force_login(kestrel.member(Role.ADMIN))
    return client


def the_one(invoice: Invoice) -> Dispute:
    with as_tenant(invoice.tenant_id):
        return Dispute.objects.get(invoice=invoice)


def opened(invoice: Invoice) -> Dispute:
    return asking.dispute(invoice, lines={1: None}, reason=WHY, actor=MIRA, now=NOW)[0]


def test_a_charge_is_disputed_where_it_is_explained(payer: Client, october: Invoice) -> None:
    page = f"/invoices/{october.pk}/"
    before = words(payer.get(f"{page}?line=1"))
    assert "lines can be disputed until 15 Nov 2026" in before
    assert "Dispute this charge" in before
    answer = payer.post(f"{page}dispute/", {"line": "1", "amount": "0.50", "reason": WHY})
    assert (answer.status_code, answer["Location"]) == (302, f"{page}#disputes")
    after = words(payer.get(f"{page}?line=1"))
    assert "Your dispute is open; your operator answers it" in after
    assert f"Line 1 00:05 {WHY}" in after
    assert the_one(october).pk in after
    assert "Nobody goes after €0.50 until it is answered" in after
    assert "€2.55 due; €0.50 in question. It is collected automatically once that is answered." in after
    assert "Paying now pays all €3.05" in after
    assert "by transfer" not in after
    assert "€0.50 of this line is disputed since" in after
    assert "Dispute this charge" not in after
    payer.post(f"/disputes/{the_one(october).pk}/withdraw/")
    assert the_one(october).status == "withdrawn"
    assert "Dispute this charge" in words(payer.get(f"{page}?line=1"))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"line": "x"}, "No line is named."),
        ({"line": "9"}, "It has no line 9."),
        ({"line": "1", "amount": "2.01"}, "Of line 1 no more than €2.00 can be given back."),
        ({"line": "1", "amount": "-1"}, "'-1' is no amount of EUR"),
        ({"line": "1", "reason": ""}, "A reason has 1 to 500 characters."),
    ],
)
def test_what_was_typed_wrong_is_said_and_nothing_is_written(
    payer: Client, october: Invoice, typed: dict[str, str], said: str
) -> None:
    answer = payer.post(f"/invoices/{october.pk}/dispute/", {"reason": WHY} | typed, follow=True)
    assert said in words(answer)
    with as_tenant(october.tenant_id):
        assert not Dispute.objects.exists()


def test_who_may_only_read_sees_it_and_is_told_who_may(admin: Client, october: Invoice) -> None:
    found = opened(october)
    page = f"/invoices/{october.pk}/"
    shown = words(admin.get(f"{page}?line=2"))
    assert WHY in shown
    assert "Owners of the tenant and those with the role billing in all of it can dispute it." in shown
    assert "Withdraw" not in shown
    assert admin.post(f"{page}dispute/", {"line": "2", "reason": WHY}).status_code == 403
    assert admin.post(f"/disputes/{found.pk}/withdraw/").status_code == 403


def test_after_the_window_the_page_says_so(payer: Client, october: Invoice) -> None:
    with clock.standing_at(AFTER):
        payer.logout()
        payer.force_login(User.objects.get(pk=payer_of(october)))
        shown = words(payer.get(f"/invoices/{october.pk}/?line=1"))
    assert "can be disputed until" not in shown
    assert "The window to dispute this charge is over." in shown


def payer_of(invoice: Invoice) -> Any:
    from tenants.models import Member

    with as_tenant(invoice.tenant_id):
        return Member.objects.get(tenant=invoice.tenant_id, role=Role.BILLING).user_id


def test_where_nobody_may_the_page_does_not_speak_of_it(
    payer: Client, october: Invoice, settings: Any
) -> None:
    settings.DISPUTE_DAYS = 0
    with as_tenant(october.tenant_id):
        draft_like = Invoice.objects.get(pk=october.pk)
    assert draft_like.disputable_until is not None  # what it said it keeps
    assert "can be disputed until" in words(payer.get(f"/invoices/{october.pk}/"))


def test_what_is_open_is_seen_and_answered_where_no_more_can_be_opened(
    payer: Client, operator: Client, october: Invoice, settings: Any
) -> None:
    found = opened(october)
    settings.DISPUTE_DAYS = 0
    page = f"/invoices/{october.pk}/"
    # As of one that became final before invoices said until when.
    with patch.object(window, "closes_at", lambda invoice: None):
        shown = words(payer.get(f"{page}?line=1"))
        assert f"Line 1 00:05 {WHY}" in shown
        assert "€2.00 of this line is disputed since" in shown
        assert "lines can be disputed until" not in shown
        assert "Not right?" not in words(payer.get(f"{page}?line=2"))
        answered = {"verb": "decline", "answer": "it ran all night"}
        assert operator.post(f"/ops/disputes/{found.pk}/", answered).status_code == 302
        assert "Answered: it ran all night" in words(payer.get(page))


def test_what_becomes_of_the_money_is_said_where_it_is_paid(payer: Client, october: Invoice) -> None:
    page = f"/invoices/{october.pk}/"
    payment = pay(october)
    assert "answers once the payment that is under way has settled" in words(payer.get(f"{page}?line=1"))
    found = opened(october)
    shown = words(payer.get(page))
    assert "A payment that may take all of it is under way." in shown
    collect(payment)
    shown = words(payer.get(f"{page}?line=2"))
    assert "€2.00 is paid already. What is given back goes to your balance" in shown
    assert "The invoice is paid: what is given back goes to your balance." in shown
    assert "goes after" not in shown
    answering.accept(found, minor=None, answer="", actor=MIRA, now=NOW)
    assert "€2.00 went to your balance." in words(payer.get(page))


def test_a_card_that_was_declined_is_not_asked_again_while_a_line_is_in_question(
    payer: Client, october: Invoice
) -> None:
    ill(october, Ill.DECLINED)
    collect(pay(october))
    opened(october)
    shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert "It is not tried again automatically while €2.00 of the invoice is in question." in shown


def test_where_nobody_collects_what_is_in_question_is_not_asked_for(payer: Client, october: Invoice) -> None:
    opened(october)
    with payments.through(None):
        shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert (
        "€1.05 due; €2.00 in question. No payments are collected here: pay what is due by transfer" in shown
    )


def test_of_many_that_are_over_the_page_shows_the_latest(
    payer: Client, october: Invoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoices, "DISPUTES", 1)
    for reason in ("older", "newer"):
        (found,) = asking.dispute(october, lines={1: None}, reason=f"the {reason} one", actor=MIRA, now=NOW)
        asking.withdraw(found, actor=MIRA, now=NOW)
    opened(october)
    shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert [told in shown for told in ("the older one", "the newer one", WHY)] == [False, True, True]
    assert "Older ones are left out here" in shown


def test_another_tenants_dispute_is_not_there(payer: Client, october: Invoice) -> None:
    assert payer.post("/disputes/dsp_none/withdraw/").status_code == 404


def test_operators_see_what_waits_and_accept_a_part(
    operator: Client, payer: Client, october: Invoice
) -> None:
    assert "Nothing waits for an answer" in words(operator.get("/ops/disputes/"))
    found = opened(october)
    assert f"Line 1 of {october} Kestrel" in words(operator.get("/ops/disputes/"))
    assert "1 line is disputed: line 1 ." in words(operator.get(f"/ops/invoices/{october.pk}/"))
    page = f"/ops/disputes/{found.pk}/"
    shown = words(operator.get(page))
    assert WHY in shown
    assert "What ran" in shown
    assert "3,600" in shown
    assert "is under way" not in shown
    payment = pay(october)
    assert "A payment of this invoice is under way." in words(operator.get(page))
    ill(october, Ill.DECLINED)
    collect(payment)
    refused = words(operator.post(page, {"verb": "accept", "amount": "9"}), 400)
    assert "Up to €2.00 is in question." in refused
    assert (
        operator.post(page, {"verb": "accept", "amount": "0.40", "answer": "an hour of it"}).status_code
        == 302
    )
    after = words(operator.get(page))
    assert "CN-2026-11-0001 gave back €0.40 . an hour of it" in after
    assert "0 disputes are open" in words(operator.get("/ops/disputes/"))
    assert "Accepted in part" in words(operator.get("/ops/disputes/?state=all"))
    assert "Answered: an hour of it" in words(payer.get(f"/invoices/{october.pk}/"))


def test_operators_decline_with_a_reason(operator: Client, october: Invoice) -> None:
    page = f"/ops/disputes/{opened(october).pk}/"
    assert "A reason has 1 to 500" in words(operator.post(page, {"verb": "decline", "answer": ""}), 400)
    assert operator.post(page, {"verb": "decline", "answer": "it ran all night"}).status_code == 302
    assert "Declined. it ran all night" in words(operator.get(page))
    assert "It is declined since" in words(operator.post(page, {"verb": "accept"}), 409)
    assert operator.get("/ops/disputes/dsp_none/").status_code == 404


def test_the_api_tells_the_same(kestrel: Home, operator: Client, october: Invoice) -> None:
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    asked = {"invoice": october.pk, "lines": [{"n": 1, "amount": "0.50"}, {"n": 2}], "reason": WHY}
    made = api.ask("POST", "/api/v1/disputes", asked)
    assert made.status_code == 201, made.content
    first, second = made.json()["items"]
    assert (first["line"], first["amount"]["amount"], first["status"]) == (1, "0.500000", "open")
    assert [step["status"] for step in first["steps"]] == ["open"]
    assert api.get(f"/api/v1/disputes?invoice={october.pk}").json()["total_estimate"] == 2
    assert api.ask("POST", "/api/v1/disputes", asked).status_code == 409
    assert api.ask("POST", "/api/v1/disputes", asked | {"invoice": "inv_none"}).status_code == 400
    twice = asked | {"lines": [{"n": 1}, {"n": 1, "amount": "0.01"}]}
    assert b"Line 1 is named twice." in api.ask("POST", "/api/v1/disputes", twice).content
    done = api.ask("POST", f"/api/v1/disputes/{second['id']}/withdraw", {})
    assert done.json()["status"] == "withdrawn"
    told = operator.get(f"/api/v1/ops/disputes/{first['id']}").json()
    assert told["tenant"]["name"] == "Kestrel"
    assert [each["unit_seconds"] for each in told["leases"]] == [3600]
    assert told["leases"][0]["lease"].startswith("lse_")
    answer = {"status": "accepted", "amount": "0.40", "answer": "an hour of it"}
    where = f"/api/v1/ops/disputes/{first['id']}"
    accepted = operator.put(where, answer, content_type="application/json").json()
    assert (accepted["status"], accepted["steps"][1]["amount"]["amount"]) == ("accepted", "0.400000")
    again = operator.put(where, {"status": "declined", "answer": "no"}, content_type="application/json")
    assert again.status_code == 409
    assert operator.get("/api/v1/ops/disputes?status=open").json()["total_estimate"] == 0
    assert api.get(f"/api/v1/invoices/{october.pk}").json()["disputable_until"] == "2026-11-16T00:00:00Z"


def test_the_api_declines(operator: Client, october: Invoice) -> None:
    where = f"/api/v1/ops/disputes/{opened(october).pk}"
    assert operator.put(where, {"status": "declined"}, content_type="application/json").status_code == 400
    done = operator.put(where, {"status": "declined", "answer": "it ran"}, content_type="application/json")
    assert (done.json()["status"], done.json()["answer"]) == ("declined", "it ran")
