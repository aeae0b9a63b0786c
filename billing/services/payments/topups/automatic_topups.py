"""Automatic top-ups: when funds fall below a threshold, until one is declined.

At most one per time window.
"""

from datetime import UTC, datetime, timedelta

import structlog
from django.db import DatabaseError, transaction

from billing.domain.money import Money
from billing.models import AutoTopUp, TopUp
from billing.models.payments import UNSETTLED
from billing.services.funds.wallets import wallet_balances
from billing.services.payments.topups import topup_creation
from billing.services.payments.topups.topup_creation import TopUpRefused
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import BILLING, Actor
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=5)
WINDOW_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def window_number(now: datetime) -> int:
    """Return the number of the window that allows one automatic top-up."""
    return (now - WINDOW_EPOCH) // WINDOW


@transaction.atomic
def set_automatic_topup(tenant: Tenant, *, threshold: int, minor: int, actor: Actor, now: datetime) -> AutoTopUp:
    """Set automatic top-ups of `minor` whenever less than `threshold` is available.

    Setting the rule again resumes it after a decline.
    """
    topup_creation.check_pays(tenant)
    topup_creation.check_topup_amount(minor, tenant.currency)
    topup_creation.check_topup_amount(threshold, tenant.currency, field="threshold")
    rule, _ = AutoTopUp.objects.update_or_create(
        tenant=tenant,
        defaults={"threshold_minor": threshold, "minor": minor, "set_at": now, "stopped_at": None, "why": ""},
    )
    amounts = {"below": str(Money(threshold, tenant.currency)), "by": str(Money(minor, tenant.currency))}
    _record_rule("topup.rule", tenant.pk, actor=actor, now=now, **amounts)
    return rule


@transaction.atomic
def remove_automatic_topup(tenant: Tenant, *, actor: Actor, now: datetime) -> None:
    """Remove the rule for automatic top-ups, if there is one."""
    AutoTopUp.objects.filter(tenant=tenant).delete()
    _record_rule("topup.no_rule", tenant.pk, actor=actor, now=now)


def open_due_topups(*, now: datetime) -> int:
    """Open automatic top-ups that are due; return how many.

    One that fails does not block the others.
    """
    with system_scope():
        due = list(AutoTopUp.objects.filter(stopped_at=None).order_by("pk").values_list("tenant_id", flat=True))
    opened = 0
    for tenant_id in due:
        try:
            with tenant_scope(tenant_id):
                opened += _open_if_below(Tenant.objects.get(pk=tenant_id), now)
        except DatabaseError as error:
            log.error("automatic top-up failed", tenant=tenant_id, why=str(error).strip())
    return opened


def _open_if_below(tenant: Tenant, now: datetime) -> bool:
    """Open a top-up if the available funds are below the threshold.

    Reserved money counts as gone; a pending top-up is awaited.
    """
    rule = AutoTopUp.objects.filter(tenant=tenant, stopped_at=None).first()
    if rule is None or TopUp.objects.filter(tenant=tenant, status__in=UNSETTLED).exists():
        return False
    window = window_number(now)
    if TopUp.objects.filter(tenant=tenant, window=window).exists():
        return False
    if wallet_balances.wallet_funds(tenant, now=now).available >= rule.threshold_minor:
        return False
    try:
        topup_creation.open_topup(tenant, minor=rule.minor, actor=BILLING, now=now, window=window)
    except TopUpRefused:  # a concurrent top-up, or no gateway is set
        return False
    return True


def _record_rule(action: str, tenant_id: str, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(action, tenant_id, "wallet", tenant_id, actor=actor, now=now, **detail)
