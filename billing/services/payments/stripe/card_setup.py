"""Worker for card forms: opens a form at Stripe and stores the saved card."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from billing.domain.payment_retries import backoff_s
from billing.gateways.stripe import card_forms, lookups
from billing.gateways.stripe.lookups import StripeCard
from billing.models import PaymentCardForm, PaymentCardFormState, PaymentTerms, StripeCustomer
from billing.services.funds.accounts import account_terms
from billing.services.payments.stripe.payment_cards import CLAIM, record_card_event
from ports import outbox
from ports.payments import GatewayRejected, OutcomeUnknown
from tenants.services.actors import BILLING
from tenants.services.rls import tenant_scope

FORM_LIFETIME = timedelta(hours=24)  # Stripe closes the form after this time
RETURN_PATH = "/payment-method/"


def process_card_form(form_id: str, tenant_id: str, *, now: datetime) -> None:
    """Advance a form: open it at Stripe, or check whether a card was saved."""
    with tenant_scope(tenant_id):
        own_row = PaymentCardForm.objects.filter(pk=form_id, due_at__lte=now)
        if not own_row.update(due_at=now + CLAIM, attempts=F("attempts") + 1):
            return
        form = PaymentCardForm.objects.select_related("tenant").get(pk=form_id)
    try:
        if form.state == PaymentCardFormState.WANTED:
            _open_form(form, now)
        else:
            _check_form(form, now)
    except OutcomeUnknown as error:
        _retry_later(form, str(error), now)
    except GatewayRejected as rejection:
        if (
            form.state == PaymentCardFormState.OPEN
        ):  # a card may have been entered: retry until Stripe no longer has the form
            _retry_later(form, rejection.reason, now)
        else:
            _update(form, state=PaymentCardFormState.FAILED, reason=rejection.reason[:200], due_at=None, settled_at=now)


def _open_form(form: PaymentCardForm, now: datetime) -> None:
    tenant = form.tenant
    customer_id = card_forms.ensure_customer(tenant.pk, tenant.name, now=now)
    with tenant_scope(tenant.pk):
        StripeCustomer.objects.get_or_create(tenant=tenant, defaults={"customer_id": customer_id})
    back = settings.PUBLIC_URL.rstrip("/") + RETURN_PATH
    made = card_forms.open_card_session(tenant.pk, form.pk, customer_id, tenant.currency, back, now=now)
    _update(
        form,
        state=PaymentCardFormState.OPEN,
        session_id=made["id"],
        url=made["url"],
        due_at=now + FORM_LIFETIME,
        reason="",
    )


def _check_form(form: PaymentCardForm, now: datetime) -> None:
    state, card = lookups.get_saved_card(form.session_id)
    if card is not None:
        _save_card(form, card, now)
    elif state in ("expired", "missing"):
        _update(
            form, state=PaymentCardFormState.FAILED, reason="The form was not completed.", due_at=None, settled_at=now
        )
    else:  # limits how often reloads can trigger a check
        _update(form, due_at=now + max(CLAIM, timedelta(seconds=backoff_s(form.attempts))))


def _save_card(form: PaymentCardForm, card: StripeCard, now: datetime) -> None:
    """Store the card for all future payments.

    A form that was requested earlier than one already saved does not replace the card.
    """
    with tenant_scope(form.tenant_id):
        newer = PaymentCardForm.objects.filter(state=PaymentCardFormState.SAVED, asked_at__gt=form.asked_at)
        if not newer.exists():
            StripeCustomer.objects.filter(tenant_id=form.tenant_id).update(
                card_id=card.id,
                brand=card.brand[:30],
                last4=card.last4[:4],
                ends=card.ends[:7],
                added_at=now,
                added_by=form.asked_by,
            )
        own_row = PaymentCardForm.objects.filter(pk=form.pk, state=PaymentCardFormState.OPEN)
        if own_row.update(state=PaymentCardFormState.SAVED, due_at=None, settled_at=now, url=""):
            record_card_event("card.save", form, BILLING, now, card=f"{card.brand} {card.last4}")
            _pay_by_card(form, now)


def _pay_by_card(form: PaymentCardForm, now: datetime) -> None:
    """Let a new tenant that pays in advance pay each month by its card instead."""
    terms = account_terms.terms_of(form.tenant)
    if form.tenant.is_new and terms.payment == PaymentTerms.PREPAID:
        account_terms.set_account_terms(
            form.tenant,
            payment=PaymentTerms.INVOICE,
            account_status=terms.account_status,
            why="A payment card was saved.",
            actor=BILLING,
            now=now,
        )


def _retry_later(form: PaymentCardForm, why: str, now: datetime) -> None:
    wait = backoff_s(form.attempts)
    _update(form, due_at=now + timedelta(seconds=wait), reason=why[:200])
    with tenant_scope(form.tenant_id):
        outbox.enqueue("billing.card_form", form.pk, tenant_id=form.tenant_id, now=now, after_s=wait)


def _update(form: PaymentCardForm, **fields: object) -> None:
    with tenant_scope(form.tenant_id):
        PaymentCardForm.objects.filter(pk=form.pk, settled_at=None).update(**fields)
