"""Open a wallet top-up on request, one at a time."""

from datetime import datetime

from django.db import transaction

from billing.domain.money import InvalidAmount, Money, exponent_of, parse_amount
from billing.models import PaymentStatus, TopUp
from billing.models.payments import UNSETTLED
from billing.services.payments.topups.topup_collection import TOPUPS
from billing.services.tax.tax_determination import is_showback
from ports import payments
from ports.payments import PaymentGateway
from ports.postgres import sql_statements
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, ProblemError

MIN_UNITS, MAX_UNITS = 1, 50_000  # whole units of the currency, at once
TOPUP_LOCK_SQL = "SELECT pg_advisory_xact_lock(4, hashtext(%s::text))"


class TopUpRefused(ProblemError):
    code, status, title = "topup-not-allowed", 409, "The wallet cannot be topped up now"


@transaction.atomic
def open_topup(tenant: Tenant, *, minor: int, actor: Actor, now: datetime, window: int | None = None) -> TopUp:
    """Open a top-up, or retry the stuck one; a worker collects it.

    Raises InvalidValue for an amount out of bounds, TopUpRefused while another is pending or if no gateway is set.
    """
    check_topup_amount(minor, tenant.currency)
    check_pays(tenant)
    with sql_statements.prepared_cursor() as cursor:
        # Of two concurrent requests, the second finds the first's top-up.
        cursor.execute(TOPUP_LOCK_SQL, [tenant.pk])
    gateway = _require_gateway()
    if waits := TopUp.objects.filter(tenant=tenant, status__in=UNSETTLED).first():
        return _retry_topup(waits, gateway, minor, actor=actor, now=now)
    return TOPUPS.open(
        actor=actor,
        now=now,
        tenant=tenant,
        minor=minor,
        currency=tenant.currency,
        gateway=gateway.name,
        window=window,
        opened_by=actor.id,
    )


def check_pays(tenant: Tenant) -> None:
    """Raise TopUpRefused for a tenant that only sees its costs."""
    if is_showback(tenant.pk):
        raise TopUpRefused(
            f"{tenant.name} pays nothing: its costs are only shown, in a monthly report.", fix="No action is needed."
        )


def parse_topup_amount(text: str, currency: str, field: str) -> int:
    """Parse an amount as typed or sent, or raise InvalidValue."""
    try:
        return parse_amount(text, currency)
    except InvalidAmount as error:
        raise InvalidValue(field, str(error), fix="Enter an amount such as 100.00.") from error


def check_topup_amount(minor: int, currency: str, *, field: str = "amount") -> None:
    """Raise InvalidValue for an amount below or above what one top-up allows."""
    unit = 10 ** exponent_of(currency)
    if not MIN_UNITS * unit <= minor <= MAX_UNITS * unit:
        least, most = Money(MIN_UNITS * unit, currency), Money(MAX_UNITS * unit, currency)
        raise InvalidValue(field, f"A top-up must be {least} to {most}.", fix="Choose another amount.")


def _require_gateway() -> PaymentGateway:
    if (gateway := payments.gateway()) is None:
        raise TopUpRefused(
            "This installation does not collect payments.",
            fix="Contact the operator for other payment methods or credit.",
        )
    return gateway


def _retry_topup(waits: TopUp, gateway: PaymentGateway, minor: int, *, actor: Actor, now: datetime) -> TopUp:
    """Retry the same top-up.

    It may have taken the money already, so that another one could take it twice.
    """
    TOPUPS.lock(waits)  # a late worker may be settling it
    waits.refresh_from_db()
    if waits.status not in UNSETTLED:
        raise TopUpRefused(
            f"A top-up of {Money(waits.minor, waits.currency)} has just {waits.status}.",
            fix=Fix("Check it, and submit again if you want another one.", "GET", f"/api/v1/topups/{waits.pk}"),
        )
    if waits.status == PaymentStatus.PENDING:
        raise TopUpRefused(
            f"A top-up of {Money(waits.minor, waits.currency)} is in progress.",
            fix=Fix("Wait until it is settled.", "GET", f"/api/v1/topups/{waits.pk}"),
        )
    if (waits.gateway, waits.minor) != (gateway.name, minor):
        raise TopUpRefused(
            f"A top-up of {Money(waits.minor, waits.currency)} through {waits.gateway} is stuck; its result is"
            " unknown.",
            fix="Submit the same amount. It continues this top-up, so you are not charged twice.",
        )
    TOPUPS.retry(waits, actor=actor, now=now)
    return waits
