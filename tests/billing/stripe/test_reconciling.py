"""What was lost on the way is found in the night: our books, Stripe's and the ledger agree, or a person is told."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing import tasks
from billing.domain.stripe_events import read
from billing.gateways.stripe import looking
from billing.models import (
    DayPhase,
    Invoice,
    PaymentDispute,
    PaymentRefund,
    StripeCharge,
    StripeDay,
    StripeDifference,
    StripeEvent,
)
from billing.services.moves import moving
from billing.services.payments import collecting
from billing.services.stripe import (
    cards,
    differences,
    inbox,
    planning,
    reconciling,
    saving,
    watching,
    working,
)
from ports import clock, doorbell, payments
from tenants.models import AuditEvent, User
from tenants.services.walls import as_staff, as_tenant
from tests.billing.payments.bills import NOW, bill, collect, fresh, pay, tried
from tests.billing.stripe.purses import at, billed, there
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import holder

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def night(fake: FakeStripe, now: Any) -> list[StripeDifference]:
    """Compare every day, work off what was found, and return what still differs."""
    fake.now = now
    planning.plan(now=now)
    for day in planning.due(now=now):
        reconciling.work(day, now=now)
    for event_id in inbox.due(now=now):
        working.work(event_id, now=now)
    for _, *hint in cards.due(now=now):
        saving.work(*hint, now=now)
    for _, *hint in collecting.due(now=now):
        collecting.collect(*hint, now=now)
    return list(StripeDifference.objects.order_by("pk"))


@pytest.fixture(autouse=True)
def _today(fake: FakeStripe) -> None:
    fake.now = NOW


def test_a_day_of_outage_is_healed_to_no_difference(fake: FakeStripe) -> None:
    """No webhook comes for a day, and for half of it Stripe cannot be reached at all."""
    slow = [billed(fake, how="silent") for _ in range(3)]
    fast = [billed(fake) for _ in range(3)]
    disputed = billed(fake)
    card = bill()
    for each in [*slow, *fast[:1], disputed]:
        collect(pay(each))
    with as_tenant(card.tenant_id):
        form = cards.ask(card.tenant, actor=moving.BILLING, now=NOW)
    saving.work(form.pk, form.tenant_id, now=NOW)
    with as_tenant(card.tenant_id):
        form.refresh_from_db()
    kept = fake.things
    for each in there(fake):
        things.bank_pays(kept, each)
    things.disputed(kept, there(fake)[-1]["id"])
    things.fill_in(kept, form.session_id)
    fake.down = True
    for each in fast[1:]:
        collect(pay(each, now=NOW + HOUR), now=NOW + HOUR)
    assert night(fake, NOW + 12 * HOUR) == []
    assert "did not answer" in StripeDay.objects.exclude(trouble="")[0].trouble
    fake.down = False
    assert {each.kind for each in night(fake, NOW + DAY)} == {"paid_there_open_here"}
    assert {fresh(each).status for each in [*slow, *fast, disputed]} == {"paid"}
    assert night(fake, NOW + 2 * DAY) == []
    assert set(StripeEvent.objects.values_list("found", "state")) == {(True, "done")}
    with as_tenant(disputed.tenant_id):
        assert PaymentDispute.objects.get().status == "needs_response"
    with as_tenant(card.tenant_id):
        assert cards.saved(card.tenant) is not None


def test_a_payment_that_waits_is_asked_about_before_its_moment(fake: FakeStripe) -> None:
    invoice = billed(fake, how="silent")
    payment = collect(pay(invoice))
    things.bank_pays(fake.things, there(fake)[0])
    soon = NOW + timedelta(minutes=15)
    assert payment.due_at is not None
    assert payment.due_at > soon
    assert [each.kind for each in night(fake, soon)] == ["paid_there_open_here"]
    assert fresh(invoice).status == "paid"


def test_all_that_is_paid_agrees(fake: FakeStripe) -> None:
    for _ in range(3):
        collect(pay(billed(fake)))
    refused = billed(fake, how="declined")
    collect(pay(refused))
    assert night(fake, NOW + DAY) == []
    day = StripeDay.objects.get(day=NOW.date())
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
def test_what_differs_is_written_down_until_it_agrees(
    fake: FakeStripe, change: dict[str, Any], kind: str
) -> None:
    collect(pay(billed(fake)))
    (sent,) = there(fake)
    before = dict(sent)
    sent.update(change)
    first = night(fake, NOW + DAY)
    assert kind in [each.kind for each in first]
    again = night(fake, NOW + 2 * DAY)
    assert [(each.pk, each.found_at) for each in again] == [(each.pk, NOW + DAY) for each in first]
    sent.update(before)
    assert night(fake, NOW + 3 * DAY) == []


def test_an_invoice_that_was_made_there_a_day_later_is_still_found(fake: FakeStripe) -> None:
    invoice = billed(fake)
    fake.ill = at("invoices", "unreachable")
    payment = collect(pay(invoice))
    fake.now = NOW + 2 * DAY
    collect(payment, now=NOW + 2 * DAY)
    assert night(fake, NOW + 3 * DAY) == []


def test_money_that_went_back_is_told_for_the_ledger_knows_nothing_of_it(fake: FakeStripe) -> None:
    invoice = billed(fake)
    collect(pay(invoice))
    (intent,) = fake.things.all("payment_intent").values()
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    night(fake, NOW + DAY)
    with as_tenant(invoice.tenant_id):
        assert PaymentRefund.objects.get().minor == 50
    (found,) = night(fake, NOW + 2 * DAY)
    assert (found.kind, found.ref, found.ours) == ("went_back", tried(invoice)[0].pk, 200)


def test_a_refund_is_never_more_than_was_paid(fake: FakeStripe) -> None:
    collect(pay(billed(fake)))
    (intent,) = fake.things.all("payment_intent").values()
    with pytest.raises(things.Refusal, match="greater than"):
        things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "201"})


def test_a_second_invoice_for_the_same_payment_is_told(fake: FakeStripe) -> None:
    invoice = billed(fake)
    collect(pay(invoice))
    (sent,) = there(fake)
    fake.things.all("invoice")["in_900000"] = {**sent, "id": "in_900000"}
    (found,) = night(fake, NOW + DAY)
    assert (found.kind, found.ref, found.ours) == ("unknown_here", "in_900000", None)


def test_where_stripe_does_not_collect_nothing_is_compared(fake: FakeStripe) -> None:
    with payments.through(None):
        assert planning.plan(now=NOW) == 0
    assert not StripeDay.objects.exists()


def test_each_day_is_compared_once_a_night_and_for_thirty_days(fake: FakeStripe) -> None:
    assert planning.plan(now=NOW) == 30
    assert night(fake, NOW) == []
    assert planning.plan(now=NOW + HOUR) == 0
    assert planning.plan(now=NOW + DAY) == 30
    assert planning.due(now=NOW + DAY)[0] == str((NOW + DAY).date())


def test_two_workers_compare_a_day_once(fake: FakeStripe) -> None:
    planning.plan(now=NOW)
    day = planning.due(now=NOW)[0]
    reconciling.work(day, now=NOW)
    asked = fake.calls["get"]
    reconciling.work(day, now=NOW)
    assert fake.calls["get"] == asked


def test_more_than_a_page_of_them_is_read_to_its_end(fake: FakeStripe, monkeypatch: Any) -> None:
    monkeypatch.setattr(looking, "PAGE", 2)
    for _ in range(5):
        collect(pay(billed(fake)))
    assert night(fake, NOW + DAY) == []
    assert StripeDay.objects.get(day=NOW.date()).invoices == 5


def test_invoices_of_somebody_else_in_the_account_are_not_ours_to_judge(fake: FakeStripe) -> None:
    collect(pay(billed(fake)))
    fake.things.all("invoice")["in_800000"] = {**there(fake)[0], "id": "in_800000", "metadata": {}}
    assert night(fake, NOW + DAY) == []


# Who is told


def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def a_paid_one_that_is_void_there(fake: FakeStripe) -> Invoice:
    invoice = billed(fake)
    collect(pay(invoice))
    there(fake)[0].update(status="void")
    night(fake, NOW + DAY)
    return invoice


def test_operators_see_what_differs_and_what_to_do(fake: FakeStripe, settings: Any) -> None:
    invoice = a_paid_one_that_is_void_there(fake)
    client = operator(settings)
    with clock.standing_at(NOW + DAY):
        page = client.get("/ops/stripe/").content.decode()
        assert "Stripe has no paid invoice for it" in page
        assert "support" in page
        assert "not compared" not in page
        assert tried(invoice)[0].pk in page
        assert "1 of Stripe wait" in client.get("/ops/system/").content.decode()
    (told,) = client.get("/api/v1/ops/stripe-differences").json()["items"]
    assert (told["kind"], told["ours"], told["booked"]) == ("paid_here_not_there", 200, 200)
    assert watching.look(now=NOW + DAY).troubles == 1


def test_a_difference_that_a_person_acknowledged_waits_for_nobody_until_it_is_another(
    fake: FakeStripe, settings: Any
) -> None:
    a_paid_one_that_is_void_there(fake)
    (found,) = StripeDifference.objects.all()
    client = operator(settings)
    address = f"/ops/stripe/differences/{found.pk}/acknowledge/"
    assert "Stripe has no paid invoice for it" in client.get(address).content.decode()
    assert client.post(address, {"reason": ""}).status_code == 400
    assert client.post(address, {"reason": "settled with the bank"}).status_code == 302
    assert client.post(address, {"reason": "twice"}).status_code == 404
    assert not differences.acknowledge(found, why="late", actor=moving.BILLING, now=NOW)
    assert StripeDay.objects.get(day=NOW.date()).differences == 0
    with as_staff():
        told = AuditEvent.objects.get(action="stripe.acknowledge")
    assert (told.actor_label, told.detail["reason"]) == ("op@example.org", "settled with the bank")
    assert watching.waits(now=NOW + DAY) == 0
    assert [each.why for each in night(fake, NOW + 2 * DAY)] == ["settled with the bank"]
    acknowledged = StripeDifference.objects.get().acknowledged_at
    assert acknowledged is not None
    for days, looked in ((29, True), (31, False)):
        assert (NOW.date() in planning._older(acknowledged + days * DAY)) is looked
    assert watching.waits(now=NOW + 2 * DAY) == 0
    there(fake)[0].update(amount_paid=70)
    assert [each.why for each in night(fake, NOW + 3 * DAY)] == [""]
    assert watching.waits(now=NOW + 3 * DAY) == 1


def test_days_that_were_not_compared_are_counted_where_operators_look(
    fake: FakeStripe, settings: Any
) -> None:
    night(fake, NOW)
    assert watching.look(now=NOW + HOUR).late == 0
    assert watching.look(now=NOW + 2 * DAY).late == 28
    with clock.standing_at(NOW + 2 * DAY):
        assert "28 days not compared" in operator(settings).get("/ops/stripe/").content.decode()
    fake.down = True
    night(fake, NOW + 2 * DAY)
    assert watching.waits(now=NOW + 2 * DAY + 5 * HOUR) == 30


@pytest.mark.parametrize("mark", ["refund", "lost"])
def test_what_goes_back_months_later_is_compared_however_old_the_payment_is(
    fake: FakeStripe, mark: str
) -> None:
    collect(pay(billed(fake)))
    assert night(fake, NOW + DAY) == []
    later = fake.now = NOW + 70 * DAY
    if mark == "refund":
        (intent,) = fake.things.all("payment_intent").values()
        event = things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    else:
        event = things.disputed(fake.things, there(fake)[0]["id"])
        event["status"] = "lost"
    night(fake, later)
    assert night(fake, later + DAY) == []
    (found,) = night(fake, later + 2 * DAY)
    assert (found.kind, str(found.day), found.back) == ("went_back", str(NOW.date()), event["amount"])


def test_what_differs_is_compared_until_it_agrees_however_old_it_is(fake: FakeStripe) -> None:
    a_paid_one_that_is_void_there(fake)
    assert len(night(fake, NOW + 70 * DAY)) == 1
    there(fake)[0].update(status="paid")
    assert night(fake, NOW + 71 * DAY) == []


def test_what_was_too_much_and_went_back_agrees_again(fake: FakeStripe) -> None:
    collect(pay(billed(fake)))
    (sent,) = there(fake)
    (intent,) = fake.things.all("payment_intent").values()
    sent["amount_paid"] = 250
    assert [each.kind for each in night(fake, NOW + DAY)] == ["other_amount"]
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "50"})
    night(fake, NOW + 2 * DAY)
    assert night(fake, NOW + 3 * DAY) == []


def test_a_thousand_invoices_of_a_day_are_compared_piece_by_piece(
    fake: FakeStripe, rung: Any, monkeypatch: Any
) -> None:
    """No task asks more than a few times, whatever a day holds; what was compared is not compared anew."""
    monkeypatch.setattr(looking, "PAGE", 2)
    monkeypatch.setattr(reconciling, "BATCH", 2)
    late = [billed(fake) for _ in range(5)]
    fake.ill = at("invoices", *["unreachable"] * 5)
    waiting = [collect(pay(each)) for each in late]
    for _ in range(21):
        collect(pay(billed(fake)))
    fake.now = NOW + 3 * DAY
    for each in waiting:
        collect(each, now=NOW + 3 * DAY)
    fake.now = now = NOW + 4 * DAY
    planning.plan(now=now)
    day, tasks_ = str(NOW.date()), 0
    while day in planning.due(now=now):
        before, before_rung = fake.calls["get"], len(rung)
        reconciling.work(day, now=now)
        tasks_ += 1
        assert fake.calls["get"] - before <= reconciling.PIECES * reconciling.BATCH
        again = [hint[0] for hint in rung[before_rung:]]
        assert again == (["billing.stripe_day"] if day in planning.due(now=now) else [])
    assert tasks_ > 2
    found = StripeDay.objects.get(day=day)
    assert (found.charges, found.invoices, found.differences, found.seen.count()) == (26, 26, 0, 0)
    assert not StripeDifference.objects.exists()


def test_a_day_that_ends_with_the_last_piece_of_its_task_rings_for_no_other(
    fake: FakeStripe, rung: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(reconciling, "PIECES", len(DayPhase))
    collect(pay(billed(fake)))
    fake.now = now = NOW + 2 * DAY
    planning.plan(now=now)
    rung.clear()
    reconciling.work(str(NOW.date()), now=now)
    assert rung == []
    assert StripeDay.objects.get(day=NOW.date()).checked_at == now


def test_a_piece_that_fails_is_the_only_one_that_is_compared_again(
    fake: FakeStripe, monkeypatch: Any
) -> None:
    monkeypatch.setattr(looking, "PAGE", 2)
    for _ in range(7):
        collect(pay(billed(fake)))
    fake.now = now = NOW + DAY
    planning.plan(now=now)
    left = ["", "", "", "unreachable"]
    fake.ill = lambda call: left.pop(0) if left and call.path.endswith(("events", "invoices")) else ""
    reconciling.work(str(NOW.date()), now=now)
    day = StripeDay.objects.get(day=NOW.date())
    assert (day.phase, day.charges, "did not answer" in day.trouble) == ("theirs", 4, True)
    reconciling.work(str(NOW.date()), now=now + HOUR)
    day.refresh_from_db()
    assert (day.charges, day.invoices, day.trouble, day.due_at) == (7, 7, "", None)


def test_what_is_declined_here_and_can_still_be_paid_there_is_told(fake: FakeStripe) -> None:
    collect(pay(billed(fake, how="declined")))
    there(fake)[0]["status"] = "open"
    (found,) = night(fake, NOW + DAY)
    assert (found.kind, "Void it" in found.next) == ("open_there_declined_here", True)


def test_what_was_parked_is_looked_at_again_by_night(fake: FakeStripe) -> None:
    collect(pay(billed(fake)))
    (sent,) = there(fake)
    sent["status"] = "teleported"
    told = fake.things.tell("invoice.updated", sent)
    other = fake.things.tell("invoice.updated", sent)
    for event, version in ((told, told["api_version"]), (other, "2020-01-01")):
        inbox.keep([read({**event, "api_version": version})], now=NOW)
    working.work(told["id"], now=NOW)
    assert StripeEvent.objects.get(pk=told["id"]).state == "parked"
    sent["status"] = "paid"
    night(fake, NOW + DAY)
    assert dict(StripeEvent.objects.values_list("pk", "state")) == {told["id"]: "done", other["id"]: "parked"}


def test_operators_have_a_parked_event_looked_at_again(fake: FakeStripe, settings: Any) -> None:
    invoice = billed(fake)
    collect(pay(invoice))
    sent = there(fake)[0]
    sent["status"] = "teleported"
    now = clock.now()
    told = fake.things.tell("invoice.updated", sent)
    StripeEvent.objects.create(
        id=told["id"],
        type=told["type"],
        api_version="2026-10-28.endive",
        object_id=sent["id"],
        created=now,
        received_at=now,
        due_at=now,
    )
    working.work(told["id"], now=now)
    client = operator(settings)
    assert "teleported" in client.get("/ops/stripe/").content.decode()
    sent["status"] = "paid"
    answer = client.post(f"/ops/stripe/{told['id']}/look-again/")
    assert answer.status_code == 302
    with as_staff():
        assert AuditEvent.objects.get(action="stripe.look_again").actor_label == "op@example.org"
    working.work(told["id"], now=clock.now())
    assert StripeEvent.objects.get().state == "done"
    assert client.post(f"/ops/stripe/{told['id']}/look-again/").status_code == 404


def test_the_beat_and_the_workers_go_through_it(fake: FakeStripe, monkeypatch: Any) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(doorbell, "send", lambda *hint: sent.append(hint))
    invoice = bill()
    with clock.standing_at(NOW):
        with as_tenant(invoice.tenant_id):
            form = cards.ask(invoice.tenant, actor=moving.BILLING, now=NOW)
        inbox.keep([told_of(fake)], now=NOW)
        tasks.reconcile_stripe()
        tasks.collect_due()
        run = {
            "billing.stripe_day": tasks.stripe_day,
            "billing.stripe_event": tasks.stripe_event,
            "billing.card_form": tasks.card_form,
        }
        for task, *subject in sent:
            if task in run:
                run[task](*filter(None, subject))
    assert StripeDay.objects.filter(due_at=None).count() == 30
    assert StripeEvent.objects.get().state == "done"
    with as_tenant(form.tenant_id):
        form.refresh_from_db()
    assert form.state == "open"


def told_of(fake: FakeStripe) -> Any:
    return read(fake.things.tell("plan.created", {"id": "plan_1"}))


def test_a_charge_that_was_never_sent_has_nothing_to_compare(fake: FakeStripe) -> None:
    invoice = billed(fake)
    fake.ill = at("invoices", "unreachable")
    collect(pay(invoice))
    fake.down = False
    with as_tenant(invoice.tenant_id):
        assert StripeCharge.objects.get().stripe_id == ""
    assert holder(fake, invoice.tenant_id)
    assert night(fake, NOW + HOUR) == []
