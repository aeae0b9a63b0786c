"""What a worker does about a card: has Stripe open a form for it, and keeps what Stripe calls the card in it."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from billing.domain.collecting import wait_s
from billing.gateways.stripe import forms, looking
from billing.gateways.stripe.looking import CardThere
from billing.models import CardForm, CardFormState, StripeCustomer
from billing.services.stripe.cards import CLAIM, record
from ports import doorbell
from ports.payments import Rejected, Unanswered
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant

LIVES = timedelta(hours=24)  # then Stripe closes the form
PAGE = "/payment/"


def work(form_id: str, tenant_id: str, *, now: datetime) -> None:
    """Take a form one step further: have it opened at Stripe, or look whether a card is in it."""
    with as_tenant(tenant_id):
        mine = CardForm.objects.filter(pk=form_id, due_at__lte=now)
        if not mine.update(due_at=now + CLAIM, tries=F("tries") + 1):
            return
        form = CardForm.objects.select_related("tenant").get(pk=form_id)
    try:
        if form.state == CardFormState.WANTED:
            _open(form, now)
        else:
            _look(form, now)
    except Unanswered as silence:
        _again(form, str(silence), now)
    except Rejected as rejection:
        if (
            form.state == CardFormState.OPEN
        ):  # a card may be in it: it is looked for until Stripe has no such form
            _again(form, rejection.reason, now)
        else:
            _update(
                form, state=CardFormState.FAILED, reason=rejection.reason[:200], due_at=None, settled_at=now
            )


def _open(form: CardForm, now: datetime) -> None:
    tenant = form.tenant
    customer_id = forms.customer(tenant.pk, tenant.name, now=now)
    with as_tenant(tenant.pk):
        StripeCustomer.objects.get_or_create(tenant=tenant, defaults={"customer_id": customer_id})
    back = settings.PUBLIC_URL.rstrip("/") + PAGE
    made = forms.session(tenant.pk, form.pk, customer_id, tenant.currency, back, now=now)
    _update(
        form,
        state=CardFormState.OPEN,
        session_id=made["id"],
        url=made["url"],
        due_at=now + LIVES,
        reason="",
    )


def _look(form: CardForm, now: datetime) -> None:
    state, card = looking.saved_card(form.session_id)
    if card is not None:
        _save(form, card, now)
    elif state in ("expired", "missing"):
        _update(
            form, state=CardFormState.FAILED, reason="Nobody filled the form in.", due_at=None, settled_at=now
        )
    else:  # whoever comes back and back has it looked at no oftener than this
        _update(form, due_at=now + max(CLAIM, timedelta(seconds=wait_s(form.tries))))


def _save(form: CardForm, card: CardThere, now: datetime) -> None:
    """Keep the card for every payment from now on; what was asked for with another stays with that one."""
    with as_tenant(form.tenant_id):
        newer = CardForm.objects.filter(state=CardFormState.SAVED, asked_at__gt=form.asked_at)
        if not newer.exists():
            StripeCustomer.objects.filter(tenant_id=form.tenant_id).update(
                card_id=card.id,
                brand=card.brand[:30],
                last4=card.last4[:4],
                ends=card.ends[:7],
                added_at=now,
                added_by=form.asked_by,
            )
        mine = CardForm.objects.filter(pk=form.pk, state=CardFormState.OPEN)
        if mine.update(state=CardFormState.SAVED, due_at=None, settled_at=now, url=""):
            record("card.save", form, Actor("system", "", "billing"), now, card=f"{card.brand} {card.last4}")


def _again(form: CardForm, why: str, now: datetime) -> None:
    wait = wait_s(form.tries)
    _update(form, due_at=now + timedelta(seconds=wait), reason=why[:200])
    with as_tenant(form.tenant_id):
        doorbell.ring("billing.card_form", form.pk, tenant_id=form.tenant_id, now=now, after_s=wait)


def _update(form: CardForm, **fields: object) -> None:
    with as_tenant(form.tenant_id):
        CardForm.objects.filter(pk=form.pk, settled_at=None).update(**fields)
