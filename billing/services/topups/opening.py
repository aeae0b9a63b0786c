"""Putting money into the wallet: a person's request, one at a time."""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money, NotAnAmount, exponent_of, minor_of
from billing.models import PaymentStatus, TopUp
from billing.models.moves import UNSETTLED
from billing.services.topups.collecting import TOPUPS
from ports import database, payments
from ports.payments import Gateway
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.refusals import Fix, Invalid, Refused

LEAST, MOST = 1, 50_000  # whole units of the currency, at once
ALONE = "SELECT pg_advisory_xact_lock(4, hashtext(%s::text))"


class NotNow(Refused):
    code, status, title = "no-topup-now", 409, "The wallet cannot be topped up now"


@transaction.atomic
def top_up(tenant: Tenant, *, minor: int, actor: Actor, now: datetime, window: int | None = None) -> TopUp:
    """Open a top-up, or have the one that is stuck asked for again; a worker collects it.

    Raises Invalid for an amount out of bounds, NotNow while another is under way and where nobody collects.
    """
    check_amount(minor, tenant.currency)
    with database.prepared() as cursor:  # two who ask at once: one of them finds the other's
        cursor.execute(ALONE, [tenant.pk])
    gateway = _gateway()
    if waits := TopUp.objects.filter(tenant=tenant, status__in=UNSETTLED).first():
        return _ask_again(waits, gateway, minor, actor=actor, now=now)
    made = TopUp.objects.create(
        tenant=tenant,
        minor=minor,
        currency=tenant.currency,
        gateway=gateway.name,
        window=window,
        opened_at=now,
        opened_by=actor.id,
        due_at=now,
    )
    TOPUPS.record("open", made, actor=actor, now=now)
    TOPUPS.ring(made, now=now)
    return made


def amount(text: str, currency: str, field: str) -> int:
    """Read an amount as it was typed or sent, or raise Invalid."""
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid(field, str(odd), fix="Send an amount such as 100.00.") from odd


def check_amount(minor: int, currency: str, *, field: str = "amount") -> None:
    """Raise Invalid for less or more than goes into a wallet at once."""
    unit = 10 ** exponent_of(currency)
    if not LEAST * unit <= minor <= MOST * unit:
        least, most = Money(LEAST * unit, currency), Money(MOST * unit, currency)
        raise Invalid(field, f"A wallet takes from {least} to {most} at once.", fix="Choose another amount.")


def _gateway() -> Gateway:
    if (gateway := payments.gateway()) is None:
        raise NotNow(
            "This installation collects no payments.", fix="Ask the operator how to pay, or for credit."
        )
    return gateway


def _ask_again(waits: TopUp, gateway: Gateway, minor: int, *, actor: Actor, now: datetime) -> TopUp:
    """Let the same go on: it may have taken the money already, so that another could take it twice."""
    TOPUPS.lock(waits)  # a worker that was late may be settling it
    waits.refresh_from_db()
    if waits.status not in UNSETTLED:
        raise NotNow(
            f"A top-up of {Money(waits.minor, waits.currency)} has just {waits.status}.",
            fix=Fix(
                "Look at it, and ask once more if you want another.", "GET", f"/api/v1/topups/{waits.pk}"
            ),
        )
    if waits.status == PaymentStatus.PENDING:
        raise NotNow(
            f"A top-up of {Money(waits.minor, waits.currency)} is under way.",
            fix=Fix("Wait until it is settled.", "GET", f"/api/v1/topups/{waits.pk}"),
        )
    if (waits.gateway, waits.minor) != (gateway.name, minor):
        raise NotNow(
            f"A top-up of {Money(waits.minor, waits.currency)} through {waits.gateway} is stuck: nobody knows whether"
            " money moved.",
            fix="Ask for the same amount: it is the same top-up, so nothing is taken twice.",
        )
    TOPUPS.anew(waits, now=now)
    TOPUPS.record("retry", waits, actor=actor, now=now)
    return waits
