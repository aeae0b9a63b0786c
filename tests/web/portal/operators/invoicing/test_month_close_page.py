"""The month close page: open points and operators' actions."""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_checklist, close_month
from billing.services.invoicing.month_close.close_checklist import CheckState, CloseCheck
from billing.services.ledger.ledger_balances import TrialBalance, TrialBalanceLine
from billing.services.rating import lease_rating
from ports import clock, payments
from tenants.models import Tenant, User
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    HOUR,
    add_ended_lease,
    add_running_lease,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)
from tests.billing.payments.payable_invoices import (
    NOW,
    captured_messages,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    request_payment,
)
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate
from tests.web.keyed_requests import patch_json

pytestmark = pytest.mark.django_db
OCTOBER = "2026-10"


@pytest.fixture(autouse=True)
def _standing() -> Iterator[None]:
    with clock.frozen_at(NOW), payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def items(label: str = OCTOBER, *, now: Any = NOW) -> dict[str, CloseCheck]:
    with staff_scope():
        return {item.name: item for item in close_checklist.build_checklist(label, now=now).checks}


def used() -> Tenant:
    """Let a tenant use an hour of October at two euros, charged and drafted."""
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(2 * 10**9), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    return tenant


def words(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def test_an_ended_month_is_closed_invoiced_and_collected_step_by_step() -> None:
    tenant = used()
    found = items()
    assert found["The month is over"].state is CheckState.DONE
    assert found["Every month is closed"] == CloseCheck(
        "Every month is closed",
        found["Every month is closed"].description,
        CheckState.PENDING,
        "1 finished month is still open",
        (tenant.name,),
        "Months close every ten minutes. Close finished months now to see the result at once.",
    )
    assert found["Every draft is issued"].found == "0 invoices, 1 draft left"
    close_month.close_due_months(now=NOW)
    found = items()
    assert found["Every month is closed"].state is CheckState.DONE
    assert found["Every draft is issued"].found == "1 invoice of €2.00, 0 drafts left"
    assert found["Everything is collected"].found == "€2.00 is still due on 1 invoice"
    with tenant_scope(tenant.pk):
        invoice = Invoice.objects.get()
    process_payment(request_payment(invoice))
    assert items()["Everything is collected"].found == "nothing is due"
    with staff_scope():
        whole = close_checklist.build_checklist(OCTOBER, now=NOW)
    assert whole.done_count == len(whole.checks)


def test_before_its_end_a_month_is_pending_and_not_closed() -> None:
    used()
    found = items(now=utc("2026-10-31 23:00:00"))
    assert found["The month is over"].state is CheckState.PENDING
    assert "0 of 1 months have ended; the last ends 01 Nov 00:00 UTC" in found["The month is over"].found
    assert found["Every month is closed"].found == "0 finished months are still open"
    assert found["Every month is closed"].state is CheckState.PENDING


def test_a_lease_not_observed_since_the_month_end_is_a_late_meter() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-10-05 00:00:00"), HOUR)
    lease = add_running_lease(
        project, create_priced_offering(), utc("2026-10-31 20:00:00"), seen_at=utc("2026-10-31 21:00:00")
    )
    lease_rating.rate_all_leases(now=NOW)
    found = items()["No usage is pending"]
    assert (found.state, found.examples) == (CheckState.PENDING, (f"{lease.pk} of {tenant.name}",))


def test_usage_without_a_price_is_listed_until_a_price_is_set() -> None:
    _, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    offering = create_priced_offering(None)
    add_ended_lease(project, offering, utc("2026-10-06 00:00:00"), HOUR)
    found = items()["Everything has a price"]
    assert (found.state, found.found) == (CheckState.ACTION_REQUIRED, "1 usage period is without a price")
    assert offering.label in found.examples[0]
    set_price(offering, 10**9, since=utc("2026-10-01 00:00:00"))
    assert items()["Everything has a price"].state is CheckState.DONE


def test_usage_without_a_tax_rate_is_listed(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    tenant = used()
    found = items()["Every tax has a rate"]
    assert (found.state, found.examples) == (CheckState.ACTION_REQUIRED, (tenant.name,))
    set_tax_rate("DE", 19)
    drafts.refresh_drafts(tenant, now=NOW)
    assert items()["Every tax has a rate"].state is CheckState.DONE


def test_a_payment_that_needs_manual_action_is_listed() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.REJECTED)
    process_payment(request_payment(invoice))
    found = items()["Everything is collected"]
    assert (found.state, found.examples) == (CheckState.ACTION_REQUIRED, (str(invoice),))


def test_a_currency_whose_ledger_does_not_balance_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    used()
    odd = (TrialBalance("EUR", (TrialBalanceLine("EUR", "cash", 1, 5, 0),)),)
    monkeypatch.setattr(close_checklist.ledger_balances, "stored_trial_balance", lambda: odd)
    found = items()["The ledger balances"]
    assert (found.state, found.found, found.examples) == (
        CheckState.ACTION_REQUIRED,
        "1 currency is not balanced",
        ("EUR",),
    )


def test_the_page_closes_ended_months_and_reports_a_missing_tax_rate(operator: Client, settings: Any) -> None:
    assert "No usage yet, so there is no month to close." in words(operator.get("/ops/month-close/"))
    used()
    shown = words(operator.get("/ops/month-close/?month=odd"))
    assert "Month close 2026-10" in shown
    assert "1 finished month is still open" in shown
    assert operator.post("/ops/month-close/?month=2026-10").status_code == 302
    shown = words(operator.get("/ops/month-close/?month=2026-10"))
    assert "1 month closed." in shown
    assert "1 invoice of €2.00, 0 drafts left" in shown
    operator.post("/ops/month-close/")
    assert "No month could be closed now." in words(operator.get("/ops/month-close/"))
    settings.SUPPLIER = LUMEN.as_dict()
    used()
    _, project = create_customer()
    add_ended_lease(project, create_priced_offering(None), utc("2026-10-06 00:00:00"), HOUR)
    drafts_of_the_gap = lease_rating.rate_all_leases(now=NOW)
    assert drafts_of_the_gap.gaps
    operator.post("/ops/month-close/")
    shown = words(operator.get("/ops/month-close/"))
    assert "There is no standard tax rate on the last day of 2026-10" in shown


def test_a_month_is_closed_over_the_api(operator: Client) -> None:
    assert operator.get("/api/v1/ops/month-closes/2026-10").status_code == 404
    used()
    body = operator.get("/api/v1/ops/month-closes/2026-10").json()
    assert [item["state"] for item in body["items"]].count("pending") == 2
    body = patch_json(operator, "/api/v1/ops/month-closes/2026-10", {"state": "closed"}).json()
    assert [item["name"] for item in body["items"] if item["state"] != "done"] == ["Everything is collected"]
