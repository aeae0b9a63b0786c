"""Saved payment cards: requested by a person, entered at Stripe, known here by last digits.

A web request only records that a form is wanted. A worker opens it at Stripe and reads the result
(card_setup.py).
"""

from datetime import datetime, timedelta

from django.db import transaction

from billing.domain.stripe_events import GATEWAY
from billing.models import PaymentCardForm, PaymentCardFormState, StripeCustomer
from billing.services.tax.tax_determination import is_showback
from ports import outbox, payments
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope

BATCH = 500
CLAIM = timedelta(seconds=60)


class CardsNotSupported(ProblemError):
    code, status, title = "no-cards", 409, "Payment cards cannot be saved here"


def collects_by_card() -> bool:
    """Return whether this installation collects with cards saved at Stripe."""
    gateway = payments.gateway()
    return gateway is not None and gateway.name == GATEWAY


def find_saved_card(tenant: Tenant) -> StripeCustomer | None:
    """Return the payment card of a tenant; one query."""
    return StripeCustomer.objects.filter(tenant=tenant).exclude(card_id="").first()


@transaction.atomic
def request_card_form(tenant: Tenant, *, actor: Actor, now: datetime) -> PaymentCardForm:
    """Request a form to enter a card; a worker opens it within seconds.

    Raises CardsNotSupported, also for a tenant that only sees its costs."""
    if not collects_by_card():
        raise CardsNotSupported(
            "This installation does not collect payments, or only simulates them.",
            fix="Pay by bank transfer, or contact the operator.",
        )
    if is_showback(tenant.pk):
        raise CardsNotSupported(
            f"{tenant.name} pays nothing: its costs are only shown, in a monthly report.", fix="No card is needed."
        )
    form = PaymentCardForm.objects.create(tenant=tenant, asked_at=now, asked_by=actor.label[:200], due_at=now)
    record_card_event("card.ask", form, actor, now)
    outbox.enqueue("billing.card_form", form.pk, tenant_id=tenant.pk, now=now)
    return form


def check_form_now(form: PaymentCardForm, *, now: datetime) -> None:
    """Check an open form now, unless it is due within a minute anyway.

    Called when somebody returns from the form. Pages that are reloaded over and over must not use up the
    shared rate limit of calls to Stripe.
    """
    later = PaymentCardForm.objects.filter(pk=form.pk, state=PaymentCardFormState.OPEN, due_at__gt=now + CLAIM)
    if later.update(due_at=now):
        outbox.enqueue("billing.card_form", form.pk, tenant_id=form.tenant_id, now=now)


def handle_form_event(session_id: str, *, now: datetime) -> str:
    """Handle an event about a form; return what was done."""
    with system_scope():
        found = PaymentCardForm.objects.filter(session_id=session_id, state=PaymentCardFormState.OPEN).first()
    if found is None:
        return "no open form here"
    with tenant_scope(found.tenant_id):
        check_form_now(found, now=now)
    return "being checked"


def due_card_forms(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return the forms that are due."""
    with system_scope():
        found = PaymentCardForm.objects.filter(due_at__lte=now).order_by("due_at", "pk")
        return [("billing.card_form", *pair) for pair in found.values_list("pk", "tenant_id")[:BATCH]]


def record_card_event(action: str, form: PaymentCardForm, actor: Actor, now: datetime, **detail: object) -> None:
    """Record an event of a card in the audit log."""
    audit.record(action, form, "card", actor=actor, now=now, **detail)
