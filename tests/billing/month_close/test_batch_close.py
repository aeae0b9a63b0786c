"""Batch close of months against single close."""

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

from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceTax, LedgerTransfer, QueuedEmail
from billing.services.invoicing.month_close import batch_close, close_month
from billing.services.ledger import ledger_balances
from billing.services.rating import lease_rating
from tenants.models import AuditEvent
from tenants.services.rls import batch_scope, staff_scope, tenant_scope
from tests.billing import random_tenants
from tests.billing.agreements.agreed_terms import set_tiered_price
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    periods_of,
    utc,
)
from tests.billing.random_tenants import month_start
from tests.billing.rating.test_lease_rating import undone
from tests.billing.tax.taxed_tenants import set_tax_rate

pytestmark = pytest.mark.django_db
NOW = utc("2026-12-01 12:00:00")
CHARGES_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'billing_ratedcharge'"
ALL = 10**9  # so many one by one
NO_INDEX = "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off"
READ = """
SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_xact_user_tables
 WHERE relname IN ('billing_ledgeraccount', 'billing_accountbalance', 'billing_ledgertransfer', 'billing_invoiceline')
"""
OF_IT = ("id", "invoice_id")


@contextmanager
def counted_batches() -> Iterator[list[int]]:
    """Yield how many months each call closed in batches."""
    found, real = list[int](), batch_close.close_simple_months

    def close(*args: Any, **named: Any) -> int:
        found.append(real(*args, **named))
        return found[-1]

    with patch.object(batch_close, "close_simple_months", close):
        yield found


@contextmanager
def rows_read_per_batch() -> Iterator[list[int]]:
    """Yield how many ledger and invoice rows each batch read."""
    found, real = list[int](), batch_close._close_batch

    def close(*args: Any) -> int:
        before = rows_read()
        closed = real(*args)
        found.append(rows_read() - before)
        return closed

    with patch.object(batch_close, "_close_batch", close):
        yield found


def rows_read() -> int:
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def month_end_rows() -> dict[str, Any]:
    """Return all rows of a month end without random values."""
    with staff_scope():
        rows = list(Invoice.objects.order_by("tenant", "period__span").select_related("period"))
        names = {row.pk: f"{row.tenant_id} {row.period.label}" for row in rows}
        months_of = ("tenant", "label", "span", "status", "closed_at", "time_zone")
        return {
            "months": sorted(map(str, BillingPeriod.objects.values_list(*months_of))),
            "invoices": {names[row.pk]: cells(row, "id", "period_id") for row in rows},
            "lines": sorted([names[row.invoice_id], *cells(row, *OF_IT)] for row in InvoiceLine.objects.all()),
            "taxes": sorted([names[row.invoice_id], *cells(row, *OF_IT)] for row in InvoiceTax.objects.all()),
            "ledger": sorted(
                [names[row.ref], *transfer_cells(row)] for row in LedgerTransfer.objects.filter(kind="invoice")
            ),
            "letters": sorted(
                [names[row.subject_id], *cells(row, "id", "subject_id")] for row in QueuedEmail.objects.all()
            ),
            "audit": sorted(
                [names[row.subject_id], *cells(row, "id", "subject_id")]
                for row in AuditEvent.objects.filter(action="invoice.finalize")
            ),
        }  # fmt: skip


def transfer_cells(row: LedgerTransfer) -> list[str]:
    """Return a transfer without its account numbers."""
    accounts = row.debit_account.type, row.credit_account.type
    return [row.idem.partition(":")[2], *accounts, str(row.minor), row.currency, str(row.at)]


def cells(row: Model, *random_: str) -> list[str]:
    return [str(getattr(row, each.attname)) for each in row._meta.concrete_fields if each.attname not in random_]


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 11))
def test_batch_close_and_single_close_give_the_same_rows(seed: int, month: int) -> None:
    chance, since, until = random.Random(seed), month_start(2026, month), month_start(2026, month + 2)
    later = month_start(2027, 3)
    with undone():
        set_tax_rate("DE", 19)
        sells = random_tenants.create_market(chance, since, until, offerings=2, changes=2)
        for zone in chance.sample(random_tenants.ZONES, 4):
            story = random_tenants.create_random_tenant(zone, projects=2)
            random_tenants.add_tenant_prices(chance, story, sells, cuts=2)
            random_tenants.add_random_leases(chance, story, sells, since, until, leases=4)
        lease_rating.rate_all_leases(now=since + (until - since) / 2)
        found = []
        for most in (ALL, None):
            with undone(), counted_batches() as sets:
                outcome = close_month.close_due_months(now=later, most=most)
                found.append((outcome, month_end_rows()))
        assert found[0][0] == found[1][0]
        for what, alone in found[0][1].items():
            assert found[1][1][what] == alone, what
        assert sets == [found[0][0].months] != [0]


def test_batch_closed_months_are_posted_and_numbered_without_a_gap() -> None:
    for _ in range(5):
        _, project = create_customer("Europe/Berlin")
        add_ended_lease(project, create_priced_offering(EURO), utc("2026-10-31 21:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with patch.object(batch_close, "BATCH_SIZE", 2), counted_batches() as sets:
        done = close_month.close_due_months(now=NOW)
    assert (done.months, sets) == (5, [5])
    with staff_scope():
        rows = Invoice.objects.order_by("number").values_list("series", "number", "total", "status")
        assert list(rows) == [("2026-10", n, 100, "finalized") for n in range(1, 6)]
        assert ledger_balances.stored_trial_balance()[0].balanced
    with counted_batches() as sets:  # November, with nothing on it
        assert (close_month.close_due_months(now=NOW).months, sets) == (5, [5])
        assert (close_month.close_due_months(now=NOW).months, sets) == (0, [5, 0])


def test_a_batch_reads_the_same_number_of_rows_however_many_were_closed_before() -> None:
    offering = create_priced_offering(EURO)
    for _ in range(10):
        _, project = create_customer()
        add_ended_lease(project, offering, utc("2026-10-31 21:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with connection.cursor() as cursor:
        cursor.execute(NO_INDEX)  # as triggers plan for their session where a table is empty
        assert close_month.close_due_months(now=NOW, most=2).months == 2
        cursor.execute(NO_INDEX.replace("off", "on"))
    with patch.object(batch_close, "BATCH_SIZE", 2), rows_read_per_batch() as sets:
        due = close_month._due_months(NOW)[:8]
        assert batch_close.close_simple_months(due, charge_until=close_month._charge_until, now=NOW) == 8
    assert max(sets) == sets[0], sets


def test_the_check_for_simple_months_reads_no_charges_of_other_tenants() -> None:
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [EURO // 2], valid=(utc("2026-10-01 00:00:00"), None))
    (mine, project), (other, elsewhere) = create_customer(), create_customer()
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-10-31 21:00:00"), HOUR)
    for _ in range(3):
        add_ended_lease(elsewhere, offering, utc("2026-10-31 21:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with batch_scope([mine.pk]), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(CHARGES_READ)
        before = int(cursor.fetchone()[0])
        assert batch_close._simple_tenants([mine.pk], "2026-10") == {mine.pk}
        cursor.execute(CHARGES_READ)
        assert int(cursor.fetchone()[0]) - before == 1  # mine
        assert batch_close._simple_tenants([mine.pk, other.pk], "2026-10") == {mine.pk}


def test_running_leases_are_split_at_month_end_and_closed_in_the_batch() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(EURO), utc("2026-10-31 23:00:00"))
    with counted_batches() as sets:
        assert close_month.close_due_months(now=NOW).months == 2
    assert sets == [2]
    assert [invoice.total for invoice in invoices_of(tenant)] == [100, 30 * 24 * 100]


def test_an_unobserved_lease_keeps_only_its_own_tenants_month_open(settings: Any) -> None:
    settings.MONTH_CLOSE_UNOBSERVED_HOURS = 0
    silent, project = create_customer()
    add_running_lease(
        project, create_priced_offering(EURO), utc("2026-10-31 23:00:00"), seen_at=utc("2026-10-31 23:30:00")
    )
    other, elsewhere = create_customer()
    add_ended_lease(elsewhere, create_priced_offering(EURO), utc("2026-10-31 23:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with counted_batches() as sets:
        done = close_month.close_due_months(now=NOW)
    assert [waits.tenant_id for waits in done.waiting] == [silent.pk]
    assert (done.months, sets) == (2, [2])
    assert next(month.status for month in periods_of(silent)) == "open"
    assert len(invoices_of(other)) == 1


def test_a_price_gap_blocks_only_the_month_of_its_own_tenant() -> None:
    lacking, project = create_customer()
    offering = create_priced_offering(EURO, since=utc("2026-10-31 23:30:00"))
    add_ended_lease(project, offering, utc("2026-10-31 23:00:00"), HOUR)
    _plain, elsewhere = create_customer()
    add_ended_lease(elsewhere, create_priced_offering(EURO), utc("2026-10-31 23:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with counted_batches() as sets:
        done = close_month.close_due_months(now=NOW)
    assert {gap.tenant for gap in done.gaps} == {lacking.pk}
    assert (done.months, sets) == (2, [2])


def test_a_failed_batch_is_closed_month_by_month() -> None:
    tenants = []
    for _ in range(3):
        tenant, project = create_customer()
        tenants.append(tenant)
        add_ended_lease(project, create_priced_offering(EURO), utc("2026-10-31 23:00:00"), HOUR)
    real = batch_close.posting.post_invoices

    def of_one(ids: list[str], **named: Any) -> int:
        if len(ids) > 1:
            raise DatabaseError("no room")
        return real(ids, **named)

    lease_rating.rate_all_leases(now=NOW)
    with patch.object(batch_close.posting, "post_invoices", of_one), counted_batches() as sets:
        done = close_month.close_due_months(now=NOW)
    assert (done.months, sets) == (6, [0])
    assert [len(invoices_of(tenant)) for tenant in tenants] == [1, 1, 1]


def test_a_batch_transaction_can_write_only_the_tenants_it_names() -> None:
    mine, project = create_customer()
    other, elsewhere = create_customer()
    for each in (project, elsewhere):
        add_ended_lease(each, create_priced_offering(EURO), utc("2026-10-31 23:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with batch_scope([mine.pk]), transaction.atomic():
        changed = BillingPeriod.objects.filter(label="2026-10").update(time_zone="Europe/Oslo")
    assert changed == 1
    assert next(month.time_zone for month in periods_of(other)) == "UTC"
    with (
        pytest.raises(DatabaseError, match="row-level security"),
        batch_scope([mine.pk]),
        transaction.atomic(),
    ):
        QueuedEmail.objects.create(tenant=other, kind="invoice-final", subject_id="inv_1", made_at=NOW)
    with tenant_scope(mine.pk), connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('app.tenants', true), '')")
        assert cursor.fetchone() == ("",)
