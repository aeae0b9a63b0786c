"""Nightly reconciliation with Stripe."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing import tasks
from billing.domain.stripe_events import parse_event
from billing.gateways.stripe import lookups
from billing.models import (
    Invoice,
    PaymentDispute,
    PaymentRefund,
    ReconciliationPhase,
    StripeCharge,
    StripeDifference,
    StripeEvent,
    StripeReconciliationDay,
)
from billing.services.payments import payment_collection
from billing.services.payments.stripe import (
    book_differences,
    card_setup,
    payment_cards,
    reconciliation,
    reconciliation_schedule,
    webhook_events,
    webhook_inbox,
)
from billing.services.reports import stripe_status
from ports import clock, outbox, payments
from tenants.models import AuditEvent, User
from tenants.services.actors import BILLING
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.payments.payable_invoices import (
    NOW,
    create_final_invoice,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.billing.stripe.stripe_customers import create_invoice_with_card, fail_calls, stripe_invoices
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import create_card_holder

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def reconcile_night(fake: FakeStripe, now: Any) -> list[StripeDifference]:
    """Reconcile every due day, process what was found, and return the differences."""
    fake.now = now
    reconciliation_schedule.schedule_days(now=now)
    for day in reconciliation_schedule.due_days(now=now):
        reconciliation.reconcile_day(day, now=now)
    for event_id in webhook_inbox.due_events(now=now):
        webhook_events.process_event(event_id, now=now)
    for _, *hint in payment_cards.due_card_forms(now=now):
        card_setup.process_card_form(*hint, now=now)
    for _, *hint in payment_collection.PAYMENTS.due(now=now):
        payment_collection.PAYMENTS.collect(*hint, now=now)
    return list(StripeDifference.objects.order_by("pk"))


@pytest.fixture(autouse=True)
def _today(fake: FakeStripe) -> None:
    fake.now = NOW


@pytest.mark.deep
def test_reconciliation_recovers_everything_lost_in_a_day_of_outage(fake: FakeStripe) -> None:
    """No webhook comes for a day, and Stripe is down for half."""
    slow = [create_invoice_with_card(fake, how="silent") for _ in range(3)]
    fast = [create_invoice_with_card(fake) for _ in range(3)]
    disputed = create_invoice_with_card(fake)
    card = create_final_invoice()
    for each in [*slow, *fast[:1], disputed]:
        process_payment(request_payment(each))
    with tenant_scope(card.tenant_id):
        form = payment_cards.request_card_form(card.tenant, actor=BILLING, now=NOW)
    card_setup.process_card_form(form.pk, form.tenant_id, now=NOW)
    with tenant_scope(card.tenant_id):
        form.refresh_from_db()
    kept = fake.things
    for each in stripe_invoices(fake):
        things.bank_pays(kept, each)
    things.disputed(kept, stripe_invoices(fake)[-1]["id"])
    things.fill_in(kept, form.session_id)
    fake.down = True
    for each in fast[1:]:
        process_payment(request_payment(each, now=NOW + HOUR), now=NOW + HOUR)
    assert reconcile_night(fake, NOW + 12 * HOUR) == []
    assert "did not respond" in StripeReconciliationDay.objects.exclude(last_error="")[0].last_error
    fake.down = False
    assert {each.kind for each in reconcile_night(fake, NOW + DAY)} == {"paid_there_open_here"}
    assert {reload_invoice(each).status for each in [*slow, *fast, disputed]} == {"paid"}
    assert reconcile_night(fake, NOW + 2 * DAY) == []
    assert set(StripeEvent.objects.values_list("found", "state")) == {(True, "done")}
    with tenant_scope(disputed.tenant_id):
        assert PaymentDispute.objects.get().status == "needs_response"
    with tenant_scope(card.tenant_id):
        assert payment_cards.find_saved_card(card.tenant) is not None


def test_reconciliation_settles_a_pending_payment_before_its_next_retry(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="silent")
    payment = process_payment(request_payment(invoice))
    things.bank_pays(fake.things, stripe_invoices(fake)[0])
    soon = NOW + timedelta(minutes=15)
    assert payment.due_at is not None
    assert payment.due_at > soon
    assert [each.kind for each in reconcile_night(fake, soon)] == ["paid_there_open_here"]
    assert reload_invoice(invoice).status == "paid"


def test_paid_and_declined_invoices_reconcile_without_difference(fake: FakeStripe) -> None:
    for _ in range(3):
        process_payment(request_payment(create_invoice_with_card(fake)))
    refused = create_invoice_with_card(fake, how="declined")
    process_payment(request_payment(refused))
    assert reconcile_night(fake, NOW + DAY) == []
    day = StripeReconciliationDay.objects.get(day=NOW.date())
    assert (day.charges, day.invoices, day.differences, day.due_at) == (4, 4, 0, None)
    assert day.checked_at == NOW + DAY


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"status": "void", "amount_paid": 0}, "paid_here_not_there"),
        ({"amount_paid": 150}, "other_amount"),
        ({"metadata": {"payment": "pay_gone", "tenant": "x"}}, "unknown_here"),
    ],
)
@pytest.mark.deep
def test_a_difference_is_stored_until_it_is_resolved(fake: FakeStripe, change: dict[str, Any], kind: str) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    (sent,) = stripe_invoices(fake)
    before = dict(sent)
    sent.update(change)
    first = reconcile_night(fake, NOW + DAY)
    assert kind in [each.kind for each in first]
    again = reconcile_night(fake, NOW + 2 * DAY)
    assert [(each.pk, each.found_at) for each in again] == [(each.pk, NOW + DAY) for each in first]
    sent.update(before)
    assert reconcile_night(fake, NOW + 3 * DAY) == []


def test_an_invoice_created_at_stripe_two_days_later_is_reconciled(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls("invoices", "unreachable")
    payment = process_payment(request_payment(invoice))
    fake.now = NOW + 2 * DAY
    process_payment(payment, now=NOW + 2 * DAY)
    assert reconcile_night(fake, NOW + 3 * DAY) == []


def test_a_refund_made_at_stripe_is_reported_as_missing_in_the_ledger(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    (intent,) = fake.things.all("payment_intent").values()
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    reconcile_night(fake, NOW + DAY)
    with tenant_scope(invoice.tenant_id):
        assert PaymentRefund.objects.get().minor == 50
    (found,) = reconcile_night(fake, NOW + 2 * DAY)
    assert (found.kind, found.ref, found.ours) == ("refunded_not_here", payments_of(invoice)[0].pk, 200)


def test_the_stripe_fake_refuses_a_refund_above_the_payment(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    (intent,) = fake.things.all("payment_intent").values()
    with pytest.raises(things.Refusal, match="greater than"):
        things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "201"})


def test_a_second_invoice_at_stripe_for_one_payment_is_reported(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    (sent,) = stripe_invoices(fake)
    fake.things.all("invoice")["in_900000"] = {**sent, "id": "in_900000"}
    (found,) = reconcile_night(fake, NOW + DAY)
    assert (found.kind, found.ref, found.ours) == ("unknown_here", "in_900000", None)


def test_without_stripe_nothing_is_reconciled(fake: FakeStripe) -> None:
    with payments.using_gateway(None):
        assert reconciliation_schedule.schedule_days(now=NOW) == 0
    assert not StripeReconciliationDay.objects.exists()


def test_each_day_is_compared_nightly_for_thirty_days(fake: FakeStripe) -> None:
    assert reconciliation_schedule.schedule_days(now=NOW) == 30
    assert reconcile_night(fake, NOW) == []
    assert reconciliation_schedule.schedule_days(now=NOW + HOUR) == 0
    assert reconciliation_schedule.schedule_days(now=NOW + DAY) == 30
    assert reconciliation_schedule.due_days(now=NOW + DAY)[0] == str((NOW + DAY).date())


def test_a_day_is_reconciled_by_one_of_two_workers(fake: FakeStripe) -> None:
    reconciliation_schedule.schedule_days(now=NOW)
    day = reconciliation_schedule.due_days(now=NOW)[0]
    reconciliation.reconcile_day(day, now=NOW)
    wanted = fake.calls["get"]
    reconciliation.reconcile_day(day, now=NOW)
    assert fake.calls["get"] == wanted


def test_several_pages_of_stripe_invoices_are_read_to_the_end(fake: FakeStripe, monkeypatch: Any) -> None:
    monkeypatch.setattr(lookups, "PAGE", 2)
    for _ in range(5):
        process_payment(request_payment(create_invoice_with_card(fake)))
    assert reconcile_night(fake, NOW + DAY) == []
    assert StripeReconciliationDay.objects.get(day=NOW.date()).invoices == 5


def test_foreign_invoices_in_the_stripe_account_are_ignored(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    fake.things.all("invoice")["in_800000"] = {**stripe_invoices(fake)[0], "id": "in_800000", "metadata": {}}
    assert reconcile_night(fake, NOW + DAY) == []


# Who is told


def operator_client(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def create_invoice_voided_at_stripe(fake: FakeStripe) -> Invoice:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    stripe_invoices(fake)[0].update(status="void")
    reconcile_night(fake, NOW + DAY)
    return invoice


def test_operators_see_differences_and_the_next_step(fake: FakeStripe, settings: Any) -> None:
    invoice = create_invoice_voided_at_stripe(fake)
    client = operator_client(settings)
    with clock.frozen_at(NOW + DAY):
        page = client.get("/ops/stripe/").content.decode()
        assert "Stripe has no paid invoice for it" in page
        assert "support" in page
        assert "not reconciled" not in page
        assert payments_of(invoice)[0].pk in page
        assert "1 Stripe item need" in client.get("/ops/system/").content.decode()
    (found,) = client.get("/api/v1/ops/stripe-differences").json()["items"]
    euros = {"amount": "2.000000", "currency": "EUR"}
    assert (found["kind"], found["ours"], found["booked"]) == ("paid_here_not_there", euros, euros)
    assert (found["fix"] != "", found["returned_amount"], found["acknowledge_reason"]) == (True, None, "")
    assert stripe_status.count_open_items(now=NOW + DAY) == 1


@pytest.mark.deep
def test_an_acknowledged_difference_is_not_reported_again(fake: FakeStripe, settings: Any) -> None:
    create_invoice_voided_at_stripe(fake)
    (found,) = StripeDifference.objects.all()
    client = operator_client(settings)
    address = f"/ops/stripe/differences/{found.pk}/acknowledge/"
    assert "Stripe has no paid invoice for it" in client.get(address).content.decode()
    assert client.post(address, {"reason": ""}).status_code == 400
    assert client.post(address, {"reason": "settled with the bank"}).status_code == 302
    assert client.post(address, {"reason": "twice"}).status_code == 404
    assert not book_differences.acknowledge_difference(found, why="late", actor=BILLING, now=NOW)
    assert StripeReconciliationDay.objects.get(day=NOW.date()).differences == 0
    with staff_scope():
        answer = AuditEvent.objects.get(action="stripe.acknowledge")
    assert (answer.actor_label, answer.detail["reason"]) == ("op@example.org", "settled with the bank")
    assert stripe_status.count_open_items(now=NOW + DAY) == 0
    assert [each.why for each in reconcile_night(fake, NOW + 2 * DAY)] == ["settled with the bank"]
    acknowledged = StripeDifference.objects.get().acknowledged_at
    assert acknowledged is not None
    for days, looked in ((29, True), (31, False)):
        assert (NOW.date() in reconciliation_schedule._older_days(acknowledged + days * DAY)) is looked
    assert stripe_status.count_open_items(now=NOW + 2 * DAY) == 0
    stripe_invoices(fake)[0].update(amount_paid=70)
    assert [each.why for each in reconcile_night(fake, NOW + 3 * DAY)] == [""]
    assert stripe_status.count_open_items(now=NOW + 3 * DAY) == 1


def test_days_not_reconciled_are_counted_on_the_operators_page(fake: FakeStripe, settings: Any) -> None:
    reconcile_night(fake, NOW)
    assert stripe_status.get_stripe_status(now=NOW + HOUR).late == 0
    assert stripe_status.get_stripe_status(now=NOW + 2 * DAY).late == 28
    with clock.frozen_at(NOW + 2 * DAY):
        assert "28 days not reconciled" in operator_client(settings).get("/ops/stripe/").content.decode()
    fake.down = True
    reconcile_night(fake, NOW + 2 * DAY)
    assert stripe_status.count_open_items(now=NOW + 2 * DAY + 5 * HOUR) == 30


@pytest.mark.parametrize("mark", ["refund", "lost"])
@pytest.mark.deep
def test_a_refund_or_dispute_months_later_is_compared_with_its_payment(fake: FakeStripe, mark: str) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    assert reconcile_night(fake, NOW + DAY) == []
    later = fake.now = NOW + 70 * DAY
    if mark == "refund":
        (intent,) = fake.things.all("payment_intent").values()
        event = things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    else:
        event = things.disputed(fake.things, stripe_invoices(fake)[0]["id"])
        event["status"] = "lost"
    reconcile_night(fake, later)
    assert reconcile_night(fake, later + DAY) == []
    (found,) = reconcile_night(fake, later + 2 * DAY)
    assert (found.kind, str(found.day), found.back) == ("refunded_not_here", str(NOW.date()), event["amount"])


def test_a_difference_is_compared_until_it_is_resolved_at_any_age(fake: FakeStripe) -> None:
    create_invoice_voided_at_stripe(fake)
    assert len(reconcile_night(fake, NOW + 70 * DAY)) == 1
    stripe_invoices(fake)[0].update(status="paid")
    assert reconcile_night(fake, NOW + 71 * DAY) == []


@pytest.mark.deep
def test_a_refunded_overpayment_resolves_the_difference(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    (sent,) = stripe_invoices(fake)
    (intent,) = fake.things.all("payment_intent").values()
    sent["amount_paid"] = 250
    assert [each.kind for each in reconcile_night(fake, NOW + DAY)] == ["other_amount"]
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    reconcile_night(fake, NOW + 2 * DAY)
    assert reconcile_night(fake, NOW + 3 * DAY) == []


@pytest.mark.deep
def test_many_invoices_of_a_day_are_compared_in_batches(fake: FakeStripe, enqueued: Any, monkeypatch: Any) -> None:
    """Tasks ask only a few times, and compare nothing twice."""
    monkeypatch.setattr(lookups, "PAGE", 2)
    monkeypatch.setattr(reconciliation, "BATCH", 2)
    late = [create_invoice_with_card(fake) for _ in range(5)]
    fake.ill = fail_calls("invoices", *["unreachable"] * 5)
    waiting = [process_payment(request_payment(each)) for each in late]
    for _ in range(21):
        process_payment(request_payment(create_invoice_with_card(fake)))
    fake.now = NOW + 3 * DAY
    for each in waiting:
        process_payment(each, now=NOW + 3 * DAY)
    fake.now = now = NOW + 4 * DAY
    reconciliation_schedule.schedule_days(now=now)
    day, tasks_ = str(NOW.date()), 0
    while day in reconciliation_schedule.due_days(now=now):
        before, enqueued_before = fake.calls["get"], len(enqueued)
        reconciliation.reconcile_day(day, now=now)
        tasks_ += 1
        assert fake.calls["get"] - before <= reconciliation.PAGES_PER_TASK * reconciliation.BATCH
        again = [hint[0] for hint in enqueued[enqueued_before:]]
        assert again == (["billing.reconcile_stripe_day"] if day in reconciliation_schedule.due_days(now=now) else [])
    assert tasks_ > 2
    found = StripeReconciliationDay.objects.get(day=day)
    assert (found.charges, found.invoices, found.differences, found.seen.count()) == (26, 26, 0, 0)
    assert not StripeDifference.objects.exists()


def test_a_day_completed_in_one_task_enqueues_no_further_task(
    fake: FakeStripe, enqueued: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(reconciliation, "PAGES_PER_TASK", len(ReconciliationPhase))
    process_payment(request_payment(create_invoice_with_card(fake)))
    fake.now = now = NOW + 2 * DAY
    reconciliation_schedule.schedule_days(now=now)
    enqueued.clear()
    reconciliation.reconcile_day(str(NOW.date()), now=now)
    assert enqueued == []
    assert StripeReconciliationDay.objects.get(day=NOW.date()).checked_at == now


def test_only_a_failed_batch_is_compared_again(fake: FakeStripe, monkeypatch: Any) -> None:
    monkeypatch.setattr(lookups, "PAGE", 2)
    for _ in range(7):
        process_payment(request_payment(create_invoice_with_card(fake)))
    fake.now = now = NOW + DAY
    reconciliation_schedule.schedule_days(now=now)
    left = ["", "", "", "unreachable"]
    fake.ill = lambda call: left.pop(0) if left and call.path.endswith(("events", "invoices")) else ""
    reconciliation.reconcile_day(str(NOW.date()), now=now)
    day = StripeReconciliationDay.objects.get(day=NOW.date())
    assert (day.phase, day.charges, "did not respond" in day.last_error) == ("theirs", 4, True)
    reconciliation.reconcile_day(str(NOW.date()), now=now + HOUR)
    day.refresh_from_db()
    assert (day.charges, day.invoices, day.last_error, day.due_at) == (7, 7, "", None)


@pytest.mark.deep
def test_a_payment_declined_here_but_still_open_at_stripe_is_reported(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake, how="declined")))
    stripe_invoices(fake)[0]["status"] = "open"
    (found,) = reconcile_night(fake, NOW + DAY)
    assert (found.kind, "Void it" in found.next) == ("open_there_declined_here", True)


def test_a_parked_event_is_retried_by_the_nightly_reconciliation(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    (sent,) = stripe_invoices(fake)
    sent["status"] = "teleported"
    found = fake.things.tell("invoice.updated", sent)
    other = fake.things.tell("invoice.updated", sent)
    for event, version in ((found, found["api_version"]), (other, "2020-01-01")):
        webhook_inbox.store_events([parse_event({**event, "api_version": version})], now=NOW)
    webhook_events.process_event(found["id"], now=NOW)
    assert StripeEvent.objects.get(pk=found["id"]).state == "parked"
    sent["status"] = "paid"
    reconcile_night(fake, NOW + DAY)
    assert dict(StripeEvent.objects.values_list("pk", "state")) == {found["id"]: "done", other["id"]: "parked"}


def test_operators_can_retry_a_parked_event(fake: FakeStripe, settings: Any) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    sent = stripe_invoices(fake)[0]
    sent["status"] = "teleported"
    now = clock.now()
    found = fake.things.tell("invoice.updated", sent)
    StripeEvent.objects.create(
        id=found["id"],
        type=found["type"],
        api_version="2026-10-28.endive",
        object_id=sent["id"],
        created=now,
        received_at=now,
        due_at=now,
    )
    webhook_events.process_event(found["id"], now=now)
    client = operator_client(settings)
    assert "teleported" in client.get("/ops/stripe/").content.decode()
    (event,) = client.get("/api/v1/ops/stripe-events").json()["items"]
    assert ("teleported" in event["outcome"], event["recovered"]) == (True, False)
    sent["status"] = "paid"
    answer = client.post(f"/ops/stripe/events/{found['id']}/retry/")
    assert answer.status_code == 302
    with staff_scope():
        assert AuditEvent.objects.get(action="stripe.event_retry").actor_label == "op@example.org"
    webhook_events.process_event(found["id"], now=clock.now())
    assert StripeEvent.objects.get().state == "done"
    assert client.post(f"/ops/stripe/events/{found['id']}/retry/").status_code == 404


def test_scheduled_tasks_reconcile_days_and_process_events_and_card_forms(fake: FakeStripe, monkeypatch: Any) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(outbox, "send", lambda *hint, **_: sent.append(hint))
    invoice = create_final_invoice()
    with clock.frozen_at(NOW):
        with tenant_scope(invoice.tenant_id):
            form = payment_cards.request_card_form(invoice.tenant, actor=BILLING, now=NOW)
        webhook_inbox.store_events([event_for_webhook(fake)], now=NOW)
        tasks.reconcile_stripe()
        tasks.collect_due()
        run = {
            "billing.reconcile_stripe_day": tasks.reconcile_stripe_day,
            "billing.stripe_event": tasks.stripe_event,
            "billing.card_form": tasks.card_form,
        }
        for task, *subject in sent:
            if task in run:
                run[task](*filter(None, subject))
    assert StripeReconciliationDay.objects.filter(due_at=None).count() == 30
    assert StripeEvent.objects.get().state == "done"
    with tenant_scope(form.tenant_id):
        form.refresh_from_db()
    assert form.state == "open"


def event_for_webhook(fake: FakeStripe) -> Any:
    return parse_event(fake.things.tell("plan.created", {"id": "plan_1"}))


def test_a_charge_never_sent_to_stripe_causes_no_difference(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls("invoices", "unreachable")
    process_payment(request_payment(invoice))
    fake.down = False
    with tenant_scope(invoice.tenant_id):
        assert StripeCharge.objects.get().stripe_id == ""
    assert create_card_holder(fake, invoice.tenant_id)
    assert reconcile_night(fake, NOW + HOUR) == []
