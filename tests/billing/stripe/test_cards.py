"""Payment cards added at Stripe."""

from datetime import timedelta
from typing import Any

import pytest

from billing.gateways.stripe import lookups
from billing.models import AccountTerms, Invoice, PaymentCardForm, StripeCustomer
from billing.services.payments.stripe import card_setup, payment_cards, webhook_events, webhook_inbox
from billing.services.payments.stripe.payment_cards import CardsNotSupported
from ports import payments
from tenants.models import AuditEvent, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    CapturedMessages,
    create_final_invoice,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.billing.stripe.stripe_customers import SECRETS, fail_calls, stripe_invoices
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.webhook_delivery import webhook_of

pytestmark = pytest.mark.django_db
SOON = NOW + timedelta(minutes=5)


def request_form(invoice: Invoice) -> PaymentCardForm:
    with tenant_scope(invoice.tenant_id):
        return payment_cards.request_card_form(invoice.tenant, actor=MIRA, now=NOW)


def process_form(form: PaymentCardForm, *, now: Any = NOW) -> PaymentCardForm:
    card_setup.process_card_form(form.pk, form.tenant_id, now=now)
    return reload_form(form)


def reload_form(form: PaymentCardForm) -> PaymentCardForm:
    with tenant_scope(form.tenant_id):
        return PaymentCardForm.objects.get(pk=form.pk)


def return_from_stripe(form: PaymentCardForm, *, now: Any = NOW) -> PaymentCardForm:
    """Return from Stripe's form like a browser does."""
    with tenant_scope(form.tenant_id):
        payment_cards.check_form_now(reload_form(form), now=now)
    return process_form(form, now=now)


def saved_card(form: PaymentCardForm) -> StripeCustomer | None:
    with tenant_scope(form.tenant_id):
        return payment_cards.find_saved_card(form.tenant)


def test_a_card_form_is_opened_by_a_worker_and_completed_at_stripe(
    fake: FakeStripe, enqueued: CapturedMessages
) -> None:
    invoice = create_final_invoice()
    form = request_form(invoice)
    assert (form.state, sum(fake.calls.values())) == ("wanted", 0)
    assert ("billing.card_form", form.pk, form.tenant_id, NOW) in enqueued
    form = process_form(form)
    assert (form.state, form.reason) == ("open", "")
    assert form.url == f"https://checkout.stripe.com/c/pay/{form.session_id}"
    session = fake.things.get("checkout.session", form.session_id)
    assert (session["mode"], session["success_url"]) == (
        "setup",
        f"http://localhost:8000/payment-method/?form={form.pk}",
    )
    things.fill_in(fake.things, form.session_id)
    assert return_from_stripe(form).state == "saved"
    found = saved_card(form)
    assert found is not None
    assert (found.brand, found.last4, found.ends, found.added_by) == ("visa", "4242", "2029-07", MIRA.label)
    assert process_payment(request_payment(invoice)).status == "succeeded"


@pytest.mark.parametrize(("is_new", "pays"), [(True, "invoice"), (False, "prepaid")])
def test_a_new_tenant_that_saves_a_card_pays_by_it(fake: FakeStripe, is_new: bool, pays: str) -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        tenant = invoice.tenant
        AccountTerms.objects.create(tenant=tenant, payment="prepaid", since=NOW)
        if is_new:
            Tenant.objects.update(released_at=None)
        form = process_form(payment_cards.request_card_form(tenant, actor=MIRA, now=NOW))
    things.fill_in(fake.things, form.session_id)
    assert return_from_stripe(form).state == "saved"
    with tenant_scope(tenant.pk):
        assert AccountTerms.objects.get().payment == pays


def test_card_tables_have_no_card_number_or_cvc_column(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    things.fill_in(fake.things, form.session_id, number="4242")
    return_from_stripe(form)
    with tenant_scope(form.tenant_id):
        held = {field.name for field in StripeCustomer._meta.fields} | {f.name for f in PaymentCardForm._meta.fields}
    assert not {name for name in held if "number" in name or "cvc" in name}


def test_a_webhook_saves_a_card_without_the_browser_returning(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    things.fill_in(fake.things, form.session_id)
    for event in fake.things.events:
        webhook_inbox.receive_event(*webhook_of(event, SECRETS[0], NOW), now=NOW)
    for event_id in webhook_inbox.due_events(now=NOW):
        webhook_events.process_event(event_id, now=NOW)
    assert payment_cards.due_card_forms(now=NOW) == [("billing.card_form", form.pk, form.tenant_id)]
    assert process_form(form).state == "saved"


def test_a_second_card_replaces_a_declined_one(fake: FakeStripe) -> None:
    invoice = create_final_invoice()
    first = process_form(request_form(invoice))
    things.fill_in(fake.things, first.session_id, how="declined")
    return_from_stripe(first)
    assert process_payment(request_payment(invoice)).status == "declined"
    second = process_form(request_form(invoice))
    things.fill_in(fake.things, second.session_id, number="1881")
    return_from_stripe(second)
    assert process_payment(request_payment(invoice, now=SOON), now=SOON).status == "succeeded"
    assert reload_invoice(invoice).status == "paid"
    assert [each["status"] for each in stripe_invoices(fake)] == ["void", "paid"]
    assert len(fake.things.all("customer")) == 1, "a tenant is one customer"


def test_an_older_form_completed_late_does_not_replace_a_newer_card(fake: FakeStripe) -> None:
    invoice = create_final_invoice()
    old = process_form(request_form(invoice))
    with tenant_scope(invoice.tenant_id):
        new = payment_cards.request_card_form(invoice.tenant, actor=MIRA, now=SOON)
    new = process_form(new, now=SOON)
    things.fill_in(fake.things, new.session_id, number="0002")
    return_from_stripe(new, now=SOON)
    things.fill_in(fake.things, old.session_id, number="0001")
    assert return_from_stripe(old, now=SOON).state == "saved"
    found = saved_card(old)
    assert found is not None
    assert found.last4 == "0002"


@pytest.mark.parametrize("ill", ["unreachable", "lost", "500", "500_done", "429"])
@pytest.mark.parametrize("step", ["customers", "sessions", "get"])
def test_a_fault_at_any_step_leads_to_one_customer_with_a_card(fake: FakeStripe, step: str, ill: str) -> None:
    form = request_form(create_final_invoice())
    fake.ill = fail_calls(step, ill)
    now = NOW
    form = process_form(form, now=now)
    for _ in range(3):
        now += timedelta(minutes=5)
        form = process_form(form, now=now)
    things.fill_in(fake.things, form.session_id)
    form = return_from_stripe(form, now=now)
    while form.state != "saved":
        now += timedelta(minutes=5)
        form = process_form(form, now=now)
    assert len(fake.things.all("customer")) == 1
    assert saved_card(form) is not None


def test_the_stripe_customer_is_found_and_not_created_again_after_two_days(fake: FakeStripe) -> None:
    form = request_form(create_final_invoice())
    fake.ill = fail_calls("customers", "lost")
    process_form(form)
    fake.now = NOW + timedelta(days=2)
    assert process_form(form, now=fake.now).state == "open"
    assert len(fake.things.all("customer")) == 1


def test_a_card_form_that_is_not_completed_expires_with_a_reason(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    assert return_from_stripe(form).state == "open"
    fake.things.get("checkout.session", form.session_id)["status"] = "expired"
    form = process_form(form, now=NOW + timedelta(days=1, hours=1))
    assert (form.state, form.reason) == ("failed", "The form was not completed.")
    assert process_form(form, now=NOW + timedelta(days=3)).state == "failed"


def test_a_card_form_missing_at_stripe_fails(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    fake.things.all("checkout.session").clear()
    assert return_from_stripe(form).state == "failed"


def test_invalid_stripe_credentials_fail_the_card_form_with_a_reason(fake: FakeStripe) -> None:
    form = request_form(create_final_invoice())
    fake.ill = fail_calls("customers", "unauthorized")
    form = process_form(form)
    assert (form.state, form.reason) == ("failed", "Stripe does not accept our credentials.")


def test_a_card_is_not_lost_while_credentials_are_wrong(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    things.fill_in(fake.things, form.session_id)
    fake.ill = fail_calls("get", "unauthorized", "unauthorized")
    form = return_from_stripe(form)
    assert (form.state, form.reason) == ("open", "Stripe does not accept our credentials.")
    assert process_form(form, now=NOW + timedelta(hours=2)).state == "open"
    assert process_form(form, now=NOW + timedelta(hours=4)).state == "saved"
    assert saved_card(form) is not None


def test_reloading_the_page_calls_stripe_at_most_once_a_minute(fake: FakeStripe, enqueued: CapturedMessages) -> None:
    form = process_form(request_form(create_final_invoice()))
    before, count_before = sum(fake.calls.values()), len(enqueued)
    for seconds in range(0, 120, 4):
        return_from_stripe(form, now=NOW + timedelta(seconds=seconds))
    assert sum(fake.calls.values()) - before <= 3
    assert len(enqueued) - count_before <= 3
    things.fill_in(fake.things, form.session_id)
    assert return_from_stripe(form, now=NOW + timedelta(minutes=4)).state == "saved"


def test_without_stripe_a_card_form_cannot_be_requested() -> None:
    invoice = create_final_invoice()
    with payments.using_gateway(None), pytest.raises(CardsNotSupported, match="does not collect payments"):
        request_form(invoice)


def test_an_event_of_an_unknown_card_form_changes_nothing(fake: FakeStripe) -> None:
    assert payment_cards.handle_form_event("cs_test_nobody", now=NOW) == "no open form here"


def test_a_saved_card_is_audited_with_its_requester(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    things.fill_in(fake.things, form.session_id)
    return_from_stripe(form)
    with tenant_scope(form.tenant_id):
        rows = AuditEvent.objects.filter(action__startswith="card.").order_by("pk")
        assert [(each.action, each.actor_label) for each in rows] == [
            ("card.ask", MIRA.label),
            ("card.save", "billing"),
        ]
        assert rows[1].detail["card"] == "visa 4242"


def test_a_card_found_by_two_workers_is_saved_once(fake: FakeStripe) -> None:
    form = process_form(request_form(create_final_invoice()))
    things.fill_in(fake.things, form.session_id)
    return_from_stripe(form)
    state, found = lookups.get_saved_card(form.session_id)
    assert (state, found is not None) == ("complete", True)
    assert found is not None
    card_setup._save_card(form, found, NOW)
    with tenant_scope(form.tenant_id):
        assert AuditEvent.objects.filter(action="card.save").count() == 1
