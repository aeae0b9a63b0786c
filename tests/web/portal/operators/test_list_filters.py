"""Filters by tenant and day, totals and CSV of operators' money lists."""

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client

from billing.domain import csv_tables
from billing.services.agreements import minimums
from billing.services.agreements.discounts import tenant_discounts
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.invoicing import credit_notes
from billing.services.invoicing.disputes import dispute_requests
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.corrections.correction_setup import close_period, create_ten_hour_lease, propose_correction
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import LUMEN, create_october_invoice, set_tax_rate
from web.http import downloads
from web.portal.operators import operator_lists

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def rows_of(operator: Client, address: str, query: str = "") -> list[dict[str, str]]:
    """Return the rows of a list's CSV."""
    answer = operator.get(f"{address}?format=csv{query}")
    assert answer["Content-Type"].startswith("text/csv")
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return list(csv.DictReader(io.StringIO(body.decode())))


def body_of(operator: Client, address: str, query: str = "") -> str:
    answer = operator.get(f"{address}?{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_invoices_are_limited_by_tenant_and_day_with_totals_of_all_rows(operator: Client) -> None:
    first, second = create_october_invoice(1000), create_october_invoice(5000)
    both = rows_of(operator, "/ops/invoices/")
    assert {row["invoice"]: (row["subtotal"], row["tax"], row["total"]) for row in both} == {
        first.pk: ("10.000000", "1.900000", "11.900000"),
        second.pk: ("50.000000", "9.500000", "59.500000"),
    }
    assert "€11.40" in body_of(operator, "/ops/invoices/")  # VAT
    for tenant in (first.tenant_id, first.tenant.name):
        assert [row["invoice"] for row in rows_of(operator, "/ops/invoices/", f"&tenant={tenant}")] == [first.pk]
    assert rows_of(operator, "/ops/invoices/", "&since=2026-10-02") == []  # by the first day of the month
    assert len(rows_of(operator, "/ops/invoices/", "&since=2026-10-01&until=2026-10-01&state=finalized")) == 2
    assert rows_of(operator, "/ops/invoices/", "&state=paid") == []
    alone = body_of(operator, "/ops/invoices/", f"tenant={first.tenant_id}&state=finalized")
    assert "€11.40" not in alone
    assert 'name="state" value="finalized"' in alone


def test_transfers_are_limited_by_day_and_have_readable_names(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    shown = [(row["kind"], row["debit"], row["credit"], row["amount"]) for row in rows_of(operator, "/ops/ledger/")]
    assert sorted(shown) == [
        ("invoice", "Clearing of invoices", "Revenue", "10.000000"),
        ("invoice", "Clearing of invoices", "VAT payable", "1.900000"),
        ("invoice", "Receivables", "Clearing of invoices", "11.900000"),
    ]
    assert rows_of(operator, "/ops/ledger/", "&until=2026-10-31") == []
    assert len(rows_of(operator, "/ops/ledger/", f"&since=2026-11-01&invoice={invoice.pk}")) == 3
    assert "€23.80" in body_of(operator, "/ops/ledger/", f"invoice={invoice.pk}")


def test_credits_are_limited_by_day_with_their_sum(operator: Client) -> None:
    tenant = create_october_invoice(1000).tenant
    create_grant(tenant, 250)
    create_grant(tenant, 111)
    assert sorted(row["amount"] for row in rows_of(operator, "/ops/grants/")) == ["1.110000", "2.500000"]
    assert "€3.61" in body_of(operator, "/ops/grants/", f"tenant={tenant.pk}")
    assert rows_of(operator, "/ops/grants/", "&until=2020-01-01") == []


def test_disputes_are_limited_by_tenant_with_their_sum(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    dispute_requests.dispute_lines(invoice, lines={1: 300}, reason="it was slow", actor=OPERATOR, now=NOW)
    (row,) = rows_of(operator, "/ops/disputes/")
    assert (row["invoice"], row["amount"], row["tax"], row["status"]) == (str(invoice), "3.000000", "0.570000", "open")
    assert rows_of(operator, "/ops/disputes/", "&tenant=nobody") == []
    assert "€3.00" in body_of(operator, "/ops/disputes/")


def test_commitments_and_corrections_are_limited_and_downloaded(operator: Client) -> None:
    tenant, _, lease = create_ten_hour_lease()
    committed = create_commitment_terms(tenant, lease.offering, 2)
    (row,) = rows_of(operator, "/ops/commitments/")
    assert (row["commitment"], row["units"], row["price_per_hour"]) == (committed.pk, "2", "0.500000000")
    assert rows_of(operator, "/ops/commitments/", "&tenant=nobody") == []
    close_period(tenant)
    made = propose_correction(lease, 2, 5)
    (row,) = rows_of(operator, "/ops/corrections/", f"&tenant={tenant.pk}")
    assert (row["correction"], row["amount"], row["lease"]) == (made.pk, "6.000000", lease.pk)
    assert rows_of(operator, "/ops/corrections/", "&tenant=nobody") == []
    assert "€6.00" in body_of(operator, "/ops/corrections/")


def test_a_bad_filter_is_explained_and_kept_and_shows_no_rows(operator: Client) -> None:
    create_october_invoice(1000)
    for query, words in (
        ("since=2026-13-01", "“2026-13-01” is not a day. Write it as 2026-12-01."),
        ("since=2026-10-02&until=2026-10-01", "The last day is before the first."),
        ("state=lost", "“lost” is not a state of this list."),
    ):
        answer = operator.get(f"/ops/invoices/?{query}")
        body = answer.content.decode()
        assert (answer.status_code, words in body) == (400, True), query
        assert 'data-list="invoices"' in body
        assert "0 rows" in body
        assert operator.get(f"/ops/invoices/?{query}&format=csv").status_code == 400
    assert 'value="2026-13-01"' in operator.get("/ops/invoices/?since=2026-13-01").content.decode()


def test_pages_keep_the_filters_and_the_csv_has_all_pages(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__ or {}, "most", 2)
    tenant = create_october_invoice(1000).tenant
    for minor in (100, 200, 300):
        create_grant(tenant, minor)
    first = body_of(operator, "/ops/grants/", f"tenant={tenant.pk}")
    assert "3 rows" in first
    assert "1–2" in first
    assert f'href="?tenant={tenant.pk}&amp;from=2"' in first
    assert "3–3" in body_of(operator, "/ops/grants/", f"tenant={tenant.pk}&from=2")
    assert "1–2" in body_of(operator, "/ops/grants/", "from=999999"), "behind the last page is the first"
    assert len(rows_of(operator, "/ops/grants/", f"&tenant={tenant.pk}&from=2")) == 3


def test_lists_of_one_page_have_files_and_positions_of_their_own(operator: Client) -> None:
    tenant = create_october_invoice(1000).tenant
    less = {"terms": DiscountTerms("=cmd|' /C calc'!A0", percent_bp=1000), "actor": OPERATOR, "now": NOW}
    tenant_discounts.give_discount(tenant, **less)
    minimums.create_minimum(tenant, minor=500, since=NOW, until=None, actor=OPERATOR, now=NOW)
    body = body_of(operator, "/ops/discounts/")
    assert re.findall(r'data-list="(\w+)"', body) == ["codes", "discounts", "minimums"]
    (row,) = rows_of(operator, "/ops/discounts/", "&list=discounts")
    assert (row["name"], row["percent"], row["amount"]) == ("'=cmd|' /C calc'!A0", "10", ""), "no formula"
    (row,) = rows_of(operator, "/ops/discounts/", "&list=minimums")
    assert (row["currency"], row["amount"], row["agreed_at"]) == ("EUR", "5.000000", f"{NOW:%Y-%m-%dT%H:%M:%SZ}")
    assert rows_of(operator, "/ops/discounts/") == []
    assert operator.get("/ops/discounts/?format=csv&list=others").status_code == 400
    assert "Minimum spend per month" in body
    assert "€5.00" in body


def test_a_page_far_from_the_first_has_the_rows_that_follow(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__ or {}, "most", 2)
    tenant = create_october_invoice(1000).tenant
    for minor in range(1, 6):
        create_grant(tenant, minor * 100)
    near = re.findall(r"€\d\.\d\d", body_of(operator, "/ops/grants/", "from=3"))
    monkeypatch.setattr(operator_lists, "DEEP", 1)
    assert near == re.findall(r"€\d\.\d\d", body_of(operator, "/ops/grants/", "from=3"))


def test_a_long_list_is_counted_up_to_a_limit(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_lists, "MAX_COUNT", 3)
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__ or {}, "most", 2)
    tenant = create_october_invoice(1000).tenant
    for minor in range(1, 6):
        create_grant(tenant, minor)
    assert "more than 3 rows" in body_of(operator, "/ops/grants/")
    assert "5–5" in body_of(operator, "/ops/grants/", "from=4"), "it has pages beyond"
    assert len(rows_of(operator, "/ops/grants/")) == 5


def test_a_long_csv_is_complete_although_it_is_sent_after_the_transaction(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_UNSTREAMED", 10)
    monkeypatch.setattr(csv_tables, "CHUNK_LENGTH", 10)
    monkeypatch.setattr(operator_lists, "BATCH_SIZE", 2)
    tenant = create_october_invoice(1000).tenant
    for minor in range(1, 6):
        create_grant(tenant, minor)
    answer = operator.get("/ops/grants/?format=csv")
    assert answer.streaming, "what follows is read outside the staff access of the request"
    text = b"".join(answer.streaming_content).decode()
    assert len(list(csv.DictReader(io.StringIO(text)))) == 5


def test_credit_notes_of_all_tenants_are_listed_with_their_sums(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    note = credit_notes.issue_credit_note(invoice, wanted={1: 300}, seen=0, why="it was slow", actor=OPERATOR, now=NOW)
    (row,) = rows_of(operator, "/ops/credit-notes/", f"&tenant={invoice.tenant_id}")
    assert (row["number"], row["invoice_number"], row["reason"]) == (str(note), str(invoice), "it was slow")
    assert (row["currency"], row["total"], row["tax"]) == ("EUR", "3.570000", "0.570000")
    assert rows_of(operator, "/ops/credit-notes/", "&until=2026-01-01") == []
    body = body_of(operator, "/ops/credit-notes/", "q=slow")
    assert str(note) in body
    assert body.count("€3.57") >= 2, "in its row and as the sum"
