"""The operators' ledger page, and the same over the API."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.ledger import posting
from ports import payments
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.payments.payable_invoices import (
    NOW,
    captured_messages,
    create_final_invoice,
    process_payment,
    reload_invoice,
    request_payment,
)
from web.portal.operators import operator_lists
from web.portal.operators.ledger import ledger_page

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


def raw(operator: Client, query: str = "") -> str:
    answer = operator.get(f"/ops/ledger/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def read(operator: Client, query: str = "") -> str:
    return " ".join(unescape(strip_tags(raw(operator, query).replace("<", " <"))).split())


def paid() -> Invoice:
    invoice = create_final_invoice()
    process_payment(request_payment(invoice))
    return invoice


def name_of(invoice: Invoice) -> str:
    with tenant_scope(invoice.tenant_id):
        return reload_invoice(invoice).tenant.name


def test_an_empty_ledger_shows_a_notice(operator: Client) -> None:
    body = read(operator)
    assert "No entries yet." in body
    assert "No accounts yet" in body
    assert "No transfers" in body


def test_both_sides_and_the_latest_transfers_are_shown(operator: Client) -> None:
    create_final_invoice()
    invoice = paid()
    body = read(operator)
    assert "Debits equal credits in EUR." in body
    assert "Receivables receivable EUR 2 €2.00 —" in body
    assert "Clearing of invoices accrued EUR 2 — —" in body
    assert "Revenue revenue EUR 1 — €4.00" in body
    assert "Payment provider cash EUR 1 €2.00 —" in body
    assert "Balanced EUR €4.00 €4.00" in body
    assert f"Payment {invoice} {name_of(invoice)} Payment provider Receivables €2.00" in body


def test_the_page_links_to_the_transfers_of_an_invoice(operator: Client) -> None:
    other, invoice = create_final_invoice(), paid()
    page = raw(operator)
    assert f'href="/ops/ledger/?invoice={invoice.pk}"' in page
    body = read(operator, f"?invoice={invoice.pk}")
    assert f"invoice {invoice}, paid, of {name_of(invoice)}" in body
    assert name_of(other) not in body
    assert f"ledger-transfers?sort=-id&ref={invoice.pk}&limit=500" in body
    assert "Show all transfers" in body


def test_the_page_links_to_the_transfers_of_a_tenant(operator: Client) -> None:
    other, invoice = create_final_invoice(), paid()
    assert f'href="/ops/ledger/?tenant={invoice.tenant_id}"' in raw(operator)
    body = read(operator, f"?tenant={invoice.tenant_id}")
    assert re.search(rf"Transfers {name_of(invoice)} \d rows Show all transfers", body)
    assert name_of(other) not in body


@pytest.mark.parametrize("query", ["?invoice=inv_none", "?tenant=ten_none", "?invoice=inv_none&tenant=ten_none"])
def test_an_unknown_invoice_or_tenant_has_no_transfers(operator: Client, query: str) -> None:
    paid()
    body = read(operator, query)
    assert "No transfers for" in body or "No row of this list matches the filters." in body
    assert "0 rows" in body


@pytest.mark.parametrize("query", ["?invoice=%00", "?from=x", "?from=-1", "?from=1e9"])
def test_an_invalid_query_string_is_ignored(operator: Client, query: str) -> None:
    invoice = paid()
    assert str(invoice) in read(operator, query)


def test_a_long_list_is_paginated_to_earlier_transfers(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__, "most", 2)
    invoice = paid()
    first = raw(operator)
    (earlier,) = re.findall(r'href="(\?from=2)">Next', first)
    assert "Previous" not in first
    second = read(operator, unescape(earlier))
    assert f"Invoice {invoice} {name_of(invoice)} Clearing of invoices Revenue €2.00" in second
    assert "Previous" in second
    assert "Next" not in second


def test_a_reversal_names_the_reversed_transfer(operator: Client) -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
        posting.reverse_invoices([invoice.pk], now=NOW)
    body = read(operator)
    assert re.search(rf"Invoice voided reverses \d+ {invoice} ", body)
    assert "Balanced EUR €0.00 €0.00" in body


def test_an_unbalanced_ledger_is_reported_by_currency(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from billing.services.ledger.ledger_balances import TrialBalance, TrialBalanceLine

    odd = (
        TrialBalance("EUR", (TrialBalanceLine("EUR", "cash", 1, 500, 0),)),
        TrialBalance("USD", (TrialBalanceLine("USD", "cash", 1, 500, 0),)),
    )
    monkeypatch.setattr(ledger_page.ledger_balances, "stored_trial_balance", lambda: odd)
    body = read(operator)
    assert "Debits and credits differ in EUR, USD." in body
    assert "Not balanced EUR €5.00 €0.00" in body


def test_the_number_of_queries_is_the_same_with_many_transfers(operator: Client) -> None:
    counts = []
    for _ in range(3):
        paid()
        with CaptureQueriesContext(connection) as spoken:
            read(operator)
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts


def test_the_api_lists_and_filters_transfers(operator: Client) -> None:
    other, invoice = create_final_invoice(), paid()

    def items(query: str) -> list[dict[str, object]]:
        answer = operator.get(f"/api/v1/ops/ledger-transfers?{query}")
        assert answer.status_code == 200, answer.content
        found: list[dict[str, object]] = answer.json()["items"]
        return found

    assert len(items("")) == 5
    assert {each["subject_id"] for each in items(f"tenant={other.tenant_id}")} == {other.pk}
    found = items(f"subject_id={invoice.pk}&sort=id")
    assert [each["kind"] for each in found] == ["invoice", "invoice", "payment"]
    assert found[2]["debit_account"]["type"] == "cash"  # type: ignore[index]
    assert found[2]["amount"] == {"amount": "2.000000", "currency": "EUR"}
    assert [each["subject_id"] for each in items("kind=payment")] == [invoice.pk]
    one = operator.get(f"/api/v1/ops/ledger-transfers/{found[2]['id']}")
    assert one.json() == found[2]
    assert operator.get("/api/v1/ops/ledger-transfers?kind=odd").status_code == 400
    assert operator.get(f"/api/v1/ops/ledger-transfers?subject_id={'x' * 301}").status_code == 400
    assert operator.get("/api/v1/ops/ledger-transfers/odd").status_code == 404


def test_the_api_shows_the_trial_balance(operator: Client) -> None:
    paid()
    items = operator.get("/api/v1/ops/trial-balance").json()["items"]
    assert [(each["type"], each["debit"]["amount"], each["credit"]["amount"]) for each in items] == [
        ("receivable", "0.000000", "0.000000"),
        ("accrued", "0.000000", "0.000000"),
        ("revenue", "0.000000", "2.000000"),
        ("cash", "2.000000", "0.000000"),
    ]


def test_every_read_is_audited(operator: Client) -> None:
    raw(operator)
    operator.get("/api/v1/ops/ledger-transfers")
    operator.get("/api/v1/ops/trial-balance")
    with staff_scope():
        paths = list(AuditEvent.objects.filter(action="ops.ledger").values_list("detail__path", flat=True))
    assert sorted(paths) == ["/api/v1/ops/ledger-transfers", "/api/v1/ops/trial-balance", "/ops/ledger/"]
