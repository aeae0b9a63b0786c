"""Going after what is overdue: the next step of each invoice, once its day has come and never before its payment is
known to have failed.
"""

from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Count

from billing.domain.dunning import Action, Step, next_at
from billing.domain.money import Money
from billing.models import DunningStep, Invoice, InvoiceStatus
from billing.models.moves import UNSETTLED
from billing.services.disputes import window
from billing.services.dunning import letters, plan, standing
from billing.services.funds.budgets import alone
from broker.domain.states import EndReason
from broker.models import Lease
from broker.services.leases import ending
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")


def remind_due(*, now: datetime) -> int:
    """Take the next step of every invoice whose day has come; return how many. Repeating it takes none twice."""
    steps = plan.steps()
    if not steps:
        return 0
    with as_sweep():
        late = Invoice.objects.filter(status=InvoiceStatus.FINALIZED, due_at__lte=now - steps[0].after)
        open_ = window.to_chase(late).annotate(taken=Count("reminders")).filter(taken__lt=len(steps))
        found = list(open_.order_by("due_at", "pk").values_list("pk", "tenant_id"))
    taken = 0
    for invoice_id, tenant_id in found:
        try:
            taken += _step(invoice_id, tenant_id, steps, now)
        except DatabaseError as error:
            log.error(
                "an overdue invoice could not be gone after", invoice=invoice_id, why=str(error).strip()
            )
    return taken


def _step(invoice_id: str, tenant_id: str, steps: tuple[Step, ...], now: datetime) -> bool:
    """Take one step of an invoice where it is due. What runs is ended and the step noted together, or neither is."""
    with as_tenant(tenant_id):
        tenant = Tenant.objects.get(pk=tenant_id)
        if _due(invoice_id, steps, now) is None:
            return False
        alone(tenant_id)  # first of all locks, as whoever takes money holds it off first of all
        # Then the invoice, as whoever pays or disputes it does: what is decided here is looked at behind it.
        rows = Invoice.objects.select_for_update(no_key=True, of=("self",)).select_related("period")
        invoice = rows.get(pk=invoice_id)
        if (found := _due(invoice_id, steps, now)) is None:
            return (
                False  # paid or disputed while somebody else was let go first, or another worker was faster
            )
        step, minor = found
        if step.action is Action.END:
            _end_all(tenant, now)
        _note(invoice, tenant, step, minor, now)
        return True


def _due(invoice_id: str, steps: tuple[Step, ...], now: datetime) -> tuple[Step, int] | None:
    """Return the step that is due on an invoice now, and of how much; none while a payment of it is under way.

    What was disputed has, from the answer on, as many days as if it had become due then; the rest keeps its own. While
    any of it is disputed it is only reminded of, for the rest cannot be paid apart; and what is more than a letter
    leaves the days between two steps after the last answer, too.
    """
    invoice = Invoice.objects.get(pk=invoice_id)
    if invoice.due_at is None or invoice.payments.filter(status__in=UNSETTLED).exists():
        return None
    done = list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("done_at", flat=True))
    at = next_at(steps, due=invoice.due_at, done=done)
    if at is None or at > now:
        return None
    step = steps[len(done)]
    minor = window.chased(invoice) - window.resting(invoice, since=now - step.after)
    if minor <= 0:
        return None
    letter = step.action is Action.REMIND
    return (step, minor) if letter or _may_press(invoice, steps, len(done), now) else None


def _may_press(invoice: Invoice, steps: tuple[Step, ...], n: int, now: datetime) -> bool:
    """Tell whether more than a letter may be next: nothing is disputed, and the last answer is old enough."""
    answered = window.decided_at(invoice)
    between = steps[n].after - (steps[n - 1].after if n else timedelta())
    return not window.of(invoice) and (answered is None or answered + between <= now)


def _note(invoice: Invoice, tenant: Tenant, step: Step, minor: int, now: datetime) -> None:
    DunningStep.objects.create(
        tenant=tenant,
        invoice=invoice,
        n=DunningStep.objects.filter(invoice=invoice).count(),
        action=step.action.value,
        minor=minor,
        done_at=now,
    )
    standing.worsen(tenant, step.action, invoice, minor=minor, now=now)
    letters.write(tenant, invoice, step.action, minor=minor)
    audit.record(
        "invoice.remind",
        actor=BILLING,
        now=now,
        tenant_id=tenant.pk,
        subject_id=invoice.pk,
        subject_label=str(invoice),
        step=step.action.value,
        due=str(Money(minor, invoice.currency)),
    )


def _end_all(tenant: Tenant, now: datetime) -> None:
    """End everything of a tenant that lives."""
    with transaction.atomic():
        rows = Lease.objects.live().select_for_update(of=("self",)).select_related("offering")
        for lease in rows.filter(tenant=tenant).order_by("pk"):
            ending.release(lease, reason=EndReason.UNPAID, now=now, actor=BILLING)
