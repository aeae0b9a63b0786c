"""Invariant checks of charges and ledger, each a query over the rows.

Requires staff scope. They read much, so a task runs them every minute and pages show its newest results.
"""

from datetime import datetime, timedelta

from billing.models import InvariantRun
from broker.services.reports import invariant_checks as capacity
from broker.services.reports.invariant_checks import Invariant, InvariantResult
from ports.postgres.sql_statements import load_sql
from tenants.services.rls import staff_scope

KEPT = timedelta(days=7)
STORED = ("name", "description", "found", "examples")
CLAIMS = {  # the name of an invariant, and its description
    "charges match usage": "Every ended lease is charged for exactly the seconds it was active.",
    "no charge without usage": "Every charge lies within a period in which its lease was active.",
    "quotes honoured": "Every lease with a quote is charged at the quoted price.",
    "refunds match": ("Refunds of reclaimed starts equal the charges for them, to the second and the amount."),
    "corrected as approved": ("Corrections of open months are charged exactly as approved, and nothing else is."),
    "free starts refunded": (
        "Leases reclaimed soon after their start are free. Charges on final invoices need a credit note."
    ),
    "monthly totals match": (
        "On recently finalized invoices every line matches the charges of its month, and no line is negative."
    ),
    "no unpriced leases": "Every active lease has a current price.",
    "holds before start": "Every active lease with a budget has a hold on it.",
    "budgets match holds": (
        "The used amount of every budget month equals its holds, and settled holds equal the charges."
    ),
    "books balance": "Debits equal credits in every currency, and clearing accounts are empty.",
    "receivables match": ("The amount due of every recently posted invoice equals its receivable in the ledger."),
    "balances match": ("Every balance equals credit notes and top-ups minus invoice payments and refunds."),
    "grants match": ("Every grant account equals the granted amount minus used and expired, plus returned credit."),
    "invoices posted": (
        "Every recently finalized invoice, its payments and its credit notes are posted in the ledger."
    ),
}
INVARIANTS = tuple(
    Invariant(name, description, load_sql(f"billing/ledger/invariants/{name.replace(' ', '_')}"))
    for name, description in CLAIMS.items()
)
ALL_INVARIANTS = (*capacity.INVARIANTS, *INVARIANTS)  # those of the fleet first


def check_invariants(*, now: datetime) -> list[InvariantResult]:
    """Run every invariant check; one query."""
    return capacity.check_invariants(ALL_INVARIANTS, now=now)


def record_checks(*, now: datetime) -> list[InvariantResult]:
    """Run every invariant check, store the results, and delete those of a week ago."""
    with staff_scope():
        results = check_invariants(now=now)
    rows = [{name: getattr(result, name) for name in STORED} for result in results]
    InvariantRun.objects.create(checked_at=now, results=rows)
    InvariantRun.objects.filter(checked_at__lt=now - KEPT).delete()
    return results


def latest_checks(*, now: datetime) -> list[InvariantResult]:
    """Return the results of the newest run; those of now where none has run yet."""
    run = InvariantRun.objects.order_by("-checked_at").first()
    if run is None:
        return check_invariants(now=now)
    return [
        InvariantResult(row["name"], row["description"], row["found"], tuple(row["examples"]), run.checked_at)
        for row in run.results
    ]
