"""Operators' decisions about months before their invoices are final: hold, approve, release."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Q, QuerySet

from billing.models import BillingPeriod, Invoice, InvoiceStatus
from billing.models.periods import OPEN
from billing.services.invoicing.month_close.close_month import review_ends_at
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class NotReviewable(ProblemError):
    code, status, title = "month-closed", 409, "The month is closed"


class ReviewState(StrEnum):
    """Where a month that is over stands on its way to a final invoice."""

    REVIEW = "review"  # closes by itself when its review is over
    HELD = "held"  # until somebody approves or releases it
    APPROVED = "approved"  # closes with the next run
    DUE = "due"  # its review is over: it closes with the next run, or is blocked


@dataclass(frozen=True, slots=True)
class ReviewedMonth:
    """A month that is over and not closed, with its draft."""

    month: BillingPeriod
    draft: Invoice | None
    state: ReviewState

    @property
    def closes_at(self) -> datetime | None:
        """When it closes by itself; None while it is held."""
        return None if self.state is ReviewState.HELD else review_ends_at(self.month)


def open_reviews(now: datetime) -> QuerySet[BillingPeriod]:
    """Return months that are over and still open, latest first.

    Needs to see all tenants.
    """
    over = Q(span__endswith__lte=now) | Q(held_at__isnull=False)
    rows = BillingPeriod.objects.filter(over, status=OPEN).select_related("tenant")
    return rows.order_by("-label", "tenant__name", "pk")


def with_drafts(months: Sequence[BillingPeriod], *, now: datetime) -> list[ReviewedMonth]:
    """Return months with their drafts and states; one query."""
    drafts = Invoice.objects.filter(period__in=[each.pk for each in months], status=InvoiceStatus.DRAFT)
    found = {draft.period_id: draft for draft in drafts}
    return [ReviewedMonth(each, found.get(each.pk), review_state(each, now=now)) for each in months]


def review_state(month: BillingPeriod, *, now: datetime) -> ReviewState:
    """Return where an open month that is over stands."""
    if month.held_at:
        return ReviewState.HELD
    if month.approved_at:
        return ReviewState.APPROVED
    return ReviewState.REVIEW if now < review_ends_at(month) else ReviewState.DUE


@transaction.atomic
def hold_month(month: BillingPeriod, *, why: str, actor: Actor, now: datetime) -> BillingPeriod:
    """Keep a month open until somebody approves it; a later reason replaces the earlier."""
    reason = eviction.clean_reason(why)
    return _decide(
        month, "hold", {"held_at": now, "held_reason": reason, "approved_at": None}, actor, now, reason=reason
    )


@transaction.atomic
def approve_month(month: BillingPeriod, *, actor: Actor, now: datetime) -> BillingPeriod:
    """Let a month close with the next run.

    Held or not, and whatever is left of its review.
    """
    return _decide(month, "approve", {"held_at": None, "held_reason": "", "approved_at": now}, actor, now)


@transaction.atomic
def release_month(month: BillingPeriod, *, actor: Actor, now: datetime) -> BillingPeriod:
    """Withdraw a hold or an approval: the month closes when its review is over."""
    return _decide(month, "release", {"held_at": None, "held_reason": "", "approved_at": None}, actor, now)


def _decide(
    month: BillingPeriod, verb: str, values: dict[str, object], actor: Actor, now: datetime, **detail: str
) -> BillingPeriod:
    with tenant_scope(month.tenant_id):
        found = BillingPeriod.objects.select_for_update(no_key=True).get(pk=month.pk)
        if found.status != OPEN:
            raise NotReviewable(
                f"{found.label} was closed in the meantime.", fix="Credit its invoice, or cancel and issue it again."
            )
        if all(bool(getattr(found, name)) == bool(value) for name, value in values.items()) and not detail:
            return found
        BillingPeriod.objects.filter(pk=found.pk).update(**values, decided_by=actor.label)
        tenant = Tenant.objects.get(pk=found.tenant_id)
        audit.record(
            f"month.{verb}",
            tenant,
            f"{found.label} of {tenant.name}",
            actor=actor,
            now=now,
            month=found.label,
            **detail,
        )
        found.refresh_from_db()
        return found
