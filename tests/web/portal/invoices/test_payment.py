"""Payment on the invoice page."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_collection, payment_creation
from billing.services.rating import lease_rating
from ports import payments
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.gateways.faults import inject_faults
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.using_gateway(SimulatedGateway()):
        yield


@pytest.fixture
def october(portal: PortalSession) -> Invoice:
    """The final invoice of an hour in October, seen on the first of November."""
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2)
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9000)
    portal.sim.run(3600)
    portal.sim.release_lease(lease)
    portal.sim.run(5)
    lease_rating.rate_all_leases(now=portal.sim.now)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=1, hour=3)
    with tenant_scope(portal.owner.tenant.pk):
        final = close_month.close_period(portal.owner.tenant, "2026-10", now=portal.sim.now)
    assert final is not None
    return final


def press(portal: PortalSession, invoice: Invoice) -> str:
    """Press the pay button, and return the text of the page."""
    answer = portal.post(f"/invoices/{invoice.pk}/pay/")
    assert (answer.status_code, answer["Location"]) == (302, f"/invoices/{invoice.pk}/")
    return page(portal, invoice)


def page(portal: PortalSession, invoice: Invoice) -> str:
    return portal.read(f"/invoices/{invoice.pk}/")


def work(portal: PortalSession) -> None:
    with tenant_scope(portal.owner.tenant.pk):
        waiting = Payment.objects.filter(status="pending").get()
    payment_collection.PAYMENTS.collect(waiting.pk, waiting.tenant_id, now=portal.sim.now)


def test_a_due_invoice_is_paid_with_the_pay_now_button(portal: PortalSession, october: Invoice) -> None:
    before = page(portal, october)
    assert "€1.00 due. It is collected automatically soon, or pay it now. Pay now" in before
    assert f"/invoices/{october.pk}/pay" in before
    waiting = portal.get(f"/invoices/{october.pk}/").content.decode()
    assert "every 2s" not in waiting
    assert "€1.00 being collected since 03:00. This takes a few seconds" in press(portal, october)
    assert "every 2s" in portal.get(f"/invoices/{october.pk}/").content.decode()
    work(portal)
    after = page(portal, october)
    assert "€1.00 paid, 03:00. Collected on request; the payment was simulated" in after
    assert "Paid manually: €1.00, sim_" in after
    assert "Pay now" not in after
    assert "Paid 1 Nov 2026" in portal.read("/invoices/")
    assert f"Invoice {october} is paid, €1.00" in portal.read("/")


def test_the_invoice_list_shows_the_total_amount_due(portal: PortalSession, october: Invoice) -> None:
    assert "€1.00 is due" in portal.read("/invoices/")
    press(portal, october)
    work(portal)
    assert "is due" not in portal.read("/invoices/")


def test_a_declined_payment_shows_its_reason_and_can_be_retried(portal: PortalSession, october: Invoice) -> None:
    inject_faults(portal.owner.tenant.pk, GatewayFault.DECLINED)
    payment_creation.open_due_payments(now=portal.sim.now)
    work(portal)
    shown = page(portal, october)
    assert "The payment of €1.00 was declined, 03:00." in shown
    assert "The payment card has insufficient funds. Next automatic retry: 2 Nov 03:00. Try again" in shown
    assert "Declined: The payment card has insufficient funds." in shown
    press(portal, october)
    work(portal)
    assert "€1.00 paid" in page(portal, october)


def test_an_unanswered_payment_shows_its_next_retry(portal: PortalSession, october: Invoice) -> None:
    inject_faults(portal.owner.tenant.pk, GatewayFault.LOST)
    press(portal, october)
    work(portal)
    shown = page(portal, october)
    assert "The payment service has not answered yet: the simulated gateway's answer was lost." in shown
    assert "Next retry 03:00:" in shown
    assert "Retries repeat the same payment: you are never charged twice." in shown


def test_an_unreachable_gateway_is_shown_with_attempts_and_next_retry(portal: PortalSession, october: Invoice) -> None:
    inject_faults(portal.owner.tenant.pk, *[GatewayFault.UNREACHABLE] * 3)
    press(portal, october)
    for _ in range(3):
        work(portal)
        with tenant_scope(portal.owner.tenant.pk):
            due = Payment.objects.get().due_at
        assert due is not None
        shown = page(portal, october)
        portal.sim.clock.at = due
    assert "has not answered yet, after 3 attempts: the simulated gateway cannot be reached." in shown
    assert f"Next retry {due:%H:%M:%S}" in shown
    assert "every 2s" in portal.get(f"/invoices/{october.pk}/").content.decode()


def test_a_stuck_payment_shows_what_happened_and_how_to_fix_it(portal: PortalSession, october: Invoice) -> None:
    inject_faults(portal.owner.tenant.pk, GatewayFault.REJECTED)
    press(portal, october)
    work(portal)
    shown = page(portal, october)
    assert "€1.00 not collected: manual action needed since 03:00." in shown
    assert "The simulated gateway does not accept our credentials. It is not retried automatically" in shown
    assert (
        "After fixing this, try again: it repeats the same payment, so you are never charged twice. Try again" in shown
    )
    assert "Manual action needed: The simulated gateway does not accept our credentials." in shown
    assert f"/invoices/{october.pk}/pay" in shown
    assert "every 2s" not in portal.get(f"/invoices/{october.pk}/").content.decode()
    other = page(portal.sign_in_as(Role.ADMIN), october)
    assert "Tenant owners and tenant-wide billing members can retry it." in other
    assert "Try again" not in other
    with payments.using_gateway(None):
        elsewhere = page(portal, october)
        assert "It was started with simulated, which is no longer configured: contact the operator." in elsewhere
        assert "Try again" not in elsewhere
        assert "Ask the operator to configure it again, then pay again." in press(portal, october)
    assert "€1.00 being collected" in press(portal, october)
    work(portal)
    assert "€1.00 paid" in page(portal, october)


def test_a_second_click_reports_the_payment_in_progress(portal: PortalSession, october: Invoice) -> None:
    press(portal, october)
    assert "is in progress. Wait until it is settled." in press(portal, october)
    with tenant_scope(portal.owner.tenant.pk):
        assert Payment.objects.count() == 1


def test_a_reader_of_invoices_sees_who_can_pay_them(portal: PortalSession, october: Invoice) -> None:
    admin = portal.sign_in_as(Role.ADMIN)
    shown = page(admin, october)
    assert "Tenant owners and tenant-wide billing members can pay it." in shown
    assert "Pay now" not in shown
    assert admin.post(f"/invoices/{october.pk}/pay/").status_code == 403


def test_a_member_of_one_project_sees_no_invoices_of_the_tenant(portal: PortalSession, october: Invoice) -> None:
    for role in (Role.OWNER, Role.BILLING, Role.ADMIN):
        other = portal.sign_in_as(role, portal.owner.create_project(f"other-{role}"))
        for address in ("/invoices/", f"/invoices/{october.pk}/", f"/invoices/{october.pk}/?line=1"):
            assert other.get(address).status_code == 403
        assert str(october) not in other.read("/")


def test_without_a_gateway_the_page_asks_for_a_bank_transfer(portal: PortalSession, october: Invoice) -> None:
    with payments.using_gateway(None):
        shown = page(portal, october)
        assert f"pay by bank transfer with the reference {october}" in shown
        assert "Pay now" not in shown
        assert "This installation does not collect payments" in press(portal, october)


def test_a_draft_cannot_be_paid(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9000)
    portal.sim.run(60)
    portal.sim.release_lease(lease)
    portal.sim.run(5)
    lease_rating.rate_all_leases(now=portal.sim.now)
    drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        draft = Invoice.objects.get()
    answer = portal.get(f"/invoices/{draft.pk}/").content.decode()
    assert 'id="payment"' not in answer
    assert "only final invoices can be paid" in press(portal, draft)


@pytest.mark.deep
def test_the_number_of_queries_is_the_same_after_many_attempts(portal: PortalSession, october: Invoice) -> None:
    inject_faults(portal.owner.tenant.pk, *[GatewayFault.DECLINED] * 5)
    counts = []
    for _ in range(5):
        press(portal, october)
        work(portal)
        with CaptureQueriesContext(connection) as spoken:
            assert portal.get(f"/invoices/{october.pk}/").status_code == 200
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts
