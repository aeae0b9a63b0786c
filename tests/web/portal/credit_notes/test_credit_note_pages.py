"""Credit notes on pages and API, for operators and tenants."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.db import connection, transaction
from django.test import Client

from billing.domain.tax import TaxTreatment
from billing.models import CreditNote, Invoice
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import invariant_checks, posting
from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import (
    LATER,
    WHY,
    create_november_invoice,
    create_october_invoice_of,
    credited_amount,
    issue_note,
)
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, process_payment, request_payment
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


@pytest.fixture
def october(kestrel: TenantContext) -> Invoice:
    """A month with lines of 2.00 and 1.05."""
    for n, cents in enumerate((200, 105)):
        add_ended_lease(kestrel.project, create_priced_offering(cents * 10**7), utc(f"2026-10-0{n + 1} 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def notes(invoice: Invoice) -> list[tuple[str, int, str]]:
    with tenant_scope(invoice.tenant_id):
        found = CreditNote.objects.filter(invoice=invoice).order_by("pk")
        return [(str(note), note.total, note.reason) for note in found]


def ask(operator: Client, invoice: Invoice, **typed: str) -> Any:
    return operator.post(f"/ops/invoices/{invoice.pk}/", {"seen": str(credited_amount(invoice))} | typed)


def test_an_operator_credits_the_entered_amount_and_sees_the_note(operator: Client, october: Invoice) -> None:
    page = f"/ops/invoices/{october.pk}/"
    before = page_words(operator.get(page))
    assert "October 2026 of Kestrel" in before
    assert "Refundable €3.05" in before
    assert "No credit notes" in before
    answer = ask(operator, october, reason=WHY, **{"line-1": "0.50", "line-2": ""})
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert notes(october) == [("CN-2026-11-0001", 50, WHY)]
    after = page_words(operator.get(page))
    assert "CN-2026-11-0001: €0.50 credited." in after
    assert "Amount due €2.55" in after
    assert "Refundable €2.55" in after
    assert f"{WHY} €0.50 €0.00 €0.50" in after


def test_the_remaining_amount_is_credited_after_a_confirmation(operator: Client, october: Invoice) -> None:
    issue_note(october, {1: 50})
    page = operator.get(f"/ops/invoices/{october.pk}/").content.decode()
    give_back = f"/ops/invoices/{october.pk}/credit/?seen=50"
    assert f'href="{give_back}"' in page
    assert "Credit the remaining €2.55 of 2026-10-0001 of Kestrel?" in page_words(operator.get(give_back))
    assert len(notes(october)) == 1
    assert operator.post(give_back, {"reason": WHY}).status_code == 302
    assert [total for _, total, _ in notes(october)] == [50, 255]
    after = page_words(operator.get(f"/ops/invoices/{october.pk}/"))
    assert "Refundable €0.00" in after
    assert "Credit everything" not in after


def test_a_credit_form_sent_twice_issues_one_note(operator: Client, october: Invoice) -> None:
    form = {"seen": "0", "reason": WHY, "line-1": "0.50"}
    assert ask(operator, october, **form).status_code == 302
    said = page_words(ask(operator, october, **form), 409)
    assert "€0.50 of this invoice has been credited, not €0.00 as shown on your page." in said
    give_back = f"/ops/invoices/{october.pk}/credit/"
    assert operator.post(f"{give_back}?seen=0", {"reason": WHY}).status_code == 409
    assert operator.post(give_back, {"reason": WHY}).status_code == 400
    assert ask(operator, october, **form | {"seen": "many"}).status_code == 400
    assert [total for _, total, _ in notes(october)] == [50]


@pytest.mark.deep
def test_invoice_lines_are_paginated_and_every_line_can_be_credited(operator: Client, kestrel: TenantContext) -> None:
    invoice = create_october_invoice_of(*range(1, 31), *range(1, 31))
    page = f"/ops/invoices/{invoice.pk}/"
    first, second = operator.get(page).content.decode(), operator.get(f"{page}?from=40").content.decode()
    assert (first.count('name="line-'), second.count('name="line-')) == (40, 20)
    assert 'name="line-60"' in second
    assert "of 60 lines" in page_words(operator.get(page))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"line-1": "2.01"}, "At most €2.00 of line 1 can be credited."),
        ({"line-1": "1.005"}, "'1.005' is not an amount in EUR: it has digits and at most 2 decimals."),
        ({"line-1": "-1"}, "'-1' is not an amount in EUR"),
        ({"line-1": "0"}, "The credit for line 1 is zero."),
        ({"line-1": ""}, "No amount was entered."),
        ({"line-1": "1", "reason": ""}, "A reason must have 1 to 150 characters."),
    ],
)
def test_an_invalid_credit_note_shows_a_field_error_and_keeps_the_input(
    operator: Client, october: Invoice, typed: dict[str, str], said: str
) -> None:
    answer = ask(operator, october, **{"reason": WHY} | typed)
    shown = page_words(answer, 400)
    assert said in shown
    assert f'value="{typed["line-1"]}"' in answer.content.decode()
    assert notes(october) == []


def create_draft(kestrel: TenantContext) -> Invoice:
    """Create a minute of usage in the open month, and its draft invoice."""
    add_ended_lease(kestrel.project, create_priced_offering(), utc("2026-11-01 00:00:00"), 60)
    lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(kestrel.tenant.pk):
        drafts.refresh_drafts(kestrel.tenant, now=NOW)
        return Invoice.objects.get()


def test_a_draft_has_no_credit_form(operator: Client, kestrel: TenantContext) -> None:
    unfinished = create_draft(kestrel)
    shown = page_words(operator.get(f"/ops/invoices/{unfinished.pk}/"))
    assert "Only a final invoice can be credited." in shown
    assert "Reason" not in shown
    assert "This invoice is draft." in page_words(ask(operator, unfinished, reason=WHY, **{"line-1": "0.01"}), 409)


def test_an_invoice_without_vat_says_why(operator: Client, kestrel: TenantContext) -> None:
    draft = create_draft(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        Invoice.objects.filter(pk=draft.pk).update(treatment=TaxTreatment.REVERSE_CHARGE)
    shown = page_words(operator.get(f"/ops/invoices/{draft.pk}/"))
    assert "with €0.00 VAT. Reverse charge: the customer owes the VAT" in shown
    assert "reverse_charge" not in shown


def test_an_unknown_invoice_returns_404(operator: Client) -> None:
    assert operator.get("/ops/invoices/inv_none/").status_code == 404


def test_operators_list_the_invoices_of_all_tenants_filtered_by_state(
    operator: Client, kestrel: TenantContext, october: Invoice
) -> None:
    shown = page_words(operator.get("/ops/invoices/"))
    assert "€3.05 is due according to the ledger." in shown
    assert "October 2026 Kestrel Kestrel Finalized 2026-10-0001 1 Nov 2026 €3.05 €3.05" in shown
    issue_note(october)
    assert "No invoices in this state." in page_words(operator.get("/ops/invoices/?state=finalized"))
    assert "2026-10-0001 1 Nov 2026 €3.05 —" in page_words(operator.get("/ops/invoices/?state=paid"))
    refused = page_words(operator.get("/ops/invoices/?state=unheard-of"), status=400)
    assert "2026-10-0001" not in refused


def test_the_ledger_page_links_to_the_invoice(operator: Client, october: Invoice) -> None:
    shown = operator.get(f"/ops/ledger/?invoice={october.pk}").content.decode()
    assert f'href="/ops/invoices/{october.pk}/"' in shown


@pytest.mark.deep
def test_a_tenant_sees_the_credited_amount_and_the_amount_due(payer: Client, october: Invoice) -> None:
    assert "the invoice itself never changes" not in page_words(payer.get(f"/invoices/{october.pk}/"))
    issue_note(october, {1: 50})
    shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert "Amount due €2.55 €0.50 credited" in shown
    assert "€2.55 due." in shown
    assert f"{WHY} €0.50 €0.00 €0.50" in shown
    assert f"Credit note CN-2026-11-0001: €0.50 credited. {WHY}" in shown
    issue_note(october)
    shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert "Paid: no amount due after credit notes." in shown


def test_a_tenant_sees_its_balance_and_the_amounts_drawn_from_it(payer: Client, october: Invoice) -> None:
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    assert "€1.50 is on your balance" in page_words(payer.get("/invoices/"))
    shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert "€1.50 added to the balance" in shown
    assert "€3.05 paid" in shown
    following = create_november_invoice(october, 100)
    shown = page_words(payer.get(f"/invoices/{following.pk}/"))
    assert "Amount due €0.00 €1.00 drawn from your balance" in shown
    assert "€1.00 paid from the balance" in shown
    issue_note(following, now=LATER)
    closing_words = page_words(payer.get(f"/invoices/{following.pk}/"))
    assert "€1.00 drawn from your balance, €1.00 credited" in closing_words


def test_an_invoice_settled_by_balance_and_credit_notes_names_both(payer: Client, october: Invoice) -> None:
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    following = create_november_invoice(october, 200)
    issue_note(following, now=LATER)
    shown = page_words(payer.get(f"/invoices/{following.pk}/"))
    assert "after balance and credit notes." in shown


def test_the_api_shows_a_tenant_its_credit_notes_and_the_amount_due(kestrel: TenantContext, october: Invoice) -> None:
    note = issue_note(october, {1: 50, 2: 5})
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    body = api.send("GET", f"invoices/{october.pk}").json()
    assert (body["total"]["amount"], body["settled"]["amount"], body["due"]["amount"]) == (
        "3.050000",
        "0.550000",
        "2.500000",
    )
    (listed,) = api.send("GET", f"credit-notes?invoice={october.pk}").json()["items"]
    nothing = {"amount": "0.000000", "currency": "EUR"}
    assert listed == api.send("GET", f"credit-notes/{note.pk}").json()
    assert listed == {
        "id": note.pk,
        "number": "CN-2026-11-0001",
        "invoice": october.pk,
        "reason": WHY,
        "total": {"amount": "0.550000", "currency": "EUR"},
        "tax": nothing,
        "reduced_due": {"amount": "0.550000", "currency": "EUR"},
        "to_balance": {"amount": "0.000000", "currency": "EUR"},
        "to_grants": {"amount": "0.000000", "currency": "EUR"},
        "lines": [
            {"line": 1, "amount": {"amount": "0.500000", "currency": "EUR"}, "tax": nothing},
            {"line": 2, "amount": {"amount": "0.050000", "currency": "EUR"}, "tax": nothing},
        ],
        "issued_at": "2026-11-01T00:05:00Z",
    }


def test_the_api_shows_a_tenant_the_amount_due_and_its_balance(kestrel: TenantContext, october: Invoice) -> None:
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    due = {"amount": "3.050000", "currency": "EUR"}
    assert api.send("GET", "balance").json() == {"owed_by_currency": [due], "balance": due | {"amount": "0.000000"}}
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    assert api.send("GET", "balance").json() == {"owed_by_currency": [], "balance": due | {"amount": "1.500000"}}


def test_the_invoices_csv_has_settled_and_due_amounts(payer: Client, october: Invoice) -> None:
    issue_note(october, {1: 50})
    heads, row = payer.get("/invoices/?format=csv").content.decode().splitlines()
    values = dict(zip(heads.split(","), row.split(","), strict=True))
    assert (values["total"], values["settled"], values["due"]) == ("3.050000", "0.500000", "2.550000")


def test_events_state_the_status_and_amount_of_an_invoice(payer: Client, october: Invoice) -> None:
    issue_note(october, {1: 50})
    assert "Invoice 2026-10-0001 is final, €2.55 due" in page_words(payer.get("/"))
    issue_note(october)
    assert "Invoice 2026-10-0001 is paid, €3.05" in page_words(payer.get("/"))


def test_the_api_shows_operators_invoices_and_credit_notes_of_all_tenants(operator: Client, october: Invoice) -> None:
    note = issue_note(october, {1: 50})
    (found,) = operator.get(f"/api/v1/ops/invoices?tenant={october.tenant_id}").json()["items"]
    assert (found["id"], found["tenant"]["name"]) == (october.pk, "Kestrel")
    lines = operator.get(f"/api/v1/ops/invoices/{october.pk}/lines").json()["items"]
    assert [(line["line"], line["credited"]["amount"]) for line in lines] == [(1, "0.500000"), (2, "0.000000")]
    (listed,) = operator.get(f"/api/v1/ops/credit-notes?invoice={october.pk}").json()["items"]
    assert (listed["id"], listed["tenant"]["id"]) == (note.pk, october.tenant_id)


def test_an_integrity_check_fails_when_the_amount_due_differs_from_the_ledger(october: Invoice) -> None:
    def red() -> list[str]:
        with staff_scope():
            return [proof.name for proof in invariant_checks.check_invariants(now=clock.now()) if not proof.holds]

    issue_note(october, {1: 50})
    process_payment(request_payment(october))
    with clock.frozen_at(database_now()):
        assert red() == []
        with transaction.atomic():
            with tenant_scope(october.tenant_id):
                CreditNote.objects.create(
                    tenant_id=october.tenant_id, invoice=october, series="CN", number=1, currency="EUR", total=1,
                    reduced_due=0, reason="", issued_at=clock.now(), issued_by="",
                )  # fmt: skip
            assert red() == ["balances match", "invoices posted"]
            transaction.set_rollback(True)
        following = create_november_invoice(october, 100)
        with mock.patch.object(posting, "post_credit_notes", return_value=0):
            issue_note(following, {1: 1}, now=LATER)
        assert red() == ["receivables match", "invoices posted"]


def database_now() -> Any:
    """Return the current time of PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]
