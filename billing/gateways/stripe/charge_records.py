"""Records of charges: opened before the first request, settled once, then unchanged."""

from datetime import datetime

from billing.domain.stripe_amounts import UnsupportedCurrency, to_stripe
from billing.models import StripeCharge, StripeCustomer, StripeOutcome
from ports.payments import ChargeKeyTaken, GatewayCharge, GatewayRejected
from tenants.services.rls import tenant_scope

NO_CARD = "no_card"
NO_CARD_MESSAGE = "No payment card is saved for this tenant. Add one on the Payments page, then pay again."


def open_record(charge: GatewayCharge, *, now: datetime) -> StripeCharge:
    """Return the record of a charge, creating it if needed.

    Without a saved card it is settled as declined at once.
    """
    try:
        sent = to_stripe(charge.minor, charge.currency)
    except UnsupportedCurrency as unknown:
        raise GatewayRejected(str(unknown), code="currency_unknown") from None
    if sent < 1:
        raise GatewayRejected("The amount is below Stripe's minimum.", code="too_small")
    with tenant_scope(charge.payer):
        card = StripeCustomer.objects.filter(tenant_id=charge.payer).exclude(card_id="").first()
        fresh = StripeCharge(
            id=charge.key,
            tenant_id=charge.payer,
            minor=charge.minor,
            currency=charge.currency,
            sent_minor=sent,
            customer_id=card.customer_id if card else "",
            card_id=card.card_id if card else "",
            card=f"{card.brand} {card.last4}" if card else "",
            made_at=now,
        )
        if card is None:
            fresh.outcome, fresh.settled_at = StripeOutcome.DECLINED, now
            fresh.code, fresh.reason = NO_CARD, NO_CARD_MESSAGE
        StripeCharge.objects.bulk_create([fresh], ignore_conflicts=True)
        record = StripeCharge.objects.filter(pk=charge.key).first()
    if record is None or (record.minor, record.currency) != (charge.minor, charge.currency):
        raise ChargeKeyTaken(f"The key {charge.key} stands for another charge.")
    return record


def open_withdrawal_record(charge: GatewayCharge, *, now: datetime) -> StripeCharge:
    """Return the record of a charge to withdraw; a new one is declined at once."""
    fresh = StripeCharge(
        id=charge.key,
        tenant_id=charge.payer,
        minor=charge.minor,
        currency=charge.currency,
        sent_minor=0,
        outcome=StripeOutcome.DECLINED,
        code="withdrawn",
        reason="Nothing was sent to Stripe.",
        made_at=now,
        settled_at=now,
    )
    with tenant_scope(charge.payer):
        StripeCharge.objects.bulk_create([fresh], ignore_conflicts=True)
        record = StripeCharge.objects.filter(pk=charge.key).first()
    if record is None or (record.minor, record.currency) != (charge.minor, charge.currency):
        raise ChargeKeyTaken(f"The key {charge.key} stands for another charge.")
    return record


def set_stripe_invoice(record: StripeCharge, stripe_id: str) -> None:
    """Store the Stripe invoice of a charge, which is known before it has lines."""
    if record.stripe_id != stripe_id:
        record.stripe_id = stripe_id
        _update_open(record, stripe_id=stripe_id)


def abandon_stripe_invoice(record: StripeCharge) -> None:
    """Abandon the current Stripe invoice, so that the next attempt creates another."""
    _update_open(record, round=record.round + 1, stripe_id="")


def settle_record(
    record: StripeCharge, outcome: StripeOutcome, *, code: str = "", reason: str = "", now: datetime
) -> StripeCharge:
    """Settle a charge once; an earlier settlement stays."""
    _update_open(record, outcome=outcome, code=code[:60], reason=reason[:200], settled_at=now)
    with tenant_scope(record.tenant_id):
        return StripeCharge.objects.get(pk=record.pk)


def _update_open(record: StripeCharge, **fields: object) -> None:
    with tenant_scope(record.tenant_id):
        StripeCharge.objects.filter(pk=record.pk, outcome=StripeOutcome.OPEN).update(**fields)
