"""Months closed together come to the same rows as months closed one by one, and what is not plain is left to those."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceTax, LedgerTransfer, Letter
from billing.services import closing, closing_in_sets, rating
from billing.services.ledger import books
from tenants.models import AuditEvent
from tenants.services.walls import as_shard, as_staff, as_tenant
from tests.billing import stories
from tests.billing.histories import EURO, HOUR, at, customer, invoices, months, ran, runs, sold
from tests.billing.months.terms import tiered
from tests.billing.services.test_rating import undone
from tests.billing.stories import month_start
from tests.billing.tax.papers import taxed

pytestmark = pytest.mark.django_db
NOW = at("2026-12-01 12:00:00")
CHARGES_READ = (
    "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'billing_ratedcharge'"
)
ALL = 10**9  # so many one by one
NO_INDEX = "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off"
READ = """
SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_xact_user_tables
 WHERE relname IN ('billing_ledgeraccount', 'billing_accountbalance', 'billing_ledgertransfer', 'billing_invoiceline')
"""
OF_IT = ("id", "invoice_id")


@contextmanager
def counted() -> Iterator[list[int]]:
    """Tell how many months each call closed in sets."""
    found, real = list[int](), closing_in_sets.close

    def close(*args: Any, **named: Any) -> int:
        found.append(real(*args, **named))
        return found[-1]

    with patch.object(closing_in_sets, "close", close):
        yield found


@contextmanager
def read() -> Iterator[list[int]]:
    """Tell how many rows of the books and of invoices each set looked at."""
    found, real = list[int](), closing_in_sets._close

    def close(*args: Any) -> int:
        before = looked_at()
        closed = real(*args)
        found.append(looked_at() - before)
        return closed

    with patch.object(closing_in_sets, "_close", close):
        yield found


def looked_at() -> int:
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def told() -> dict[str, Any]:
    """Return all that the end of months writes, without what is random or only says when it was told."""
    with as_staff():
        rows = list(Invoice.objects.order_by("tenant", "period__span").select_related("period"))
        names = {row.pk: f"{row.tenant_id} {row.period.label}" for row in rows}
        months_of = ("tenant", "label", "span", "status", "closed_at", "time_zone")
        return {
            "months": sorted(map(str, BillingPeriod.objects.values_list(*months_of))),
            "invoices": {names[row.pk]: cells(row, "id", "period_id") for row in rows},
            "lines": sorted([names[row.invoice_id], *cells(row, *OF_IT)] for row in InvoiceLine.objects.all()),
            "taxes": sorted([names[row.invoice_id], *cells(row, *OF_IT)] for row in InvoiceTax.objects.all()),
            "books": sorted([names[row.ref], *moved(row)] for row in LedgerTransfer.objects.filter(kind="invoice")),
            "letters": sorted([names[row.about], *cells(row, "id", "about")] for row in Letter.objects.all()),
            "audit": sorted(
                [names[row.subject_id], *cells(row, "id", "subject_id")]
                for row in AuditEvent.objects.filter(action="invoice.finalize")
            ),
        }  # fmt: skip


def moved(row: LedgerTransfer) -> list[str]:
    """Tell of a transfer all but its accounts' numbers."""
    accounts = row.debit_account.type, row.credit_account.type
    return [row.idem.partition(":")[2], *accounts, str(row.minor), row.currency, str(row.at)]


def cells(row: Model, *random_: str) -> list[str]:
    return [
        str(getattr(row, each.attname)) for each in row._meta.concrete_fields if each.attname not in random_
    ]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 11))
def test_a_month_comes_to_the_same_in_a_set_and_alone(seed: int, month: int) -> None:
    chance, since, until = random.Random(seed), month_start(2026, month), month_start(2026, month + 2)
    later = month_start(2027, 3)
    with undone():
        taxed("DE", 19)
        sells = stories.market(chance, since, until, offerings=2, changes=2)
        for zone in chance.sample(stories.ZONES, 4):
            story = stories.tenant(zone, projects=2)
            stories.own_prices(chance, story, sells, cuts=2)
            stories.lives(chance, story, sells, since, until, leases=4)
        rating.rate(now=since + (until - since) / 2)
        found = []
        for most in (ALL, None):
            with undone(), counted() as sets:
                outcome = closing.close_due(now=later, most=most)
                found.append((outcome, told()))
        assert found[0][0] == found[1][0]
        for what, alone in found[0][1].items():
            assert found[1][1][what] == alone, what
        assert sets == [found[0][0].months] != [0]


def test_months_are_numbered_in_one_series_without_a_gap_and_are_in_the_books() -> None:
    for _ in range(5):
        _, project = customer("Europe/Berlin")
        ran(project, sold(EURO), at("2026-10-31 21:00:00"), HOUR)
    rating.rate(now=NOW)
    with patch.object(closing_in_sets, "SHARD", 2), counted() as sets:
        done = closing.close_due(now=NOW)
    assert (done.months, sets) == (5, [5])
    with as_staff():
        rows = Invoice.objects.order_by("number").values_list("series", "number", "total", "status")
        assert list(rows) == [("2026-10", n, 100, "finalized") for n in range(1, 6)]
        assert books.trial_balance()[0].balanced
    with counted() as sets:  # November, with nothing on it
        assert (closing.close_due(now=NOW).months, sets) == (5, [5])
        assert (closing.close_due(now=NOW).months, sets) == (0, [5, 0])


def test_a_set_looks_at_as_much_however_many_were_closed_before() -> None:
    offering = sold(EURO)
    for _ in range(10):
        _, project = customer()
        ran(project, offering, at("2026-10-31 21:00:00"), HOUR)
    rating.rate(now=NOW)
    with connection.cursor() as cursor:
        cursor.execute(NO_INDEX)  # as triggers plan for their session where a table is empty
        assert closing.close_due(now=NOW, most=2).months == 2
        cursor.execute(NO_INDEX.replace("off", "on"))
    with patch.object(closing_in_sets, "SHARD", 2), read() as sets:
        assert closing_in_sets.close(closing._due(NOW)[:8], meter=closing._meter, now=NOW) == 8
    assert sets == [sets[0]] * 4


def test_whether_a_month_is_plain_is_asked_without_a_look_at_others_charges() -> None:
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [EURO // 2], valid=(at("2026-10-01 00:00:00"), None))
    (mine, project), (other, elsewhere) = customer(), customer()
    ran(project, sold(EURO), at("2026-10-31 21:00:00"), HOUR)
    for _ in range(3):
        ran(elsewhere, offering, at("2026-10-31 21:00:00"), HOUR)
    rating.rate(now=NOW)
    with as_shard([mine.pk]), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(CHARGES_READ)
        before = int(cursor.fetchone()[0])
        assert closing_in_sets._plain([mine.pk], "2026-10") == {mine.pk}
        cursor.execute(CHARGES_READ)
        assert int(cursor.fetchone()[0]) - before == 1  # mine
        assert closing_in_sets._plain([mine.pk, other.pk], "2026-10") == {mine.pk}


def test_what_runs_on_is_cut_and_its_month_is_closed_with_the_others() -> None:
    tenant, project = customer()
    runs(project, sold(EURO), at("2026-10-31 23:00:00"))
    with counted() as sets:
        assert closing.close_due(now=NOW).months == 2
    assert sets == [2]
    assert [invoice.total for invoice in invoices(tenant)] == [100, 30 * 24 * 100]


def test_a_lease_without_a_proof_of_life_keeps_its_own_month_open_only() -> None:
    silent, project = customer()
    runs(project, sold(EURO), at("2026-10-31 23:00:00"), seen_at=at("2026-10-31 23:30:00"))
    other, elsewhere = customer()
    ran(elsewhere, sold(EURO), at("2026-10-31 23:00:00"), HOUR)
    rating.rate(now=NOW)
    with counted() as sets:
        done = closing.close_due(now=NOW)
    assert [waits.tenant_id for waits in done.waiting] == [silent.pk]
    assert (done.months, sets) == (2, [2])
    assert next(month.status for month in months(silent)) == "open"
    assert len(invoices(other)) == 1


def test_a_gap_in_prices_holds_up_only_its_own_month() -> None:
    lacking, project = customer()
    offering = sold(EURO, since=at("2026-10-31 23:30:00"))
    ran(project, offering, at("2026-10-31 23:00:00"), HOUR)
    _plain, elsewhere = customer()
    ran(elsewhere, sold(EURO), at("2026-10-31 23:00:00"), HOUR)
    rating.rate(now=NOW)
    with counted() as sets:
        done = closing.close_due(now=NOW)
    assert {gap.tenant for gap in done.gaps} == {lacking.pk}
    assert (done.months, sets) == (2, [2])


def test_a_set_that_is_refused_is_closed_one_by_one() -> None:
    tenants = []
    for _ in range(3):
        tenant, project = customer()
        tenants.append(tenant)
        ran(project, sold(EURO), at("2026-10-31 23:00:00"), HOUR)
    real = closing_in_sets.posting.finalized

    def of_one(ids: list[str], **named: Any) -> int:
        if len(ids) > 1:
            raise DatabaseError("no room")
        return real(ids, **named)

    rating.rate(now=NOW)
    with patch.object(closing_in_sets.posting, "finalized", of_one), counted() as sets:
        done = closing.close_due(now=NOW)
    assert (done.months, sets) == (6, [0])
    assert [len(invoices(tenant)) for tenant in tenants] == [1, 1, 1]


def test_nothing_is_written_for_whom_the_transaction_has_not_named() -> None:
    mine, project = customer()
    other, elsewhere = customer()
    for each in (project, elsewhere):
        ran(each, sold(EURO), at("2026-10-31 23:00:00"), HOUR)
    rating.rate(now=NOW)
    with as_shard([mine.pk]), transaction.atomic():
        changed = BillingPeriod.objects.filter(label="2026-10").update(time_zone="Europe/Oslo")
    assert changed == 1
    assert next(month.time_zone for month in months(other)) == "UTC"
    with pytest.raises(DatabaseError, match="row-level security"), as_shard([mine.pk]), transaction.atomic():
        Letter.objects.create(tenant=other, kind="invoice-final", about="inv_1", made_at=NOW)
    with as_tenant(mine.pk), connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('app.tenants', true), '')")
        assert cursor.fetchone() == ("",)
