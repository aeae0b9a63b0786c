"""Overdue invoices: reminders, account status, ended leases, and recovery by payment."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, transaction
from django.test import Client

from billing.gateways.simulated import GatewayFault
from billing.models import AccountStatus, DunningStep, Invoice
from billing.services.funds.accounts import account_terms
from billing.services.invoicing import billing_details
from billing.services.invoicing.month_close import close_month
from billing.services.payments.dunning import dunning_plan, dunning_steps, overdue_status
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from ports import clock, mail
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Tenant
from tenants.services.actors import BILLING
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.payments.payable_invoices import (
    create_final_invoice,
    fail_next_charges,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.billing.tax.taxed_tenants import ATELIER, set_billing_details
from tests.simulation import TenantContext, create_tenant, offering, simulate
from tests.simulation import reload_lease as lease_now
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
DUE = utc("2026-11-15 00:05:00")  # two weeks after it became final
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.payable_invoices import captured_messages

    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


@pytest.fixture
def letters(django_capture_on_commit_callbacks: Any) -> Iterator[list[tuple[str, str]]]:
    sent: list[tuple[str, str]] = []
    with mail.captured_mail(lambda to, subject, text: sent.append((to, f"{subject}\n{text}"))):
        yield sent


def dunning_actions(invoice: Invoice) -> list[tuple[str, int]]:
    with tenant_scope(invoice.tenant_id):
        return list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("action", "minor"))


def account_status(tenant_id: str) -> str:
    with tenant_scope(tenant_id):
        return account_terms.terms_of(Tenant.objects.get(pk=tenant_id)).account_status


def create_unpaid_invoice() -> Invoice:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    return reload_invoice(invoice)


def test_dunning_steps_run_on_their_day_and_payment_restores_the_account() -> None:
    invoice = create_unpaid_invoice()
    assert invoice.due_at == DUE
    assert dunning_steps.run_dunning(now=DUE + 3 * DAY - timedelta(seconds=1)) == 0
    for days, action, worse in (
        (3, "remind", "grace"),
        (10, "remind", "grace"),
        (17, "suspend", "suspended"),
        (30, "end", "suspended"),
    ):
        assert dunning_steps.run_dunning(now=DUE + days * DAY) == 1
        assert dunning_steps.run_dunning(now=DUE + days * DAY) == 0
        assert dunning_actions(invoice)[-1] == (action, 200)
        assert account_status(invoice.tenant_id) == worse
    assert dunning_steps.run_dunning(now=DUE + 300 * DAY) == 0
    assert overdue_status.clear_overdue_statuses(now=DUE + 31 * DAY) == 0
    fail_next_charges(invoice, GatewayFault.NONE)
    process_payment(request_payment(invoice))
    assert overdue_status.clear_overdue_statuses(now=DUE + 31 * DAY) == 1
    assert account_status(invoice.tenant_id) == "good"
    assert overdue_status.clear_overdue_statuses(now=DUE + 31 * DAY) == 0


def test_a_late_reminder_keeps_the_interval_to_the_next_step() -> None:
    invoice = create_unpaid_invoice()
    late = DUE + 40 * DAY
    assert [dunning_steps.run_dunning(now=late + n * DAY) for n in (0, 1, 6, 7)] == [1, 0, 0, 1]
    assert dunning_actions(invoice) == [("remind", 200)] * 2


def test_paid_credited_and_pending_invoices_are_not_dunned() -> None:
    paid, credited, under_way = create_final_invoice(), create_unpaid_invoice(), create_final_invoice()
    process_payment(request_payment(paid))
    issue_note(credited)
    fail_next_charges(under_way, GatewayFault.LOST)
    process_payment(request_payment(under_way))
    assert dunning_steps.run_dunning(now=DUE + 3 * DAY) == 0


def test_dunning_keeps_an_account_status_set_by_an_operator() -> None:
    from tests.billing.histories import OPERATOR

    invoice = create_unpaid_invoice()
    with tenant_scope(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
    suspended = {"payment": "invoice", "account_status": AccountStatus.SUSPENDED, "why": "abuse"}
    account_terms.set_account_terms(tenant, **suspended, actor=OPERATOR, now=DUE)  # type: ignore[arg-type]
    dunning_steps.run_dunning(now=DUE + 3 * DAY)
    fail_next_charges(invoice, GatewayFault.NONE)
    process_payment(request_payment(invoice))
    assert overdue_status.clear_overdue_statuses(now=DUE + 4 * DAY) == 0
    assert account_status(invoice.tenant_id) == "suspended"


def test_dunning_emails_go_to_payers_and_the_billing_address_after_commit(
    letters: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    invoice = create_unpaid_invoice()
    with tenant_scope(invoice.tenant_id):
        set_billing_details(Tenant.objects.get(pk=invoice.tenant_id), ATELIER)
    with django_capture_on_commit_callbacks(execute=True):
        dunning_steps.run_dunning(now=DUE + 3 * DAY)
    assert letters == []  # nobody owns it and no address was given
    owner = create_tenant("Kestrel")
    payer = owner.create_member(Role.BILLING)
    owner.create_member(Role.VIEWER)
    with tenant_scope(owner.tenant.pk):
        billing_details.set_billing_details(
            owner.tenant, party=replace(ATELIER, email="books@kestrel.example"), actor=BILLING, now=DUE
        )
    add_ended_lease(owner.project, create_priced_offering(2 * 10**9), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-01 00:05:00"))
    mine = close_month.close_period(owner.tenant, "2026-10", now=utc("2026-11-01 00:05:00"))
    assert mine is not None
    with django_capture_on_commit_callbacks(execute=True):
        dunning_steps.run_dunning(now=DUE + 3 * DAY)
    addresses = [to for to, _ in letters]
    assert {payer.email, "books@kestrel.example"} <= set(addresses)
    assert len(addresses) == len(set(addresses)) <= 3  # and whoever owns it
    for _, text in letters:
        assert text.startswith(f"Invoice {mine} is overdue\n€2.00 of invoice {mine} for October 2026")
        assert f"/invoices/{mine.pk}/" in text


def test_the_last_dunning_step_ends_running_leases_as_unpaid() -> None:
    with simulate() as sim:
        from tests.billing.histories import EURO, LONG_AGO, set_price
        from tests.simulation import create_fleet

        create_fleet()
        set_price(offering(), EURO, since=LONG_AGO)
        kestrel: TenantContext = create_tenant("Kestrel")
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        with tenant_scope(kestrel.tenant.pk):
            dunning_steps._end_all_leases(kestrel.tenant, sim.now)
            dunning_steps._end_all_leases(kestrel.tenant, sim.now)
        found = lease_now(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASING, EndReason.UNPAID)


def test_a_database_error_for_one_invoice_does_not_block_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = create_unpaid_invoice(), create_unpaid_invoice()
    note = dunning_steps._record_stage

    def refuse(invoice: Invoice, *rest: Any) -> None:
        if invoice.pk == first.pk:
            raise DatabaseError("no")
        note(invoice, *rest)

    monkeypatch.setattr(dunning_steps, "_record_stage", refuse)
    assert dunning_steps.run_dunning(now=DUE + 3 * DAY) == 1
    assert (dunning_actions(first), dunning_actions(second)) == ([], [("remind", 200)])


def test_a_dunning_step_taken_by_another_worker_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = create_unpaid_invoice()
    look, looks = dunning_steps._due_stage, []

    def slow(*requests: Any) -> Any:
        looks.append(requests)
        return look(*requests) if len(looks) == 1 else None  # somebody else did it meanwhile

    monkeypatch.setattr(dunning_steps, "_due_stage", slow)
    assert dunning_steps.run_dunning(now=DUE + 3 * DAY) == 0
    assert dunning_actions(invoice) == []


def test_no_dunning_without_configured_steps_and_invalid_steps_are_refused(settings: Any) -> None:
    create_unpaid_invoice()
    settings.DUNNING_STEPS = ()
    assert dunning_steps.run_dunning(now=DUE + 300 * DAY) == 0
    settings.DUNNING_STEPS = ("soon",)
    with pytest.raises(ImproperlyConfigured, match="GPUBROKER_DUNNING_STEPS: 'soon' is not a step"):
        dunning_plan.dunning_stages()


def test_dunning_steps_are_audited_and_append_only() -> None:
    invoice = create_unpaid_invoice()
    dunning_steps.run_dunning(now=DUE + 3 * DAY)
    with tenant_scope(invoice.tenant_id):
        event = AuditEvent.objects.get(action="invoice.remind")
        assert (event.detail["step"], event.detail["due"]) == ("remind", "€2.00")
        with pytest.raises(DatabaseError, match=r"append-only|permission denied"), transaction.atomic():
            DunningStep.objects.update(minor=1)


def test_invoice_page_and_api_show_the_reminders_sent(settings: object) -> None:
    owner = create_tenant("Kestrel")
    add_ended_lease(owner.project, create_priced_offering(2 * 10**9), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-01 00:05:00"))
    invoice = close_month.close_period(owner.tenant, "2026-10", now=utc("2026-11-01 00:05:00"))
    assert invoice is not None
    now = DUE + 3 * DAY
    dunning_steps.run_dunning(now=now)
    client = Client()
    client.force_login(owner.create_member(Role.BILLING))
    with clock.frozen_at(now):
        page = client.get(f"/invoices/{invoice.pk}/").content.decode()
        assert "Overdue, €2.00: reminder sent" in page
        assert "overdue" in client.get("/invoices/").content.decode()
        api: Any = ApiClient(owner.token(Role.BILLING, now=now))
        found = api.send("GET", f"invoices/{invoice.pk}").json()["reminders"]
    assert [(each["action"], each["due"]["amount"]) for each in found] == [("remind", "2.000000")]
