"""Credit notes as operators issue them and their tenants read them: on pages, and over the API."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.db import connection, transaction
from django.test import Client

from billing.models import CreditNote, Invoice
from billing.services import closing, drafts, proofs, rating
from billing.services.ledger import posting
from ports import clock
from tenants.domain.roles import Role
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import LATER, WHY, credit, given_back, month_of_two_lines, november
from tests.billing.histories import HOUR, at, ran, sold
from tests.billing.pages import words
from tests.billing.payments.bills import NOW, collect, pay
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db


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


def notes(invoice: Invoice) -> list[tuple[str, int, str]]:
    with as_tenant(invoice.tenant_id):
        found = CreditNote.objects.filter(invoice=invoice).order_by("pk")
        return [(str(note), note.total, note.reason) for note in found]


def ask(operator: Client, invoice: Invoice, **typed: str) -> Any:
    return operator.post(f"/ops/invoices/{invoice.pk}/", {"seen": str(given_back(invoice))} | typed)


def test_an_operator_gives_back_what_was_typed_and_reads_it_there(operator: Client, october: Invoice) -> None:
    page = f"/ops/invoices/{october.pk}/"
    before = words(operator.get(page))
    assert "October 2026 of Kestrel" in before
    assert "Left to give back €3.05" in before
    assert "Nothing was given back" in before
    answer = ask(operator, october, reason=WHY, **{"line-1": "0.50", "line-2": ""})
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert notes(october) == [("CN-2026-11-0001", 50, WHY)]
    after = words(operator.get(page))
    assert "CN-2026-11-0001: €0.50 given back." in after
    assert "Still to be paid €2.55" in after
    assert "Left to give back €2.55" in after
    assert f"{WHY} €0.50 €0.00 €0.50" in after


def test_all_that_is_left_is_given_back_when_it_was_asked_whether(operator: Client, october: Invoice) -> None:
    credit(october, {1: 50})
    page = operator.get(f"/ops/invoices/{october.pk}/").content.decode()
    give_back = f"/ops/invoices/{october.pk}/give-back/?seen=50"
    assert f'href="{give_back}"' in page
    assert "Give back all €2.55 that is left of 2026-10-0001 of Kestrel?" in words(operator.get(give_back))
    assert len(notes(october)) == 1
    assert operator.post(give_back, {"reason": WHY}).status_code == 302
    assert [total for _, total, _ in notes(october)] == [50, 255]
    after = words(operator.get(f"/ops/invoices/{october.pk}/"))
    assert "Left to give back €0.00" in after
    assert "Give back all" not in after


def test_a_form_that_is_sent_twice_gives_back_once(operator: Client, october: Invoice) -> None:
    form = {"seen": "0", "reason": WHY, "line-1": "0.50"}
    assert ask(operator, october, **form).status_code == 302
    said = words(ask(operator, october, **form), 409)
    assert "Of this invoice €0.50 was given back by now, not €0.00 as when you looked." in said
    give_back = f"/ops/invoices/{october.pk}/give-back/"
    assert operator.post(f"{give_back}?seen=0", {"reason": WHY}).status_code == 409
    assert operator.post(give_back, {"reason": WHY}).status_code == 400
    assert ask(operator, october, **form | {"seen": "many"}).status_code == 400
    assert [total for _, total, _ in notes(october)] == [50]


def test_lines_come_in_parts_and_all_of_them_can_be_given_back(operator: Client, kestrel: Home) -> None:
    invoice = month_of_two_lines(*range(1, 31), *range(1, 31))
    page = f"/ops/invoices/{invoice.pk}/"
    first, second = operator.get(page).content.decode(), operator.get(f"{page}?from=40").content.decode()
    assert (first.count('name="line-'), second.count('name="line-')) == (40, 20)
    assert 'name="line-60"' in second
    assert "of 60 lines" in words(operator.get(page))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"line-1": "2.01"}, "Of line 1 no more than €2.00 can be given back."),
        ({"line-1": "1.005"}, "'1.005' is no amount of EUR: it has digits and at most 2 decimals."),
        ({"line-1": "-1"}, "'-1' is no amount of EUR"),
        ({"line-1": "0"}, "Of line 1 nothing would be given back."),
        ({"line-1": ""}, "Nothing was typed beside any line."),
        ({"line-1": "1", "reason": ""}, "A reason has 1 to 150 characters."),
    ],
)
def test_what_makes_no_sense_is_said_where_it_was_typed(
    operator: Client, october: Invoice, typed: dict[str, str], said: str
) -> None:
    answer = ask(operator, october, **{"reason": WHY} | typed)
    shown = words(answer, 400)
    assert said in shown
    assert f'value="{typed["line-1"]}"' in answer.content.decode()
    assert notes(october) == []


def test_a_draft_has_nothing_to_type(operator: Client, kestrel: Home) -> None:
    ran(kestrel.project, sold(), at("2026-11-01 00:00:00"), 60)
    rating.rate(now=NOW)
    with as_tenant(kestrel.tenant.pk):
        drafts.refresh(kestrel.tenant, now=NOW)
        unfinished = Invoice.objects.get()
    shown = words(operator.get(f"/ops/invoices/{unfinished.pk}/"))
    assert "Only a final invoice can be credited." in shown
    assert "Reason" not in shown
    assert "This invoice is draft." in words(ask(operator, unfinished, reason=WHY, **{"line-1": "0.01"}), 409)


def test_an_invoice_that_is_not_there_is_missing(operator: Client) -> None:
    assert operator.get("/ops/invoices/inv_none/").status_code == 404


def test_operators_read_the_invoices_of_all_tenants_and_those_of_one_state(
    operator: Client, kestrel: Home, october: Invoice
) -> None:
    shown = words(operator.get("/ops/invoices/"))
    assert "€3.05 is due by the ledger." in shown
    assert "October 2026 Kestrel Kestrel Finalized 2026-10-0001 1 Nov 2026 €3.05 €3.05" in shown
    credit(october)
    assert "0 invoices are in this state." in words(operator.get("/ops/invoices/?state=finalized"))
    assert "2026-10-0001 1 Nov 2026 €3.05 —" in words(operator.get("/ops/invoices/?state=paid"))
    assert "2026-10-0001" in words(operator.get("/ops/invoices/?state=unheard-of"))


def test_the_ledger_leads_to_the_invoice_that_it_tells_of(operator: Client, october: Invoice) -> None:
    shown = operator.get(f"/ops/ledger/?invoice={october.pk}").content.decode()
    assert f'href="/ops/invoices/{october.pk}/"' in shown


def test_a_tenant_reads_what_was_given_back_and_what_is_still_to_be_paid(
    payer: Client, october: Invoice
) -> None:
    assert "Credit notes" not in words(payer.get(f"/invoices/{october.pk}/"))
    credit(october, {1: 50})
    shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert "Still to be paid €2.55 €0.50 given back" in shown
    assert "€2.55 due." in shown
    assert f"{WHY} €0.50 €0.00 €0.50" in shown
    assert f"Credit note CN-2026-11-0001: €0.50 given back. {WHY}" in shown
    credit(october)
    shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert "Paid: nothing was left to be paid, after what was given back." in shown


def test_a_tenant_reads_what_is_on_its_balance_and_what_was_drawn_from_it(
    payer: Client, october: Invoice
) -> None:
    collect(pay(october))
    credit(october, {1: 150})
    assert "€1.50 is on your balance" in words(payer.get("/invoices/"))
    shown = words(payer.get(f"/invoices/{october.pk}/"))
    assert "€1.50 of it, which was paid, is on the balance" in shown
    assert "€3.05 paid" in shown
    following = november(october, 100)
    shown = words(payer.get(f"/invoices/{following.pk}/"))
    assert "Still to be paid €0.00 €1.00 drawn from your balance" in shown
    assert "€1.00 drawn from the balance" in shown
    credit(following, now=LATER)
    closing_words = words(payer.get(f"/invoices/{following.pk}/"))
    assert "€1.00 drawn from your balance, €1.00 given back" in closing_words


def test_what_was_drawn_and_given_back_is_said_together_once_nothing_is_due(
    payer: Client, october: Invoice
) -> None:
    collect(pay(october))
    credit(october, {1: 150})
    following = november(october, 200)
    credit(following, now=LATER)
    shown = words(payer.get(f"/invoices/{following.pk}/"))
    assert "after what was drawn from your balance and given back." in shown


def test_over_the_api_a_tenant_reads_its_notes_and_what_is_due(kestrel: Home, october: Invoice) -> None:
    note = credit(october, {1: 50, 2: 5})
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    told = api.ask("GET", f"invoices/{october.pk}").json()
    assert (told["total"]["amount"], told["settled"]["amount"], told["due"]["amount"]) == (
        "3.050000",
        "0.550000",
        "2.500000",
    )
    (listed,) = api.ask("GET", f"credit-notes?invoice={october.pk}").json()["items"]
    nothing = {"amount": "0.000000", "currency": "EUR"}
    assert listed == api.ask("GET", f"credit-notes/{note.pk}").json()
    assert listed == {
        "id": note.pk,
        "number": "CN-2026-11-0001",
        "invoice": october.pk,
        "reason": WHY,
        "total": {"amount": "0.550000", "currency": "EUR"},
        "tax": nothing,
        "off_due": {"amount": "0.550000", "currency": "EUR"},
        "to_balance": {"amount": "0.000000", "currency": "EUR"},
        "to_grants": {"amount": "0.000000", "currency": "EUR"},
        "lines": [
            {"n": 1, "amount": {"amount": "0.500000", "currency": "EUR"}, "tax": nothing},
            {"n": 2, "amount": {"amount": "0.050000", "currency": "EUR"}, "tax": nothing},
        ],
        "issued_at": "2026-11-01T00:05:00Z",
    }


def test_over_the_api_a_tenant_reads_what_is_due_and_what_is_on_its_balance(
    kestrel: Home, october: Invoice
) -> None:
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    due = {"amount": "3.050000", "currency": "EUR"}
    assert api.ask("GET", "balance").json() == {"owed": [due], "balance": due | {"amount": "0.000000"}}
    collect(pay(october))
    credit(october, {1: 150})
    assert api.ask("GET", "balance").json() == {"owed": [], "balance": due | {"amount": "1.500000"}}


def test_the_file_of_invoices_says_what_was_settled_and_what_is_due(payer: Client, october: Invoice) -> None:
    credit(october, {1: 50})
    heads, row = payer.get("/invoices/?format=csv").content.decode().splitlines()
    told = dict(zip(heads.split(","), row.split(","), strict=True))
    assert (told["total"], told["settled"], told["due"]) == ("3.050000", "0.500000", "2.550000")


def test_news_say_what_became_of_an_invoice_and_of_how_much(payer: Client, october: Invoice) -> None:
    credit(october, {1: 50})
    assert "Invoice 2026-10-0001 is final, €2.55 to be paid" in words(payer.get("/"))
    credit(october)
    assert "Invoice 2026-10-0001 is settled, €3.05" in words(payer.get("/"))


def test_over_the_api_operators_read_those_of_all_tenants(operator: Client, october: Invoice) -> None:
    note = credit(october, {1: 50})
    (found,) = operator.get(f"/api/v1/ops/invoices?tenant={october.tenant_id}").json()["items"]
    assert (found["id"], found["tenant"]["name"]) == (october.pk, "Kestrel")
    lines = operator.get(f"/api/v1/ops/invoices/{october.pk}/lines").json()["items"]
    assert [(line["n"], line["credited"]["amount"]) for line in lines] == [(1, "0.500000"), (2, "0.000000")]
    (listed,) = operator.get(f"/api/v1/ops/credit-notes?invoice={october.pk}").json()["items"]
    assert (listed["id"], listed["tenant"]["id"]) == (note.pk, october.tenant_id)


def test_a_proof_turns_red_when_what_is_due_is_not_what_the_ledger_says(october: Invoice) -> None:
    def red() -> list[str]:
        with as_staff():
            return [proof.name for proof in proofs.check(now=clock.now()) if not proof.holds]

    credit(october, {1: 50})
    collect(pay(october))
    with clock.standing_at(books_now()):
        assert red() == []
        with transaction.atomic():
            with as_tenant(october.tenant_id):
                CreditNote.objects.create(
                    tenant_id=october.tenant_id, invoice=october, series="CN", number=1, currency="EUR", total=1,
                    off_due=0, reason="", issued_at=clock.now(), issued_by="",
                )  # fmt: skip
            assert red() == ["balances are what was given back", "invoices are in the books"]
            transaction.set_rollback(True)
        following = november(october, 100)
        with mock.patch.object(posting, "credited", return_value=0):
            credit(following, {1: 1}, now=LATER)
        assert red() == ["what is due is owed", "invoices are in the books"]


def books_now() -> Any:
    """Return the moment by which the books were written: PostgreSQL's own."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]
