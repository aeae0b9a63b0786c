"""Invoice runs killed at any statement and repeated."""

import random

import pytest

from billing.models import InvoiceSeries
from billing.services.invoicing import finalization
from tests.billing.crashes.crash_month import create_month
from tests.billing.crashes.killed_connections import COMMIT
from tests.billing.crashes.trial import CrashDatabase, run_undisturbed, run_with_crash
from tests.database import OwnDatabase

POINTS = 200  # the least that there must be to choose from
SAMPLE = 8


@pytest.fixture
def crash_database(own_database: OwnDatabase) -> CrashDatabase:
    create_month()
    return CrashDatabase(own_database.server, own_database.name)


@pytest.mark.deep
def test_an_invoice_run_killed_at_any_statement_gives_the_same_result_when_repeated(
    crash_database: CrashDatabase,
) -> None:
    whole = run_undisturbed(crash_database)
    assert len(whole.said) >= POINTS
    commits = [n for n, what in enumerate(whole.said) if what == COMMIT]
    chosen = {*random.sample(range(len(whole.said)), SAMPLE), *random.sample(commits, 2)}
    assert {point: wrong for point in chosen if (wrong := run_with_crash(crash_database, point, whole))} == {}
    assert run_with_crash(crash_database, commits[len(commits) // 2], whole, by_kill=True) == []


@pytest.mark.deep
def test_invoice_numbers_taken_outside_the_transaction_are_detected(
    crash_database: CrashDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(series: str, *, count: int = 1) -> int:
        """Take numbers in a transaction of its own, as a sequence does."""
        InvoiceSeries.objects.using("owner").get_or_create(series=series)
        row = InvoiceSeries.objects.using("owner").get(series=series)
        InvoiceSeries.objects.using("owner").filter(series=series).update(next_number=row.next_number + count)
        return row.next_number

    monkeypatch.setattr(finalization, "take_numbers", at_once)
    whole = run_undisturbed(crash_database)
    point = next(n for n, what in enumerate(whole.said) if what.startswith("-- Make draft invoices final"))
    assert any("has the numbers" in wrong for wrong in run_with_crash(crash_database, point, whole))
