"""Operators' pages and API of accounting."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from billing.models import JournalSettings
from billing.services.periods import billing_periods
from billing.services.reports.accounting import journal_accounts
from ports import clock
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import utc
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, create_october_invoice, set_tax_rate

pytestmark = pytest.mark.django_db
DECEMBER = utc("2026-12-02 10:00:00")


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> Iterator[None]:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    with clock.frozen_at(DECEMBER):
        yield


def test_the_page_shows_a_month_and_one_tenant_of_it(operator: Client) -> None:
    invoice = create_october_invoice(1000, party=ATELIER)
    issue_note(invoice, {1: 100})
    other = create_october_invoice(5000)
    page = operator.get("/ops/accounting/?month=2026-10").content.decode()
    assert "Recapitulative statement" in page
    assert "FR40303265045" in page
    assert "€9.50" in page  # domestic VAT
    page = operator.get("/ops/accounting/").content.decode()  # November is over: both are open
    assert str(invoice) in page
    assert str(other) in page
    alone = operator.get(f"/ops/accounting/?tenant={invoice.tenant_id}").content.decode()
    assert str(invoice) in alone
    assert str(other) not in alone


def test_months_that_have_not_begun_are_not_offered(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    with tenant_scope(invoice.tenant_id):
        billing_periods.ensure_periods(invoice.tenant, since=DECEMBER, until=utc("2027-02-02 10:00:00"))
    for address in ("/ops/accounting/", "/ops/month-close/"):
        page = operator.get(address).content.decode()
        assert "month=2026-12" in page, address
        assert "month=2027-01" not in page, address


def test_files_of_page_and_api_are_the_same(operator: Client) -> None:
    create_october_invoice(1000)
    for kind in ("journal", "datev", "vat", "open-invoices", "unbilled", "deferred", "focus"):
        seen = operator.get(f"/ops/accounting/2026-11/{kind}/")
        assert seen.status_code == 200
        same = operator.get(f"/api/v1/ops/accounting/2026-11/exports/{kind}")
        assert same.content == seen.content
        assert same["Content-Disposition"] == seen["Content-Disposition"]
    assert operator.get("/ops/accounting/2026-11/datev/")["Content-Disposition"].endswith(
        'filename="EXTF_Buchungsstapel_2026-11.csv"'
    )
    for odd in ("2026-13/journal", "2026-11/other"):
        month, kind = odd.split("/")
        assert operator.get(f"/ops/accounting/{odd}/").status_code == 404
        assert operator.get(f"/api/v1/ops/accounting/{month}/exports/{kind}").status_code == 404
    with staff_scope():
        assert AuditEvent.objects.filter(action="ops.accounting.export").exists()


def test_the_api_returns_a_month(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    body = operator.get("/api/v1/ops/accounting/2026-11").json()
    (open_,) = body["open_invoices"]
    assert (open_["invoice"], open_["number"], open_["open"]["amount"]) == (invoice.pk, str(invoice), "11.900000")
    assert body["vat"] == []
    (vat,) = operator.get("/api/v1/ops/accounting/2026-10").json()["vat"]
    assert (vat["vat_return"], vat["country"], vat["percent"], vat["tax"]["amount"]) == (
        "Domestic return",
        "DE",
        "19",
        "1.900000",
    )


def settings_form(**changes: str) -> dict[str, str]:
    found = JournalSettings()
    values = {name: str(getattr(found, name)) for name in journal_accounts.SETTING_NAMES}
    for key, number in journal_accounts.account_list(found):
        values |= {f"number-{key}": number.number, f"key-{key}": number.key}
    return {"seen": "0"} | values | changes


def test_the_form_changes_settings_and_keeps_what_was_typed(operator: Client) -> None:
    address = "/ops/accounting/settings/"
    assert 'value="1410"' in operator.get(address).content.decode()
    answer = operator.post(address, settings_form(advisor="29098", **{"number-cash": "1365"}))
    assert (answer.status_code, answer["Location"]) == (302, address)
    found = journal_accounts.journal_settings()
    assert (found.advisor, journal_accounts.account_numbers(found)["cash"].number) == (29098, "1365")
    stale = operator.post(address, settings_form(advisor="1234"))
    assert stale.status_code == 412
    assert 'value="1234"' in stale.content.decode()
    wrong = operator.post(address, settings_form(seen="1", advisor="x"))
    assert (wrong.status_code, "not a whole number" in wrong.content.decode()) == (400, True)


def test_the_api_changes_settings_by_etag(operator: Client) -> None:
    address = "/api/v1/ops/journal-settings"
    seen = operator.get(address)
    assert (seen.json()["chart"], seen["ETag"]) == ("skr03", '"0"')
    body = {"chart": "skr04", "accounts": [{"key": "cash", "number": "1465"}]}

    def patch(**headers: str) -> Any:
        return operator.patch(address, body, content_type="application/json", headers=headers)

    assert patch().status_code == 428
    changed = patch(**{"If-Match": '"0"'})
    assert (changed.status_code, changed["ETag"]) == (200, '"1"')
    numbers = {each["key"]: each["number"] for each in changed.json()["accounts"]}
    assert (numbers["cash"], numbers["receivable"]) == ("1465", "1210")
    assert patch(**{"If-Match": '"0"'}).status_code == 412


def test_page_and_api_have_the_journal_of_any_days(operator: Client) -> None:
    create_october_invoice(1000)
    days = "?first=2026-10-31&last=2026-11-30"
    seen = operator.get(f"/ops/accounting/2026-11/journal/{days}")
    assert seen["Content-Disposition"] == 'attachment; filename="journal-2026-10-31-2026-11-30.csv"'
    assert operator.get(f"/api/v1/ops/accounting/2026-11/exports/journal{days}").content == seen.content
    refused = operator.get("/api/v1/ops/accounting/2026-11/exports/journal?first=October&last=2026-11-30")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "first")


def test_operators_number_debtors_by_page_and_set_one_by_api(operator: Client) -> None:
    invoice = create_october_invoice(1000)
    page = operator.post("/ops/accounting/settings/", {"first_debtor": "10000"}, follow=True).content.decode()
    assert "1 tenant got a debtor account." in page
    assert invoice.tenant_id in page
    seen = operator.get("/api/v1/ops/journal-settings")
    assert seen.json()["debtors"][0]["number"] == "10000"
    changed = operator.patch(
        "/api/v1/ops/journal-settings",
        {"debtors": [{"tenant": invoice.tenant_id, "number": "20000"}]},
        content_type="application/json",
        headers={"If-Match": seen["ETag"]},
    )
    assert (changed.status_code, changed.json()["debtors"][0]["number"]) == (200, "20000")
    assert operator.post("/ops/accounting/settings/", {"first_debtor": "9"}).status_code == 400
