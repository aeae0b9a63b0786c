"""Closing a month of all tenants, as a list of what must be so and what is still missing. Must run as staff.

Months close by themselves once they are over; what is here says why one has not, and what a person can do about it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import connection
from django.db.models import Count, F, Max, Q, Sum

from billing.domain.money import Money
from billing.domain.tax import TAXED
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
from billing.models.periods import OPEN
from billing.services import gaps, proofs
from billing.services.closing import GRACE
from billing.services.ledger import books
from billing.services.statements import statement

SHOWN = 5


class State(StrEnum):
    DONE = "done"
    WAITS = "waits"  # time or a worker brings it about
    BAD = "bad"  # a person has to


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that must be so: what was found of it, and what to do about what was not."""

    name: str
    says: str
    state: State
    found: str
    examples: tuple[str, ...] = ()
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Checklist:
    label: str
    items: tuple[Item, ...]

    @property
    def done(self) -> int:
        return sum(item.state is State.DONE for item in self.items)


def labels() -> list[str]:
    """Return the months that any tenant has, the newest first."""
    return list(BillingPeriod.objects.order_by("-label").values_list("label", flat=True).distinct())


def look(label: str, *, now: datetime) -> Checklist:
    """Go through a month, in the order in which it closes."""
    months = BillingPeriod.objects.filter(label=label)
    end = months.aggregate(end=Max("span__endswith"))["end"] or now
    return Checklist(
        label,
        (
            _over(label, now),
            _meters(label, now),
            _prices(end, now),
            _taxes(label),
            _corrections(),
            _disputes(label),
            _proofs(now),
            _books(),
            _closed(label, now),
            _issued(label),
            _collected(label),
        ),
    )


def _over(label: str, now: datetime) -> Item:
    ends = Max("span__endswith")
    months = BillingPeriod.objects.filter(label=label)
    found = months.aggregate(
        all=Count("pk"), over=Count("pk", filter=Q(span__endswith__lte=now - GRACE)), last=ends
    )
    left = found["all"] - found["over"]
    last = f"; the last ends {found['last']:%d %b %H:%M} UTC and is closed five minutes later" if left else ""
    return Item(
        "The month is over",
        "In every tenant's own time zone.",
        State.WAITS if left else State.DONE,
        f"{found['over']} of {found['all']} months are{last}",
    )


def _meters(label: str, now: datetime) -> Item:
    with connection.cursor() as cursor:
        cursor.execute(statement("late_meters"), {"label": label, "now": now})
        late = [f"{lease} of {name}" for lease, name in cursor.fetchall()]
    return Item(
        "No meter is late",
        "Whatever ran across the end was seen alive since, so that its part of the month is certain.",
        State.WAITS if late else State.DONE,
        _count(len(late), "lease has", "leases have") + " not been seen since",
        tuple(late[:SHOWN]),
        "A look comes every five minutes. If it stays, see whether the lease's cluster is reached."
        if late
        else "",
    )


def _prices(end: datetime, now: datetime) -> Item:
    missing = [gap for gap in gaps.unpriced(now=now) if gap.since < end]
    return Item(
        "Everything has a price",
        "No second that was used or stored lacks one; where one does, nothing of its tenant is charged.",
        State.BAD if missing else State.DONE,
        _count(len(missing), "stretch is", "stretches are") + " without a price",
        tuple(f"{gap.lease} of {gap.tenant_name}, {gap.label}" for gap in missing[:SHOWN]),
        "Publish a price that begins where the gap does." if missing else "",
    )


def _taxes(label: str) -> Item:
    gaps = InvoiceTax.objects.filter(
        invoice__period__label=label, invoice__treatment__in=TAXED, rate_bp=None, invoice__number=None
    ).exclude(net=0)
    named = sorted(gaps.values_list("invoice__tenant__name", flat=True))
    return Item(
        "Every tax has a rate",
        "For the country and category of each draft, on the month's last day.",
        State.BAD if named else State.DONE,
        _count(len(named), "draft lacks", "drafts lack") + " one",
        tuple(named[:SHOWN]),
        "Publish the rate on the page Taxes." if named else "",
    )


def _corrections() -> Item:
    """Of any month: what is approved later is booked in months that are open then, or by credit notes."""
    open_ = Correction.objects.filter(status__in=[CorrectionStatus.PROPOSED, CorrectionStatus.APPROVED])
    rows = list(open_.order_by("proposed_at"))
    bad = [row for row in rows if row.status == CorrectionStatus.PROPOSED]
    return Item(
        "Corrections are decided",
        "None waits for approval or is still being booked. They hold nothing up: later they are credit notes.",
        State.BAD if bad else State.WAITS if rows else State.DONE,
        _count(len(bad), "waits", "wait") + f" for approval, {len(rows) - len(bad)} being booked",
        tuple(f"{Money(row.minor, row.currency)}, {row.reason}" for row in rows[:SHOWN]),
        "Approve or withdraw them on the page Corrections." if bad else "",
    )


def _disputes(label: str) -> Item:
    """Of invoices of this month."""
    open_ = Dispute.objects.filter(status=DisputeStatus.OPEN, invoice__period__label=label)
    rows = list(open_.select_related("invoice", "line", "tenant").order_by("opened_at"))
    return Item(
        "Disputes are answered",
        "Nobody goes after what is disputed until then. They hold nothing up.",
        State.WAITS if rows else State.DONE,
        _count(len(rows), "dispute is", "disputes are") + " open",
        tuple(f"line {row.line.n} of {row.invoice}, {row.tenant.name}" for row in rows[:SHOWN]),
        "Answer them on the page Disputes." if rows else "",
    )


def _proofs(now: datetime) -> Item:
    every = proofs.check(now=now)
    failed = [proof for proof in every if not proof.holds]
    return Item(
        "What is charged is what was used",
        "All proofs of capacity, charges and books hold now.",
        State.BAD if failed else State.DONE,
        f"{len(every) - len(failed)} of {len(every)} hold",
        tuple(f"{proof.name}: {proof.found:,} against it" for proof in failed[:SHOWN]),
        "Look at the page System, and mend it before anybody is charged by it." if failed else "",
    )


def _books() -> Item:
    odd = [total.currency for total in books.trial_balance() if not total.balanced]
    return Item(
        "The books agree",
        "Debits are credits in every currency; that all is posted is among the proofs.",
        State.BAD if odd else State.DONE,
        _count(len(odd), "currency is", "currencies are") + " not balanced",
        tuple(odd[:SHOWN]),
        "Run manage.py verify_ledger: it names the accounts." if odd else "",
    )


def _closed(label: str, now: datetime) -> Item:
    months = BillingPeriod.objects.filter(label=label)
    left = months.filter(status=OPEN, span__endswith__lte=now - GRACE)
    names = sorted(left.values_list("tenant__name", flat=True))
    held = sorted(left.exclude(held_up="").values_list("tenant__name", "held_up"))
    ahead = months.filter(status=OPEN).exclude(span__endswith__lte=now - GRACE).count()
    return Item(
        "Every month is closed",
        "Nothing can be added to it any longer; what comes late is charged in the next one.",
        State.BAD if held else State.WAITS if names or ahead else State.DONE,
        _count(len(names), "month that is over is", "months that are over are") + " still open",
        tuple(f"{name}: {why}" for name, why in held[:SHOWN]) or tuple(names[:SHOWN]),
        "Mend what is said here of each; the next run tries again."
        if held
        else "A run comes every ten minutes; close now to see at once what it says."
        if names
        else "",
    )


def _issued(label: str) -> Item:
    invoices = Invoice.objects.filter(period__label=label).exclude(status=InvoiceStatus.VOID)
    drafts = invoices.filter(number=None).count()
    totals = _totals(
        invoices.exclude(number=None).values_list("currency").annotate(all=Sum("total")).order_by("currency")
    )
    count = _count(invoices.exclude(number=None).count(), "invoice", "invoices")
    return Item(
        "Every draft is issued",
        "With its number, its parties and its tax, and never changed again.",
        State.WAITS if drafts else State.DONE,
        f"{count}{f' of {totals}' if totals else ''}, {_count(drafts, 'draft', 'drafts')} left",
    )


def _collected(label: str) -> Item:
    final = Invoice.objects.filter(period__label=label, status=InvoiceStatus.FINALIZED)
    due = _totals(
        final.values_list("currency").annotate(left=Sum(F("total") - F("settled"))).order_by("currency")
    )
    stuck = Payment.objects.filter(invoice__in=final, status=PaymentStatus.STUCK)
    waits = sorted(str(payment.invoice) for payment in stuck.select_related("invoice"))
    state = State.BAD if waits else State.WAITS if due else State.DONE
    return Item(
        "Everything is collected",
        "Paid, or settled by credit.",
        state,
        f"{due} is still due on {_count(final.count(), 'invoice', 'invoices')}" if due else "nothing is due",
        tuple(waits[:SHOWN]),
        "These payments wait for a person: see the page System." if waits else "",
    )


def _totals(rows: Iterable[tuple[str, int]]) -> str:
    return " and ".join(str(Money(int(minor), currency)) for currency, minor in rows if minor)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
