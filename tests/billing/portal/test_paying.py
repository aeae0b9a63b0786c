"""The invoice's page says how it stands with its money, and lets those pay it who may."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.gateways.simulated import Ill, SimulatedGateway, suffer
from billing.models import Invoice, Payment
from billing.services import closing, drafts, rating
from billing.services.payments import collecting, opening
from ports import payments
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk
from tests.world import offering

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.through(SimulatedGateway()):
        yield


@pytest.fixture
def october(desk: Desk) -> Invoice:
    """The final invoice of an hour in October, seen on the first of November."""
    desk.life.clock.at = desk.life.now.replace(month=10, day=2)
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9000)
    desk.life.run(3600)
    desk.life.release(lease)
    desk.life.run(5)
    rating.rate(now=desk.life.now)
    desk.life.clock.at = desk.life.now.replace(month=11, day=1, hour=3)
    with as_tenant(desk.owner.tenant.pk):
        final = closing.close_period(desk.owner.tenant, "2026-10", now=desk.life.now)
    assert final is not None
    return final


def press(desk: Desk, invoice: Invoice) -> str:
    """Press the button, and return what one reads then."""
    answer = desk.post(f"/invoices/{invoice.pk}/pay/")
    assert (answer.status_code, answer["Location"]) == (302, f"/invoices/{invoice.pk}/")
    return page(desk, invoice)


def page(desk: Desk, invoice: Invoice) -> str:
    return desk.read(f"/invoices/{invoice.pk}/")


def work(desk: Desk) -> None:
    with as_tenant(desk.owner.tenant.pk):
        waiting = Payment.objects.filter(status="pending").get()
    collecting.collect(waiting.pk, waiting.tenant_id, now=desk.life.now)


def test_what_is_due_is_paid_with_one_button(desk: Desk, october: Invoice) -> None:
    before = page(desk, october)
    assert "€1.00 due. It is collected automatically, soon, or now. Pay now" in before
    assert f"/invoices/{october.pk}/pay" in before
    waiting = desk.get(f"/invoices/{october.pk}/").content.decode()
    assert "every 2s" not in waiting
    assert "€1.00 being collected, since 03:00. This takes some seconds" in press(desk, october)
    assert "every 2s" in desk.get(f"/invoices/{october.pk}/").content.decode()
    work(desk)
    after = page(desk, october)
    assert "€1.00 paid, 03:00. Collected on request; the gateway is only simulated" in after
    assert "Paid by hand: €1.00, sim_" in after
    assert "Pay now" not in after
    assert "Paid 1 Nov 2026" in desk.read("/invoices/")
    assert f"Invoice {october} is paid, €1.00" in desk.read("/")


def test_the_list_says_what_is_owed_in_all(desk: Desk, october: Invoice) -> None:
    assert "€1.00 is due by the ledger." in desk.read("/invoices/")
    press(desk, october)
    work(desk)
    assert "is due" not in desk.read("/invoices/")


def test_a_declined_payment_says_why_and_may_be_tried_again(desk: Desk, october: Invoice) -> None:
    suffer(desk.owner.tenant.pk, Ill.DECLINED)
    opening.open_due(now=desk.life.now)
    work(desk)
    told = page(desk, october)
    assert "The payment of €1.00 was declined, 03:00." in told
    assert "The card has not enough money on it. Tried again automatically: 2 Nov 03:00. Try again" in told
    assert "Declined: The card has not enough money on it." in told
    press(desk, october)
    work(desk)
    assert "€1.00 paid" in page(desk, october)


def test_an_answer_that_does_not_come_is_told_without_alarm(desk: Desk, october: Invoice) -> None:
    suffer(desk.owner.tenant.pk, Ill.LOST)
    press(desk, october)
    work(desk)
    told = page(desk, october)
    assert "The payment service has not answered yet: the simulated gateway's answer was lost." in told
    assert "It is asked next 03:00:" in told
    assert "It is the same payment, however often: nothing is taken twice." in told


def test_a_service_that_stays_silent_is_told_with_how_often_it_was_asked(
    desk: Desk, october: Invoice
) -> None:
    suffer(desk.owner.tenant.pk, *[Ill.UNREACHABLE] * 3)
    press(desk, october)
    for _ in range(3):
        work(desk)
        with as_tenant(desk.owner.tenant.pk):
            due = Payment.objects.get().due_at
        assert due is not None
        told = page(desk, october)
        desk.life.clock.at = due
    assert "has not answered yet, after 3 attempts: the simulated gateway cannot be reached." in told
    assert f"It is asked next {due:%H:%M:%S}" in told
    assert "every 2s" in desk.get(f"/invoices/{october.pk}/").content.decode()


def test_what_waits_for_a_person_says_what_happened_why_and_what_to_do(desk: Desk, october: Invoice) -> None:
    suffer(desk.owner.tenant.pk, Ill.REJECTED)
    press(desk, october)
    work(desk)
    told = page(desk, october)
    assert "€1.00 not collected: the payment waits for a person, since 03:00." in told
    assert (
        "The simulated gateway does not accept our credentials. It is not asked for again by itself" in told
    )
    assert (
        "Once that is mended, try again: it is the same payment, so nothing is taken twice. Try again" in told
    )
    assert "Waits for a person: The simulated gateway does not accept our credentials." in told
    assert f"/invoices/{october.pk}/pay" in told
    assert "every 2s" not in desk.get(f"/invoices/{october.pk}/").content.decode()
    other = page(desk.signed_in_as(Role.ADMIN), october)
    assert (
        "Owners of the tenant and those with the role billing in all of it can have it tried again." in other
    )
    assert "Try again" not in other
    with payments.through(None):
        elsewhere = page(desk, october)
        assert (
            "It was begun through simulated, which is not set here any longer: ask the operator." in elsewhere
        )
        assert "Try again" not in elsewhere
        assert "Ask the operator to set it again; then pay once more." in press(desk, october)
    assert "€1.00 being collected" in press(desk, october)
    work(desk)
    assert "€1.00 paid" in page(desk, october)


def test_a_second_press_says_that_it_is_under_way(desk: Desk, october: Invoice) -> None:
    press(desk, october)
    assert "is under way. Wait until it is settled." in press(desk, october)
    with as_tenant(desk.owner.tenant.pk):
        assert Payment.objects.count() == 1


def test_whoever_only_sees_invoices_is_told_who_pays_them(desk: Desk, october: Invoice) -> None:
    admin = desk.signed_in_as(Role.ADMIN)
    told = page(admin, october)
    assert "Owners of the tenant and those with the role billing in all of it can pay it." in told
    assert "Pay now" not in told
    assert admin.post(f"/invoices/{october.pk}/pay/").status_code == 403


def test_who_has_a_role_in_one_project_sees_no_invoice_of_the_tenant(desk: Desk, october: Invoice) -> None:
    for role in (Role.OWNER, Role.BILLING, Role.ADMIN):
        other = desk.signed_in_as(role, desk.owner.child(f"other-{role}"))
        for address in ("/invoices/", f"/invoices/{october.pk}/", f"/invoices/{october.pk}/?line=1"):
            assert other.get(address).status_code == 403
        assert str(october) not in other.read("/")


def test_where_nobody_collects_one_pays_by_transfer(desk: Desk, october: Invoice) -> None:
    with payments.through(None):
        told = page(desk, october)
        assert f"pay by transfer, and write {october} and {october.pk} on it" in told
        assert "Pay now" not in told
        assert "This installation collects no payments" in press(desk, october)


def test_a_draft_has_nothing_to_pay(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9000)
    desk.life.run(60)
    desk.life.release(lease)
    desk.life.run(5)
    rating.rate(now=desk.life.now)
    drafts.refresh(desk.owner.tenant, now=desk.life.now)
    with as_tenant(desk.owner.tenant.pk):
        draft = Invoice.objects.get()
    answer = desk.get(f"/invoices/{draft.pk}/").content.decode()
    assert 'id="payment"' not in answer
    assert "only a final one can be paid" in press(desk, draft)


def test_the_page_asks_as_often_after_many_attempts_as_after_one(desk: Desk, october: Invoice) -> None:
    suffer(desk.owner.tenant.pk, *[Ill.DECLINED] * 5)
    counts = []
    for _ in range(5):
        press(desk, october)
        work(desk)
        with CaptureQueriesContext(connection) as spoken:
            assert desk.get(f"/invoices/{october.pk}/").status_code == 200
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts
