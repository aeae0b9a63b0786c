"""Account statements against the ledger."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.ledger import AccountType
from billing.models import AccountBalance, Invoice, InvoiceStatus
from billing.services.documents import account_statements as on_paper
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import account_entries, ledger_seal, posting
from billing.services.ledger.account_entries import TenantAccount
from billing.services.payments.topups import topup_collection, topup_creation
from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import (
    LATER,
    create_november_invoice,
    create_october_invoice_of,
    issue_note,
)
from tests.billing.documents.sample_documents import document_words
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import MIRA, NOW, process_payment, request_payment
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
BEGIN, END = utc("2026-01-01 00:00:00"), utc("2027-01-01 00:00:00")
SECOND = timedelta(seconds=1)


def read_account(tenant: str, since: Any = BEGIN, until: Any = END) -> TenantAccount:
    with tenant_scope(tenant):
        return account_entries.read_account(tenant, "EUR", since=since, until=until)


def ledger_balances_of(tenant: str) -> tuple[int, int]:
    """Return the amount owed and the balance in the ledger."""
    with tenant_scope(tenant):
        kept = dict(AccountBalance.objects.values_list("account__type", "minor"))
        return kept.get(AccountType.RECEIVABLE, 0), kept.get(AccountType.WALLET_PAID, 0)


def create_settled_invoices() -> Invoice:
    """Return a paid, partly credited invoice whose successor used the balance."""
    october = create_october_invoice_of(200, 105)
    process_payment(request_payment(october), now=NOW + SECOND)
    issue_note(october, {1: 150}, now=NOW + 2 * SECOND)
    create_november_invoice(october, 100)
    return october


def test_opening_balance_and_movements_add_up_to_the_ledger_balance() -> None:
    october = create_settled_invoices()
    found = read_account(october.tenant_id)
    assert [(entry.text, entry.owed, entry.kept) for entry in found.entries] == [
        ("Invoice 2026-10-0001", 305, 0),
        ("Payment of invoice 2026-10-0001", -305, 0),
        ("Credit note CN-2026-11-0001", 0, 150),
        ("Invoice 2026-11-0001", 100, 0),
        ("Invoice 2026-11-0001 paid from your balance", -100, -100),
    ]
    assert (found.closing_owed, found.closing_kept) == ledger_balances_of(october.tenant_id) == (0, 50)
    assert (found.entries[-1].owed_after, found.entries[-1].kept_after) == (0, 50)


def test_a_statement_is_the_same_before_and_after_sealing_the_ledger() -> None:
    october = create_settled_invoices()
    found = read_account(october.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp() + interval '1 hour'")
        (later,) = cursor.fetchone()
    assert ledger_seal.seal_ledger(now=later) > 0
    assert read_account(october.tenant_id) == found
    after = issue_note(october, {2: 5}, now=LATER + SECOND)
    assert read_account(october.tenant_id).entries[-1].text == f"Credit note {after}"


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(st.integers(50, 900), st.sampled_from(["pay", "leave", "credit", "pay and credit"])),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 30),
    st.integers(0, 30),
)
@pytest.mark.deep
def test_consecutive_statements_add_up_to_the_whole_account(
    months: list[tuple[int, str]], one: int, other: int
) -> None:
    tenant, project = create_customer()
    create_grant(tenant, 70)
    for n, (cents, then) in enumerate(months):
        month = 7 + n
        add_ended_lease(project, create_priced_offering(cents * EURO // 100), utc(f"2026-{month:02}-05 00:00:00"), HOUR)
        now = utc(f"2026-{month + 1:02}-01 00:05:00")
        lease_rating.rate_tenant_leases(tenant, now=now)
        invoice = close_month.close_period(tenant, f"2026-{month:02}", now=now)
        assert invoice is not None
        if "pay" in then and invoice.due:
            process_payment(request_payment(invoice, now=now), now=now + timedelta(days=1))
        if "credit" in then:
            issue_note(invoice, {1: cents // 2}, now=now + timedelta(days=2))
    whole = read_account(tenant.pk)
    assert (whole.opening_owed, whole.opening_kept) == (0, 0)
    assert (whole.closing_owed, whole.closing_kept) == ledger_balances_of(tenant.pk)
    first, second = sorted((one, other))
    borders = [BEGIN, utc("2026-07-20 00:00:00") + timedelta(days=4 * first),
               utc("2026-07-20 00:00:00") + timedelta(days=4 * second + 1), END]  # fmt: skip
    parts = [read_account(tenant.pk, *stretch) for stretch in pairwise(borders)]
    assert [entry for part in parts for entry in part.entries] == list(whole.entries)
    for before, after in pairwise(parts):
        assert (before.closing_owed, before.closing_kept) == (after.opening_owed, after.opening_kept)
    assert (parts[-1].closing_owed, parts[-1].closing_kept) == ledger_balances_of(tenant.pk)


def test_grants_reduce_the_amount_owed_but_are_not_balance_entries() -> None:
    tenant, project = create_customer()
    create_grant(tenant, 120)
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    close_month.close_period(tenant, "2026-10", now=NOW)
    found = read_account(tenant.pk)
    assert [(entry.text, entry.owed, entry.kept) for entry in found.entries] == [
        ("Invoice 2026-10-0001", 200, 0),
        ("Invoice 2026-10-0001 paid by credits", -120, 0),
    ]


def test_a_top_up_is_credited_to_the_balance_and_pays_the_next_invoice() -> None:
    tenant, project = create_customer()
    with tenant_scope(tenant.pk):
        put = topup_creation.open_topup(tenant, minor=1500, actor=MIRA, now=utc("2026-10-02 00:00:00"))
    topup_collection.TOPUPS.collect(put.pk, tenant.pk, now=utc("2026-10-02 00:00:05"))
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    close_month.close_period(tenant, "2026-10", now=NOW)
    found = read_account(tenant.pk)
    assert [(entry.text, entry.owed, entry.kept) for entry in found.entries] == [
        (f"Top-up {put.pk}", 0, 1500),
        ("Invoice 2026-10-0001", 200, 0),
        ("Invoice 2026-10-0001 paid from your balance", -200, -200),
    ]
    assert (found.closing_owed, found.closing_kept) == ledger_balances_of(tenant.pk) == (0, 1300)


def test_a_void_invoice_is_no_longer_owed() -> None:
    october = create_october_invoice_of()
    with tenant_scope(october.tenant_id):
        Invoice.objects.filter(pk=october.pk).update(status=InvoiceStatus.VOID)
        posting.reverse_invoices([october.pk], now=NOW + SECOND)
    assert [(entry.text, entry.owed) for entry in read_account(october.tenant_id).entries] == [
        ("Invoice 2026-10-0001", 305),
        ("Invoice 2026-10-0001 voided", -305),
    ]


def test_an_unknown_ledger_entry_is_named_by_its_kind() -> None:
    what = account_entries._EntryKey(NOW, "barter", "brt_1", "")
    assert account_entries._entry_text(what, "brt_1", kept=0) == ("Barter brt_1", "")
    assert (
        account_entries._entry_text(account_entries._EntryKey(NOW, "grant", "grn_1", ""), "grn_1", kept=5)[0]
        == "Grant grn_1"
    )


def test_the_statement_document_shows_balances_and_their_entries() -> None:
    october = create_settled_invoices()
    with tenant_scope(october.tenant_id):
        tenant = Tenant.objects.get(pk=october.tenant_id)
        early = read_account(tenant.pk, utc("2026-11-01 00:00:00"), NOW + SECOND)
        owing = on_paper.account_statement_document(tenant, early)
        kept = on_paper.account_statement_document(tenant, read_account(tenant.pk))
    assert (owing.title, owing.number) == ("Account statement", "1 November 2026")
    assert (owing.headline.amount, owing.headline.words) == ("€3.05", "due on 1 November 2026")
    assert owing.groups[0].rows == (("1 Nov 2026", "Invoice 2026-10-0001", "+€3.05", "—", "€3.05", "€0.00"),)
    assert (kept.headline.amount, kept.headline.more) == ("€0.50", "No amount is due.")
    assert "−€1.00" in document_words(kept)


@pytest.fixture
def kestrel() -> Iterator[TenantContext]:
    with clock.frozen_at(NOW + timedelta(days=3)):
        yield create_tenant("Kestrel")


def test_statement_page_csv_pdf_and_api_agree(kestrel: TenantContext) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    invoice = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert invoice is not None
    payer = Client()
    payer.force_login(kestrel.create_member(Role.BILLING))
    page = payer.get("/statement/").content.decode()
    assert "Invoice 2026-10-0001" in page
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    answer = api.send("GET", "account-statement").json()
    two = {"amount": "2.000000", "currency": "EUR"}
    assert (answer["opening"]["owed"]["amount"], answer["closing"]["owed"]) == ("0.000000", two)
    assert [(item["text"], item["owed"], item["owed_after"]) for item in answer["items"]] == [
        ("Invoice 2026-10-0001", two, two)
    ]
    rows = list(csv.DictReader(io.StringIO(payer.get("/statement/?format=csv").content.decode())))
    assert [(row["what"], row["owed"], row["owed_after"]) for row in rows] == [
        ("Before", "", "0.000000"),
        ("Invoice 2026-10-0001", "2.000000", "2.000000"),
    ]
    for paper in (
        payer.get("/statement/pdf/?from=2026-11-01&through=2026-11-02"),
        api.send("GET", "account-statement/pdf?from=2026-11-01&to=2026-11-03"),
    ):
        assert paper["Content-Type"] == "application/pdf"
        assert paper["Content-Disposition"] == ('attachment; filename="statement-2026-11-01-2026-11-02.pdf"')
    empty = payer.get("/statement/?from=2026-01-01&through=2026-01-31").content.decode()
    assert "No entries" in empty
    (only,) = list(
        csv.DictReader(
            io.StringIO(payer.get("/statement/?from=2026-11-02&through=2026-11-02&format=csv").content.decode())
        )
    )
    assert (only["what"], only["owed_after"]) == ("Before", "2.000000")


@pytest.mark.parametrize(
    "wanted",
    ["from=yesterday", "from=2026-11-03&through=2026-11-02", "through=2027-01-01", "from=1850-01-01"],
)
def test_invalid_dates_show_a_notice_and_the_current_year(kestrel: TenantContext, wanted: str) -> None:
    payer = Client()
    payer.force_login(kestrel.create_member(Role.BILLING))
    assert "This year is shown instead." in payer.get(f"/statement/?{wanted}").content.decode()


@pytest.mark.parametrize(
    "wanted", ["from=yesterday", "from=2026-11-03&to=2026-11-02", "from=1850-01-01", "from=2027-01-01", "x=1"]
)
def test_invalid_statement_dates_are_refused_over_the_api(kestrel: TenantContext, wanted: str) -> None:
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    assert api.send("GET", f"account-statement?{wanted}").status_code == 400
