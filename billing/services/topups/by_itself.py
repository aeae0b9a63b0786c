"""Topping up by itself: below a threshold of what will be there, once in a stretch of time, until it is declined."""

from datetime import UTC, datetime, timedelta

import structlog
from django.db import DatabaseError, transaction

from billing.domain.money import Money
from billing.models import AutoTopUp, TopUp
from billing.models.moves import UNSETTLED
from billing.services.moves.moving import BILLING
from billing.services.topups import opening
from billing.services.topups.opening import NotNow
from billing.services.wallets import money
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=5)
BEGINNING = datetime(2020, 1, 1, tzinfo=UTC)


def window_of(now: datetime) -> int:
    """Return the number of the stretch of time in which there is one automatic top-up at most."""
    return (now - BEGINNING) // WINDOW


@transaction.atomic
def set_rule(tenant: Tenant, *, threshold: int, minor: int, actor: Actor, now: datetime) -> AutoTopUp:
    """Top up by `minor` whenever less than `threshold` is available; setting it again begins anew after a decline."""
    opening.check_amount(minor, tenant.currency)
    opening.check_amount(threshold, tenant.currency, field="threshold")
    rule, _ = AutoTopUp.objects.update_or_create(
        tenant=tenant,
        defaults={"threshold_minor": threshold, "minor": minor, "set_at": now, "stopped_at": None, "why": ""},
    )
    told = {"below": str(Money(threshold, tenant.currency)), "by": str(Money(minor, tenant.currency))}
    _record("topup.rule", tenant.pk, actor=actor, now=now, **told)
    return rule


@transaction.atomic
def unset_rule(tenant: Tenant, *, actor: Actor, now: datetime) -> None:
    """Top up by hand only, whether there was a rule or not."""
    AutoTopUp.objects.filter(tenant=tenant).delete()
    _record("topup.no_rule", tenant.pk, actor=actor, now=now)


def top_up_due(*, now: datetime) -> int:
    """Open what is due by rule; return how many. One that cannot be opened keeps nobody else's waiting."""
    with as_sweep():
        due = list(
            AutoTopUp.objects.filter(stopped_at=None).order_by("pk").values_list("tenant_id", flat=True)
        )
    opened = 0
    for tenant_id in due:
        try:
            with as_tenant(tenant_id):
                opened += _look(Tenant.objects.get(pk=tenant_id), now)
        except DatabaseError as error:
            log.error("a wallet could not be topped up", tenant=tenant_id, why=str(error).strip())
    return opened


def _look(tenant: Tenant, now: datetime) -> bool:
    """Judge by what will be there: what is set aside is gone already, and what is under way is to come."""
    rule = AutoTopUp.objects.filter(tenant=tenant, stopped_at=None).first()
    if rule is None or TopUp.objects.filter(tenant=tenant, status__in=UNSETTLED).exists():
        return False
    window = window_of(now)
    if TopUp.objects.filter(tenant=tenant, window=window).exists():
        return False
    if money.funds(tenant, now=now).available >= rule.threshold_minor:
        return False
    try:
        opening.top_up(tenant, minor=rule.minor, actor=BILLING, now=now, window=window)
    except NotNow:  # somebody was faster, or nobody collects here
        return False
    return True


def _record(action: str, tenant_id: str, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=tenant_id,
        subject_id=tenant_id,
        subject_label="wallet",
        **detail,
    )
