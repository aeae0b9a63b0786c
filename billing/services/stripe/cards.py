"""The card that a tenant pays with: asked for by a person, typed at Stripe, and known here by its last four digits.

A web request only writes that a form is wanted; a worker has Stripe open it (saving.py), and looks what is in it.
"""

from datetime import datetime, timedelta

from django.db import transaction

from billing.domain.stripe_events import GATEWAY
from billing.models import CardForm, CardFormState, StripeCustomer
from ports import doorbell, payments
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep, as_tenant

BATCH = 500
CLAIM = timedelta(seconds=60)
Hint = tuple[str, str, str]


class NoCards(Refused):
    code, status, title = "no-cards", 409, "No cards are saved here"


def taken_here() -> bool:
    """Tell whether this installation collects with cards that are saved at Stripe."""
    gateway = payments.gateway()
    return gateway is not None and gateway.name == GATEWAY


def saved(tenant: Tenant) -> StripeCustomer | None:
    """Return the card that a tenant pays with; one query."""
    return StripeCustomer.objects.filter(tenant=tenant).exclude(card_id="").first()


@transaction.atomic
def ask(tenant: Tenant, *, actor: Actor, now: datetime) -> CardForm:
    """Ask for a form to type a card into; a worker opens it within seconds. Raises NoCards."""
    if not taken_here():
        raise NoCards(
            "This installation saves no cards: it collects nothing, or only simulates that.",
            fix="Pay by transfer, or ask the operators.",
        )
    form = CardForm.objects.create(tenant=tenant, asked_at=now, asked_by=actor.label[:200], due_at=now)
    record("card.ask", form, actor, now)
    doorbell.ring("billing.card_form", form.pk, tenant_id=tenant.pk, now=now)
    return form


def look_now(form: CardForm, *, now: datetime) -> None:
    """Somebody is back from Stripe's form: look at it at once, unless it is looked at within a minute anyway.

    Pages that are opened over and over must not use up the pace at which all of us call Stripe.
    """
    later = CardForm.objects.filter(pk=form.pk, state=CardFormState.OPEN, due_at__gt=now + CLAIM)
    if later.update(due_at=now):
        doorbell.ring("billing.card_form", form.pk, tenant_id=form.tenant_id, now=now)


def heard(session_id: str, *, now: datetime) -> str:
    """Stripe says that something happened to a form; say what came of it."""
    with as_sweep():
        found = CardForm.objects.filter(session_id=session_id, state=CardFormState.OPEN).first()
    if found is None:
        return "no form that is open here"
    with as_tenant(found.tenant_id):
        look_now(found, now=now)
    return "looked at now"


def due(*, now: datetime) -> list[Hint]:
    """Return the forms whose moment has come."""
    with as_sweep():
        found = CardForm.objects.filter(due_at__lte=now).order_by("due_at", "pk")
        return [("billing.card_form", *pair) for pair in found.values_list("pk", "tenant_id")[:BATCH]]


def record(action: str, form: CardForm, actor: Actor, now: datetime, **detail: object) -> None:
    """Write what happened to a card in the audit trail."""
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=form.tenant_id,
        subject_id=form.pk,
        subject_label="card",
        **detail,
    )
