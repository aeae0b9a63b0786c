"""Lease gate: launches, extensions and starts above a limit need approval.

Every way to queue or extend a lease runs the gates, so none gets round it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from billing.domain.approvals import Approver, Excess, LaunchLimits, LaunchSize, Measure, find_excesses
from billing.domain.money import Money
from billing.models import ApprovalLimit, ApprovalRequest, ApprovalState
from billing.services.approvals.launch_sizes import measure_launch
from broker.models import Lease, LeaseArray
from broker.services.leases.launch_approvals import ApprovalRequired
from ports.postgres import sql_statements

LIMITS_SQL = """
SELECT set_by, max_minor, max_milli_gpus, max_duration_s FROM billing_approvallimit WHERE tenant_id = %s
"""
VERBS = {Measure.MONEY: "cost", Measure.GPUS: "hold", Measure.DURATION: "last"}
BY = {Approver.TENANT: "an owner of the tenant", Approver.OPERATOR: "an operator"}


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """What a launch may come to, and which limits it exceeds."""

    size: LaunchSize
    currency: str
    excesses: Sequence[Excess]

    @property
    def approvers(self) -> frozenset[Approver]:
        return frozenset(each.approver for each in self.excesses)


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Raise ApprovalRequired for what exceeds a limit and was not approved.

    It runs last: what would be refused anyway is not asked for.
    """
    cursor = sql_statements.prepared_cursor()
    cursor.execute(LIMITS_SQL, [lease.tenant_id])

    def check() -> None:
        with cursor:
            limits = [LaunchLimits(Approver(set_by), *most) for set_by, *most in cursor.fetchall()]
        if not limits:
            return
        size = measure_launch(lease, now=now)
        if found := find_excesses(size, limits, []):
            approved = [each.approved for each in _approved_requests(lease)]
            found = find_excesses(size, limits, approved) if approved else found
        if found:
            raise _approval_required(MeasuredLaunch(size, lease.project.tenant.currency, tuple(found)))

    return check


def find_required(lease: Lease, *, array_size: int, now: datetime) -> ApprovalRequired | None:
    """Return why a prospective lease, or an array of it, needs approval; nothing is taken."""
    if not ApprovalLimit.objects.filter(tenant=lease.tenant_id).exists():
        return None
    if array_size > 1:
        lease.array = LeaseArray(tenant_id=lease.tenant_id, size=array_size)
    try:
        with transaction.atomic():
            gate(lease, now=now)()
            transaction.set_rollback(True)
    except ApprovalRequired as needed:
        return needed
    return None


def describe_amount(measure: Measure, amount: int, currency: str) -> str:
    """Describe an amount of a measure: €500.00, 8 GPUs, 12 h."""
    if measure is Measure.MONEY:
        return str(Money(amount, currency))
    if measure is Measure.GPUS:
        return f"{amount / 1000:g} GPU{'' if amount == 1000 else 's'}"
    hours, minutes = divmod(-(-amount // 60), 60)
    return f"{hours} h {minutes} min" if hours and minutes else f"{hours} h" if hours else f"{minutes} min"


def _approved_requests(lease: Lease) -> list[ApprovalRequest]:
    whose = Q(lease=lease.pk)
    if lease.array_id:
        whose |= Q(array=lease.array_id)
    if lease.approval_id:
        whose |= Q(pk=lease.approval_id)
    return list(ApprovalRequest.objects.filter(whose, tenant=lease.tenant_id, state=ApprovalState.APPROVED))


def _approval_required(measured: MeasuredLaunch) -> ApprovalRequired:
    found: dict[str, None] = {}  # in order, each once
    for each in measured.excesses:
        amount = describe_amount(each.measure, measured.size.amount(each.measure), measured.currency)
        limit = describe_amount(each.measure, each.limit, measured.currency)
        found[f"{VERBS[each.measure]} {amount} (limit {limit})"] = None
    who = " and ".join(BY[each] for each in Approver if each in measured.approvers)
    return ApprovalRequired(
        f"This may {' and '.join(found)}, so {who} must approve it.",
        measured=measured,
        approvers=sorted(measured.approvers),
        exceeded=[f"{each.approver}:{each.measure}" for each in measured.excesses],
    )
