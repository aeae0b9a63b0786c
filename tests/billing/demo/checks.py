"""Checks at the end of the demo month."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import groupby

from django.core.management import CommandError, call_command
from django.db.models import Sum

from billing.domain.money import Money
from billing.models import BalanceDraw, GrantDraw, Invoice, InvoiceLine, RatedCharge
from billing.services.ledger import ledger_balances
from billing.services.reports import conservation
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.demo.demo_documents import CheckedDocuments
from tests.billing.demo.demo_month import (
    BUDGET,
    COMMITTED,
    COMMITTED_NANO,
    LATE,
    NOVEMBER_OVER,
    OPENS,
    TOP_UP,
    DemoMonth,
)


@dataclass(frozen=True)
class Check:
    """Result of one check: what was checked, what was found, whether it passed."""

    description: str
    found: str
    passed: bool


def run_checks(
    story: DemoMonth, handed: CheckedDocuments, october: dict[str, bytes], again: dict[str, bytes]
) -> Iterator[Check]:
    """Yield all checks; compares October's invoice bundles at issue (`october`) with now (`again`)."""
    yield from _documents(handed)
    yield from _kept()
    yield from _books()
    yield from _checks(story)
    same = sum(again[name] == raw for name, raw in october.items())
    yield Check(
        "invoices of October unchanged since they were issued",
        f"{same} of {len(october)}, byte for byte",
        same == len(october),
    )


def _documents(handed: CheckedDocuments) -> Iterator[Check]:
    with staff_scope():
        final = list(Invoice.objects.exclude(number=None).order_by("series", "number"))
    series = [[row.number for row in rows] for _, rows in groupby(final, key=lambda invoice: invoice.series)]
    gapless = all(numbers == list(range(1, len(numbers) + 1)) for numbers in series)
    yield Check("final invoices, numbered without gaps", f"{len(final)}", gapless and len(final) == handed.invoices)
    yield Check(
        "invoices recomputed by the customer's verifier",
        f"{handed.invoices} invoices, {handed.lines} lines, {handed.leases} leases",
        not handed.wrong and handed.lines > 0,
    )
    yield Check("PDF documents and page images", f"{handed.papers} and {handed.pages}", handed.papers > 0)


def _kept() -> Iterator[Check]:
    kept = conservation.check_conservation(first=OPENS, last=NOVEMBER_OVER)
    with staff_scope():
        lines = InvoiceLine.objects.exclude(invoice__number=None).count()
    yield Check(
        "seconds charged but not used, or used but not charged",
        f"{kept.charged_minus_active} of {kept.active_unit_seconds:,}",
        kept.charged_minus_active == 0 and kept.active_unit_seconds > 0,
    )
    yield Check(
        "seconds used without an allocation on a GPU",
        str(kept.active_without_place),
        not kept.active_without_place,
    )
    off = kept.lines_minus_charges, kept.misrounded_lines, kept.wrong_totals
    yield Check(f"{lines} lines: wrong sums, wrong rounding, wrong totals", "{}, {}, {}".format(*off), not any(off))


def _books() -> Iterator[Check]:
    with staff_scope():
        totals, drifts = ledger_balances.recomputed_trial_balance()
    for each in totals:
        sides = Money(each.debit, each.currency), Money(each.credit, each.currency)
        yield Check(f"ledger in {each.currency}: debits, credits", "{}, {}".format(*sides), each.balanced)
    yield Check("accounts whose balance differs from their transfers", str(len(drifts)), not drifts)
    said = StringIO()
    try:
        call_command("verify_ledger", stdout=said)
        whole = True
    except CommandError as wrong:
        said.write(str(wrong))
        whole = False
    chains = next((line for line in said.getvalue().splitlines() if line.startswith("chains")), said.getvalue())
    yield Check("hash chains verified", chains.removeprefix("chains").strip(), whole)


def _checks(story: DemoMonth) -> Iterator[Check]:
    """Check what happened to each tenant, from the rows."""
    seconds = {name: story.charged(name) for name in story.leases}
    yield Check(
        "a day across Lord Howe's half-hour change of clocks",
        f"{sum(s for s, _ in seconds['across-the-clock-change']):,} s",
        sum(s for s, _ in seconds["across-the-clock-change"]) == 24 * 3600,
    )
    change = seconds["fold-batch"]
    yield Check(
        "a price that changed while a lease ran",
        " + ".join(f"{s:,} s at {nano / 10**9:.2f}" for s, nano in change),
        [nano for _, nano in change] == [2_890_000_000, 2_490_000_000] and sum(s for s, _ in change) == 36 * 3600,
    )
    yield Check(
        "a quote kept its price after a price change",
        " + ".join(f"{s:,} s at {nano / 10**9:.2f}" for s, nano in seconds["dock-screen"]),
        [nano for _, nano in seconds["dock-screen"]] == [2_890_000_000],
    )
    yield Check(
        "spot interrupted after 90 s and after two hours",
        "charged {}, {:,} s".format(*(sum(s for s, _ in seconds[name]) for name in ("frame-02", "frame-03"))),
        [sum(s for s, _ in seconds[name]) for name in ("frame-02", "frame-03")] == [0, 7200],
    )
    yield _committed(story)
    yield from _money(story)


def _committed(story: DemoMonth) -> Check:
    """Check that half of a commitment was used and half is owed."""
    (covered, less), (unused, owed) = (story.committed().get(kind, (0, 0)) for kind in ("commit", "shortfall"))
    half, listed = COMMITTED // 2, 2_890_000_000
    return Check(
        "commitment of one GPU for 96 h: covered, unused but owed",
        f"{covered:,} s, {unused:,} s",
        (covered, unused) == (half, half)
        and (less, owed) == (-half * (listed - COMMITTED_NANO), half * COMMITTED_NANO),
    )


def _money(story: DemoMonth) -> Iterator[Check]:
    kestrel, monsoon = story.tenants["Kestrel Bio"].tenant, story.tenants["Monsoon AI"].tenant
    with tenant_scope(kestrel.pk):
        docked = story.leases["dock-1"].project_id
        spent = RatedCharge.objects.filter(project_id=docked).aggregate(all=Sum("exact_num"))["all"] or 0
        drawn = BalanceDraw.objects.aggregate(all=Sum("minor"))["all"] or 0
    cents = -(-int(spent) * 100 // (3600 * 10**9))
    yield Check(
        f"a budget of {Money(BUDGET, 'EUR')} admits leases up to its limit",
        f"{Money(cents, 'EUR')} spent, the next lease refused",
        0 < cents <= BUDGET and bool(story.refused),
    )
    with tenant_scope(monsoon.pk):
        bills = sum(Invoice.objects.exclude(number=None).values_list("total", flat=True))
        borne = GrantDraw.objects.filter(grant__idem__startswith="overrun ")
        ours = borne.aggregate(all=Sum("minor"))["all"] or 0
        left = ledger_balances.available_balance(monsoon.pk, "EUR")
    yield Check(
        f"a wallet of {Money(TOP_UP, 'EUR')}: invoiced, written off, left",
        f"{Money(bills, 'EUR')}, {Money(ours, 'EUR')}, {Money(left, 'EUR')}",
        bills - ours + left == TOP_UP and 0 <= left < TOP_UP,
    )
    with tenant_scope(story.tenants["Sakura Robotics"].tenant.pk):
        granted = GrantDraw.objects.aggregate(all=Sum("minor"))["all"] or 0
    yield Check("credit of ¥5,000 used before it expired", str(Money(granted, "JPY")), granted == 5000)
    yield Check("a payment card declined, then charged", story.declined, story.declined == "declined, succeeded")
    late = story.late()
    yield Check("late seconds of October billed on November's invoice", f"{late:,} s", late == LATE)
    note = story.note
    assert note is not None
    yield Check(
        "disputed, credited, and used by the next invoice",
        f"{Money(note.total, 'EUR')}, {Money(drawn, 'EUR')}",
        note.total == 595 and 0 < drawn <= 595,
    )
