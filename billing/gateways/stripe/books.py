"""Our book of each charge: opened before anything is asked, settled once, and the same ever after."""

from datetime import datetime

from billing.domain.stripe_amounts import NotCollected, of_minor
from billing.models import StripeCharge, StripeCustomer, StripeOutcome
from ports.payments import Charge, KeyTaken, Rejected
from tenants.services.walls import as_tenant

NO_CARD = "no_card"
NO_CARD_SAID = "No card is saved for this tenant. Add one on the page of payments, then pay again."


def open_(charge: Charge, *, now: datetime) -> StripeCharge:
    """Return the book of a charge, made now if there is none; without a card it is settled as declined at once."""
    try:
        sent = of_minor(charge.minor, charge.currency)
    except NotCollected as unknown:
        raise Rejected(str(unknown), code="currency_unknown") from None
    if sent < 1:
        raise Rejected("It is less than the smallest amount that Stripe can take.", code="too_small")
    with as_tenant(charge.payer):
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
            fresh.code, fresh.reason = NO_CARD, NO_CARD_SAID
        StripeCharge.objects.bulk_create([fresh], ignore_conflicts=True)
        book = StripeCharge.objects.filter(pk=charge.key).first()
    if book is None or (book.minor, book.currency) != (charge.minor, charge.currency):
        raise KeyTaken(f"The key {charge.key} stands for another charge.")
    return book


def withdrawn(charge: Charge, *, now: datetime) -> StripeCharge:
    """Return the book of a charge that is to be given up; where there is none it is settled as declined at once."""
    fresh = StripeCharge(
        id=charge.key,
        tenant_id=charge.payer,
        minor=charge.minor,
        currency=charge.currency,
        sent_minor=0,
        outcome=StripeOutcome.DECLINED,
        code="withdrawn",
        reason="Nothing was ever sent to Stripe.",
        made_at=now,
        settled_at=now,
    )
    with as_tenant(charge.payer):
        StripeCharge.objects.bulk_create([fresh], ignore_conflicts=True)
        book = StripeCharge.objects.filter(pk=charge.key).first()
    if book is None or (book.minor, book.currency) != (charge.minor, charge.currency):
        raise KeyTaken(f"The key {charge.key} stands for another charge.")
    return book


def found(book: StripeCharge, stripe_id: str) -> None:
    """Write which invoice at Stripe stands for it; that is known before the invoice holds a line."""
    if book.stripe_id != stripe_id:
        book.stripe_id = stripe_id
        _write(book, stripe_id=stripe_id)


def give_up(book: StripeCharge) -> None:
    """Begin with another invoice at Stripe the next time: the one there was dropped."""
    _write(book, round=book.round + 1, stripe_id="")


def settle(
    book: StripeCharge, outcome: StripeOutcome, *, code: str = "", reason: str = "", now: datetime
) -> StripeCharge:
    """Write what came of it, once: whoever settled it before was right."""
    _write(book, outcome=outcome, code=code[:60], reason=reason[:200], settled_at=now)
    with as_tenant(book.tenant_id):
        return StripeCharge.objects.get(pk=book.pk)


def _write(book: StripeCharge, **fields: object) -> None:
    with as_tenant(book.tenant_id):
        StripeCharge.objects.filter(pk=book.pk, outcome=StripeOutcome.OPEN).update(**fields)
