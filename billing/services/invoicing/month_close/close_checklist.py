"""Checklist for closing a month of all tenants: what is done, what is missing.

Requires staff scope. Months close by themselves once they are over; the checklist says why one has
not, and what a person can do about it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, Max, Q, Sum

from billing.domain.money import Money
from billing.domain.tax import TAXED_TREATMENTS
from billing.models import (
    BillingPeriod,
    Correction,
    Dispute,
    DisputeStatus,
    Invoice,
    InvoiceStatus,
    InvoiceTax,
    Payment,
    PaymentStatus,
)
from billing.models.corrections import CorrectionStatus
from billing.models.invoices import OPEN_AMOUNT, OPEN_STATUSES
from billing.models.periods import OPEN
from billing.services.invoicing.month_close.close_month import CLOSING_GRACE
from billing.services.ledger import invariant_checks, ledger_balances
from billing.services.rating import unpriced_usage
from ports.postgres.sql_statements import query_rows

MAX_EXAMPLES = 5


class CheckState(StrEnum):
    DONE = "done"
    PENDING = "pending"  # resolved by time, a worker, or later by a person
    ACTION_REQUIRED = "action_required"  # by a person


@dataclass(frozen=True, slots=True)
class CloseCheck:
    """One condition of the checklist: what was found, and how to fix it."""

    name: str
    description: str
    state: CheckState
    found: str
    examples: tuple[str, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CloseChecklist:
    label: str
    checks: tuple[CloseCheck, ...]

    @property
    def done_count(self) -> int:
        return sum(check.state is CheckState.DONE for check in self.checks)


def month_labels(*, now: datetime) -> list[str]:
    """Return the labels of the months that have begun for any tenant, the newest first."""
    begun = BillingPeriod.objects.filter(span__startswith__lte=now)
    return list(begun.order_by("-label").values_list("label", flat=True).distinct())


def build_checklist(label: str, *, now: datetime) -> CloseChecklist:
    """Return the checklist of a month, in the order of closing."""
    months = BillingPeriod.objects.filter(label=label)
    end = months.aggregate(end=Max("span__endswith"))["end"] or now
    return CloseChecklist(
        label,
        (
            _check_month_ended(label, now),
            _check_unobserved_leases(label, now),
            _check_prices(end, now),
            _check_tax_rates(label),
            _check_corrections(),
            _check_disputes(label),
            _check_invariants(now),
            _check_ledger(),
            _check_closed(label, now),
            _check_issued(label),
            _check_collected(label),
        ),
    )


def _check_month_ended(label: str, now: datetime) -> CloseCheck:
    ends = Max("span__endswith")
    months = BillingPeriod.objects.filter(label=label)
    found = months.aggregate(
        all=Count("pk"), ended=Count("pk", filter=Q(span__endswith__lte=now - CLOSING_GRACE)), last=ends
    )
    not_ended = found["all"] - found["ended"]
    last = f"; the last ends {found['last']:%d %b %H:%M} UTC and closes {CLOSING_GRACE.seconds // 60} minutes later"
    return CloseCheck(
        "The month is over",
        "The month has ended in every tenant's time zone.",
        CheckState.PENDING if not_ended else CheckState.DONE,
        f"{found['ended']} of {found['all']} months have ended{last if not_ended else ''}",
    )


def _check_unobserved_leases(label: str, now: datetime) -> CloseCheck:
    late = [
        f"{lease} of {name}" for lease, name in query_rows("billing/invoicing/unobserved_leases", label=label, now=now)
    ]
    return CloseCheck(
        "No usage is pending",
        "Every lease that ran across the end of the month has reported since then.",
        CheckState.PENDING if late else CheckState.DONE,
        _format_count(len(late), "lease has", "leases have") + " not reported since",
        tuple(late[:MAX_EXAMPLES]),
        "Leases are checked every four minutes. If this stays, check the connection to the cluster." if late else "",
    )


def _check_prices(end: datetime, now: datetime) -> CloseCheck:
    missing = [gap for gap in unpriced_usage.unpriced_usage(now=now) if gap.since < end]
    return CloseCheck(
        "Everything has a price",
        "All usage has a price. Tenants with unpriced usage are not charged.",
        CheckState.ACTION_REQUIRED if missing else CheckState.DONE,
        _format_count(len(missing), "usage period is", "usage periods are") + " without a price",
        tuple(f"{gap.lease} of {gap.tenant_name}, {gap.label}" for gap in missing[:MAX_EXAMPLES]),
        "Publish a price that starts where the gap starts." if missing else "",
    )


def _check_tax_rates(label: str) -> CloseCheck:
    gaps = InvoiceTax.objects.filter(
        invoice__period__label=label, invoice__treatment__in=TAXED_TREATMENTS, rate_bp=None, invoice__number=None
    ).exclude(net=0)
    named = sorted(gaps.values_list("invoice__tenant__name", flat=True))
    return CloseCheck(
        "Every tax has a rate",
        "Each draft has a tax rate for its country and category on the last day of the month.",
        CheckState.ACTION_REQUIRED if named else CheckState.DONE,
        _format_count(len(named), "draft lacks", "drafts lack") + " a rate",
        tuple(named[:MAX_EXAMPLES]),
        "Add the rate on the Taxes page." if named else "",
    )


def _check_corrections() -> CloseCheck:
    """Check the corrections of any month.

    One that is approved later is booked in the months open then, or by credit notes.
    """
    open_ = Correction.objects.filter(status__in=[CorrectionStatus.PROPOSED, CorrectionStatus.APPROVED])
    rows = list(open_.order_by("proposed_at"))
    bad = [row for row in rows if row.status == CorrectionStatus.PROPOSED]
    return CloseCheck(
        "Corrections are decided",
        "No correction waits for approval or booking. Corrections do not block the month.",
        CheckState.ACTION_REQUIRED if bad else CheckState.PENDING if rows else CheckState.DONE,
        _format_count(len(bad), "waits", "wait") + f" for approval, {len(rows) - len(bad)} being booked",
        tuple(f"{Money(row.minor, row.currency)}, {row.reason}" for row in rows[:MAX_EXAMPLES]),
        "Approve or withdraw them on the Corrections page." if bad else "",
    )


def _check_disputes(label: str) -> CloseCheck:
    """Check the open disputes of this month's invoices."""
    open_ = Dispute.objects.filter(status=DisputeStatus.OPEN, invoice__period__label=label)
    rows = list(open_.select_related("invoice", "line", "tenant").order_by("opened_at"))
    return CloseCheck(
        "Disputes are resolved",
        "Disputed amounts are not collected. Open disputes do not block the month.",
        CheckState.PENDING if rows else CheckState.DONE,
        _format_count(len(rows), "dispute is", "disputes are") + " open",
        tuple(f"line {row.line.n} of {row.invoice}, {row.tenant.name}" for row in rows[:MAX_EXAMPLES]),
        "Resolve them on the Disputes page." if rows else "",
    )


def _check_invariants(now: datetime) -> CloseCheck:
    every = invariant_checks.latest_checks(now=now)
    failed = [result for result in every if not result.holds]
    return CloseCheck(
        "Integrity checks pass",
        "All integrity checks of capacity, charges and ledger pass.",
        CheckState.ACTION_REQUIRED if failed else CheckState.DONE,
        f"{len(every) - len(failed)} of {len(every)} passed",
        tuple(f"{result.name}: {result.found:,} violations" for result in failed[:MAX_EXAMPLES]),
        "See the System page and fix the cause before invoices are issued." if failed else "",
    )


def _check_ledger() -> CloseCheck:
    unbalanced = [total.currency for total in ledger_balances.stored_trial_balance() if not total.balanced]
    return CloseCheck(
        "The ledger balances",
        "Debits equal credits in every currency.",
        CheckState.ACTION_REQUIRED if unbalanced else CheckState.DONE,
        _format_count(len(unbalanced), "currency is", "currencies are") + " not balanced",
        tuple(unbalanced[:MAX_EXAMPLES]),
        "Run manage.py verify_ledger to see the accounts." if unbalanced else "",
    )


def _check_closed(label: str, now: datetime) -> CloseCheck:
    months = BillingPeriod.objects.filter(label=label)
    not_closed = months.filter(status=OPEN, span__endswith__lte=now - CLOSING_GRACE)
    names = sorted(not_closed.values_list("tenant__name", flat=True))
    blocked = sorted(not_closed.exclude(blocked_reason="").values_list("tenant__name", "blocked_reason"))
    not_ended = months.filter(status=OPEN).exclude(span__endswith__lte=now - CLOSING_GRACE).count()
    return CloseCheck(
        "Every month is closed",
        "Closed months cannot change. Late usage is charged in the next month.",
        CheckState.ACTION_REQUIRED if blocked else CheckState.PENDING if names or not_ended else CheckState.DONE,
        _format_count(len(names), "finished month is", "finished months are") + " still open",
        tuple(f"{name}: {why}" for name, why in blocked[:MAX_EXAMPLES]) or tuple(names[:MAX_EXAMPLES]),
        "Fix the listed causes. The next run retries."
        if blocked
        else "Months close every ten minutes. Close finished months now to see the result at once."
        if names
        else "",
    )


def _check_issued(label: str) -> CloseCheck:
    invoices = Invoice.objects.filter(period__label=label).exclude(status=InvoiceStatus.VOID)
    drafts = invoices.filter(number=None).count()
    totals = _format_totals(
        invoices.exclude(number=None).values_list("currency").annotate(all=Sum("total")).order_by("currency")
    )
    count = _format_count(invoices.exclude(number=None).count(), "invoice", "invoices")
    return CloseCheck(
        "Every draft is issued",
        "Issued invoices have a number, parties and tax, and cannot change.",
        CheckState.PENDING if drafts else CheckState.DONE,
        f"{count}{f' of {totals}' if totals else ''}, {_format_count(drafts, 'draft', 'drafts')} left",
    )


def _check_collected(label: str) -> CloseCheck:
    final = Invoice.objects.filter(period__label=label, status__in=OPEN_STATUSES)
    due = _format_totals(final.values_list("currency").annotate(left=Sum(OPEN_AMOUNT)).order_by("currency"))
    stuck = Payment.objects.filter(invoice__in=final, status=PaymentStatus.STUCK)
    waits = sorted(str(payment.invoice) for payment in stuck.select_related("invoice"))
    state = CheckState.ACTION_REQUIRED if waits else CheckState.PENDING if due else CheckState.DONE
    return CloseCheck(
        "Everything is collected",
        "All invoices are paid or settled by credit.",
        state,
        f"{due} is still due on {_format_count(final.count(), 'invoice', 'invoices')}" if due else "nothing is due",
        tuple(waits[:MAX_EXAMPLES]),
        "These payments need attention. See the System page." if waits else "",
    )


def _format_totals(rows: Iterable[tuple[str, int]]) -> str:
    return " and ".join(str(Money(int(minor), currency)) for currency, minor in rows if minor)


def _format_count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
