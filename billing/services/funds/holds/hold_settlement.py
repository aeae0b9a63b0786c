"""Hold settlement: holds shrink to what is charged, and unused amounts are released."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import F, OuterRef, Subquery

from billing.models import Hold
from billing.services.funds.costs.hold_context import HoldContext, lease_usage, open_lease_hold
from billing.services.funds.holds import token_cap_holds
from billing.services.funds.holds.budget_holds import BudgetExceeded, set_budget_holds
from billing.services.funds.holds.token_cap_holds import TokenCapReached
from billing.services.funds.wallets import prepaid_holds, wallet_balances
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.services.leases import relocation_steps
from broker.services.leases.lifecycle import termination
from broker.services.quotas import block_new_quotas
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
CURRENT_SEQ = Subquery(Lease.objects.filter(pk=OuterRef("lease_id")).values("seq"))
CHECK_INTERVAL = timedelta(minutes=5)
BATCH_SIZE = 500  # leases checked per query
ENDED_STATES = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
WAITING_STATES = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING)


def settle_holds(*, now: datetime) -> int:
    """Update holds to the state of their leases; return how many were checked.

    A waiting lease whose budget no longer suffices, because a price rose or its month began, is ended.
    A running lease is not: its extra cost is taken all the same, and logged. A lease that cannot be
    checked does not block the others.
    """
    with system_scope():
        due = list(_leases_to_check(now))
    for lease_id, tenant_id in due:
        with tenant_scope(tenant_id):
            try:
                _check_lease(lease_id, tenant_id, now)
            except (DatabaseError, StaleLease, ValueError) as error:
                log.error("hold could not be raised", lease_id=lease_id, why=str(error).strip())
                Hold.objects.filter(lease_id=lease_id).update(checked_at=now, seq=CURRENT_SEQ)
    return len(due)


def _leases_to_check(now: datetime) -> Iterator[tuple[str, str]]:
    """Yield leases to check: changed ones, those without a hold, then the rest.

    The rest are those that were not checked for five minutes.
    """
    open_ = Hold.objects.filter(settled_at=None).order_by("checked_at").values_list("lease_id", "tenant_id")
    yield from open_.exclude(lease__seq=F("seq"))[:BATCH_SIZE]
    yield from query_rows("billing/funds/leases_without_hold", most=BATCH_SIZE)
    yield from open_.filter(checked_at__lte=now - CHECK_INTERVAL, lease__seq=F("seq"))[:BATCH_SIZE]


def _check_lease(lease_id: str, tenant_id: str, now: datetime) -> None:
    with transaction.atomic():
        block_new_quotas(tenant_id)
        rows = Lease.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
        lease = rows.get(pk=lease_id)
        try:
            with transaction.atomic():
                _update_holds(lease, now)
        except PaymentRequired as refusal:
            log.warning("lease has no money left", lease_id=lease.pk, why=refusal.detail)
            termination.release_lease(lease, reason=EndReason.UNPAID, now=now)
        except (BudgetExceeded, TokenCapReached) as refusal:  # it waits, and cannot start while its row is locked
            log.warning("queued lease has no budget left", lease_id=lease_id, why=refusal.detail)
            termination.release_lease(lease, reason=EndReason.BUDGET, now=now)


def _update_holds(lease: Lease, now: datetime) -> None:
    use, state = lease_usage(lease), LeaseState(lease.state)
    moves = relocation_steps.started_relocation(lease) is not None  # to another GPU: it was admitted for its whole time
    if state in WAITING_STATES or state == LeaseState.ACTIVE:
        force = state == LeaseState.ACTIVE or moves
        context = open_lease_hold(lease, use, now=now)
        set_budget_holds(context, context.max_cost.needed(lease, use, now=now), force=force or context.hold.created)
        token_cap_holds.update_token_cap_hold(lease, use, now=now, force=force)
        _update_wallet_hold(context, state, now)
    elif state == LeaseState.STOPPING or use.uncharged or (moves and state not in ENDED_STATES):
        # It may continue, or is not fully charged yet.
        Hold.objects.filter(lease=lease).update(checked_at=now, seq=lease.seq)
    else:
        context = open_lease_hold(lease, use, now=now)
        set_budget_holds(context, use.by_month, force=True)
        token_cap_holds.settle_token_cap_hold(lease, use)
        _update_wallet_hold(context, state, now)
        if state in ENDED_STATES:
            Hold.objects.filter(lease=lease).update(settled_at=now)


def _update_wallet_hold(context: HoldContext, state: LeaseState, now: datetime) -> None:
    """Keep a lease covered by a prepaid wallet while it may run.

    After that, only what it was charged stays reserved.
    """
    if not wallet_balances.is_prepaid(context.hold.tenant_id):
        prepaid_holds.release_hold(context.lease)
    elif state == LeaseState.ACTIVE:
        prepaid_holds.extend_cover(context, now=now)
    elif state in WAITING_STATES:
        prepaid_holds.reserve_next_hour(context, now=now)
    else:
        prepaid_holds.settle_hold(context, now=now)
