"""Month close: drafts, final invoices, numbers, late usage and failures."""

from collections.abc import Callable
from datetime import datetime, timedelta
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.money import to_minor
from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceSeries, RatedCharge
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from billing.services.rating.lease_rating import PriceGap
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, StaleLease, Transition
from tenants.models import AuditEvent, Tenant
from tenants.services.errors import ObjectNotFound
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    periods_of,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
BERLIN_NOVEMBER = utc("2026-10-31 23:00:00")
CLOSES = BERLIN_NOVEMBER + close_month.CLOSING_GRACE


@pytest.fixture
def berlin() -> Tenant:
    """A tenant in Berlin with an hour of use on the last evening of October."""
    tenant, project = create_customer("Europe/Berlin")
    add_ended_lease(project, create_priced_offering(1_340_000_000), utc("2026-10-31 21:00:00"), HOUR)
    return tenant


def test_a_draft_has_one_line_per_project_offering_and_price() -> None:
    tenant, project = create_customer()
    small, large = create_priced_offering(EURO), create_priced_offering(2 * EURO)
    add_ended_lease(project, small, utc("2026-11-02 00:00:00"), HOUR)
    add_ended_lease(project, small, utc("2026-11-03 00:00:00"), HOUR, quantity=2)
    set_price(small, 3 * EURO, since=utc("2026-11-04 00:00:00"))
    add_ended_lease(project, small, utc("2026-11-04 00:00:00"), HOUR)
    add_ended_lease(project, large, utc("2026-11-04 00:00:00"), 30)
    lease_rating.rate_all_leases(now=utc("2026-11-05 00:00:00"))
    assert drafts.refresh_drafts(tenant, now=utc("2026-11-05 00:00:00")) == 3
    (invoice,) = invoices_of(tenant)
    found = [(line.n, line.offering_id, line.leases, line.unit_seconds, line.minor) for line in invoice_lines(invoice)]
    assert found == [(1, small.pk, 2, 3 * HOUR, 300), (2, small.pk, 1, HOUR, 300), (3, large.pk, 1, 30, 2)]
    assert invoice.total == 602
    assert str(invoice).startswith("draft")


def test_b28_refreshing_a_draft_again_changes_nothing(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    first = drafts.refresh_all_drafts([berlin.pk], now=CLOSES)
    assert (first, drafts.refresh_drafts(berlin, now=CLOSES)) == (1, 0)
    assert [invoice.total for invoice in invoices_of(berlin)] == [134]


def test_a_draft_follows_new_charges_and_keeps_its_line_numbers() -> None:
    tenant, project = create_customer()
    first, second = create_priced_offering(EURO), create_priced_offering(EURO)
    add_ended_lease(project, second, utc("2026-11-02 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-03 00:00:00"))
    drafts.refresh_drafts(tenant, now=utc("2026-11-03 00:00:00"))
    add_ended_lease(project, first, utc("2026-11-03 00:00:00"), HOUR)
    add_ended_lease(project, second, utc("2026-11-03 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-04 00:00:00"))
    assert drafts.refresh_drafts(tenant, now=utc("2026-11-04 00:00:00")) == 2
    (invoice,) = invoices_of(tenant)
    assert [(line.n, line.offering_id, line.minor) for line in invoice_lines(invoice)] == [
        (1, second.pk, 200),
        (2, first.pk, 100),
    ]


@settings(max_examples=40, deadline=None)
@given(nano=st.integers(0, 10**11), seconds=st.lists(st.integers(1, 100_000), min_size=1, max_size=4))
def test_a_line_is_rounded_once_like_in_the_domain(nano: int, seconds: list[int]) -> None:
    with transaction.atomic():
        tenant, project = create_customer(currency="EUR")
        offering = create_priced_offering(nano)
        for length in seconds:
            add_ended_lease(project, offering, utc("2026-11-02 00:00:00"), length)
        lease_rating.rate_all_leases(now=utc("2026-11-05 00:00:00"))
        drafts.refresh_drafts(tenant, now=utc("2026-11-05 00:00:00"))
        (line,) = invoice_lines(invoices_of(tenant)[0])
        assert (line.unit_seconds, int(line.exact_num)) == (sum(seconds), sum(seconds) * nano)
        assert line.minor == to_minor(sum(seconds) * nano, 2)
        transaction.set_rollback(True)


def test_a_currency_without_decimals_is_rounded_to_whole_units() -> None:
    tenant, project = create_customer(currency="JPY")
    add_ended_lease(
        project, create_priced_offering(150 * EURO + EURO // 2, currency="JPY"), utc("2026-11-02 00:00:00"), HOUR
    )
    lease_rating.rate_all_leases(now=utc("2026-11-05 00:00:00"))
    drafts.refresh_drafts(tenant, now=utc("2026-11-05 00:00:00"))
    assert [(invoice.total, invoice.currency) for invoice in invoices_of(tenant)] == [(151, "JPY")]


def test_a_month_is_closed_into_a_numbered_invoice(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    invoice = close_month.close_period(berlin, "2026-10", now=CLOSES)
    assert invoice is not None
    assert (str(invoice), invoice.status, invoice.total) == ("2026-10-0001", "finalized", 134)
    assert invoice.finalized_at == CLOSES
    assert [(month.label, month.status) for month in periods_of(berlin)] == [
        ("2026-10", "closed"),
        ("2026-11", "open"),
    ]
    with tenant_scope(berlin.pk):
        assert AuditEvent.objects.filter(action="invoice.finalize", subject_id=invoice.pk).count() == 1


def test_closing_a_month_again_does_nothing(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    first = close_month.close_period(berlin, "2026-10", now=CLOSES)
    again = close_month.close_period(berlin, "2026-10", now=CLOSES + timedelta(days=1))
    assert again == first
    assert again.finalized_at == CLOSES
    assert InvoiceSeries.objects.get().next_number == 2


def test_a_month_that_has_not_ended_cannot_be_closed(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=BERLIN_NOVEMBER)
    with pytest.raises(close_month.MonthNotOver, match="2026-10 ends at"):
        close_month.close_period(berlin, "2026-10", now=CLOSES - timedelta(seconds=1))


def test_an_unknown_month_cannot_be_closed(berlin: Tenant) -> None:
    with pytest.raises(ObjectNotFound):
        close_month.close_period(berlin, "2031-01", now=CLOSES)


def test_a_month_without_usage_closes_without_an_invoice() -> None:
    tenant, _ = create_customer()
    with tenant_scope(tenant.pk):
        billing_periods.ensure_periods(tenant, since=utc("2026-10-05 00:00:00"), until=utc("2026-10-05 00:00:00"))
    assert close_month.close_period(tenant, "2026-10", now=utc("2026-11-01 00:05:00")) is None
    assert invoices_of(tenant) == []


def test_a_running_lease_is_charged_up_to_the_month_end_and_continues() -> None:
    tenant, project = create_customer("Europe/Berlin")
    lease = add_running_lease(project, create_priced_offering(), utc("2026-10-31 22:00:00"))
    close_month.close_due_months(now=CLOSES)
    (october,) = charges_of(tenant)
    assert (october.e, october.unit_seconds) == (BERLIN_NOVEMBER, HOUR)
    with tenant_scope(tenant.pk):
        lease.refresh_from_db()
        last = Transition.objects.filter(lease_id=lease.pk).latest("seq")
    assert (lease.state, lease.state_since, last.before, last.after) == ("active", BERLIN_NOVEMBER, "active", "active")
    assert [invoice.total for invoice in invoices_of(tenant)] == [100]


def test_b4_a_lease_without_transitions_for_months_is_billed_every_month() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(), utc("2026-01-31 00:00:00"))
    assert close_month.close_due_months(now=utc("2026-05-01 00:05:00")).months == 4
    assert [(i.period.label, i.total) for i in invoices_of(tenant)] == [
        ("2026-01", 2400),
        ("2026-02", 28 * 2400),
        ("2026-03", 31 * 2400),
        ("2026-04", 30 * 2400),
    ]


def test_a_lease_that_changes_while_being_split_is_retried() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(), utc("2026-10-31 00:00:00"))
    real, answers = Lease.add_metering_tick, iter([False])

    def once_too_late(lease: Lease, *, at: datetime) -> bool:
        return next(answers, None) is None and real(lease, at=at)

    with patch.object(Lease, "add_metering_tick", once_too_late):
        close_month.close_due_months(now=utc("2026-11-01 00:05:00"))
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [24 * HOUR]


def test_a_lease_that_changes_at_every_try_keeps_the_month_open() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(), utc("2026-10-31 00:00:00"))
    with patch.object(Lease, "add_metering_tick", return_value=False):
        closed = close_month.close_due_months(now=utc("2026-11-01 00:05:00"))
        with pytest.raises(StaleLease, match="tries again"):
            close_month.close_period(tenant, "2026-10", now=utc("2026-11-01 00:05:00"))
    assert [(month.tenant_id, month.label) for month in closed.waiting] == [(tenant.pk, "2026-10")]
    assert [month.status for month in periods_of(tenant)] == ["open", "open"]


def test_an_unobserved_lease_blocks_the_month_of_its_own_tenant_only() -> None:
    offering = create_priced_offering()
    (silent, theirs), (other, elsewhere) = create_customer(), create_customer()
    lease = add_running_lease(theirs, offering, utc("2026-10-31 00:00:00"), seen_at=utc("2026-10-31 20:00:00"))
    add_running_lease(elsewhere, offering, utc("2026-10-31 00:00:00"))
    now = utc("2026-11-01 00:05:00")
    closed = close_month.close_due_months(now=now)
    assert (closed.months, [month.tenant_id for month in closed.waiting]) == (1, [silent.pk])
    assert lease.pk in closed.waiting[0].why
    assert [i.total for i in invoices_of(other)] == [2400]
    assert charges_of(silent) == []
    with tenant_scope(silent.pk):
        Lease.objects.filter(pk=lease.pk).update(seen_at=now)
    assert close_month.close_due_months(now=now).months == 1
    assert [i.total for i in invoices_of(silent)] == [2400]


def test_a_database_error_for_one_tenant_does_not_block_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offering = create_priced_offering()
    customers = [create_customer() for _ in range(3)]
    for _, project in customers:
        add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    unlucky, now = customers[0][0], utc("2026-11-01 00:05:00")
    monkeypatch.setattr(drafts, "_create_drafts", refusing_drafts(unlucky))
    rated = lease_rating.rate_all_leases(now=now)
    assert drafts.refresh_all_drafts(sorted(rated.tenants), now=now) == 2
    closed = close_month.close_due_months(now=now)
    assert closed.months == 2
    assert [(each.tenant_id, each.label) for each in closed.waiting] == [(unlucky.pk, "2026-10")]
    assert "division by zero" in closed.waiting[0].why
    monkeypatch.undo()
    assert close_month.close_due_months(now=now).months == 1
    numbers = [i.number for tenant, _ in customers for i in invoices_of(tenant)]
    assert (numbers[0], sorted(numbers)) == (3, [1, 2, 3])


def refusing_drafts(unlucky: Tenant) -> Callable[[QuerySet[BillingPeriod], datetime], None]:
    """Create drafts, but let PostgreSQL fail for one tenant."""
    begin = drafts._create_drafts

    def refuse(months: QuerySet[BillingPeriod], now: datetime) -> None:
        if months.filter(tenant=unlucky).exists():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        begin(months, now)

    return refuse


def test_b1_hourly_runs_around_midnight_make_one_invoice_in_every_zone() -> None:
    tenants = []
    offering = create_priced_offering()
    for zone in ("Asia/Kolkata", "Europe/Berlin", "UTC", "America/St_Johns", "Pacific/Kiritimati"):
        tenant, project = create_customer(zone)
        add_ended_lease(project, offering, utc("2026-10-30 00:00:00"), 3 * 24 * HOUR)
        tenants.append(tenant)
    for hour in range(48):
        now = utc("2026-10-31 00:10:00") + timedelta(hours=hour)
        lease_rating.rate_all_leases(now=now)
        close_month.close_due_months(now=now)
        for tenant in tenants:
            over = now >= datetime(2026, 11, 1, tzinfo=ZoneInfo(tenant.time_zone)) + close_month.CLOSING_GRACE
            final = [each.period.label for each in invoices_of(tenant) if each.status == "finalized"]
            assert final == (["2026-10"] if over else []), (tenant.time_zone, now)
    for tenant in tenants:
        assert [i.period.label for i in invoices_of(tenant)] == ["2026-10", "2026-11"]
        assert sum(c.unit_seconds for c in charges_of(tenant)) == 3 * 24 * HOUR


def test_b36_invoice_numbers_have_no_gap_even_when_a_close_fails() -> None:
    offering = create_priced_offering()
    customers = [create_customer() for _ in range(3)]
    for _, project in customers:
        add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    _, unlucky = customers[1]
    add_ended_lease(unlucky, create_priced_offering(None), utc("2026-10-06 00:00:00"), HOUR)
    now = utc("2026-11-01 00:05:00")
    lease_rating.rate_all_leases(now=now)
    for tenant, _ in customers:
        with tenant_scope(tenant.pk):
            billing_periods.ensure_periods(tenant, since=utc("2026-10-05 00:00:00"), until=now)
    outcome = close_month.close_due_months(now=now)
    assert (outcome.months, len(outcome.gaps)) == (2, 1)
    numbers = [i.number for tenant, _ in customers for i in invoices_of(tenant)]
    assert sorted(numbers) == [1, 2]
    assert close_month.close_due_months(now=now).months == 0


def test_a_price_gap_blocks_its_month_and_all_later_months_of_its_tenant() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(None), utc("2026-09-30 00:00:00"))
    outcome = close_month.close_due_months(now=utc("2026-11-01 00:05:00"))
    assert (outcome.months, len(outcome.gaps)) == (0, 1)
    assert {month.status for month in periods_of(tenant)} == {"open"}
    with pytest.raises(PriceGap):
        close_month.close_period(tenant, "2026-09", now=utc("2026-11-01 00:05:00"))


def test_b29_b30_late_usage_is_on_the_next_invoice_and_not_the_closed_one(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    close_month.close_period(berlin, "2026-10", now=CLOSES)
    with tenant_scope(berlin.pk):
        lease = Lease.objects.select_related("project", "offering").get()
    late = add_ended_lease(lease.project, lease.offering, utc("2026-10-31 22:00:00"), 2 * HOUR)
    now = utc("2026-11-02 00:00:00")
    lease_rating.rate_all_leases(now=now)
    drafts.refresh_drafts(berlin, now=now)
    october, november = invoices_of(berlin)
    assert (october.total, october.status) == (134, "finalized")
    assert (november.total, november.status) == (268, "draft")
    carried = {c.period_id: c.billed_period_id for c in charges_of(berlin) if c.lease_id == late.pk}
    assert carried == {october.period_id: november.period_id, november.period_id: november.period_id}


def test_b42_a_crash_at_any_step_rolls_back_and_can_be_repeated(berlin: Tenant) -> None:
    steps = ["rate_tenant_leases", "ensure_periods", "refresh_drafts", "finalize_invoice"]
    for step in steps:
        where = {
            "rate_tenant_leases": close_month.lease_rating,
            "ensure_periods": close_month.billing_periods,
            "refresh_drafts": close_month.drafts,
            "finalize_invoice": close_month.finalization,
        }[step]
        lease_rating.rate_all_leases(now=CLOSES)
        with patch.object(where, step, side_effect=OSError("killed")), pytest.raises(OSError, match="killed"):
            close_month.close_period(berlin, "2026-10", now=CLOSES)
        assert [month.status for month in periods_of(berlin) if month.label == "2026-10"] == ["open"]
        assert InvoiceSeries.objects.count() == 0
    assert str(close_month.close_period(berlin, "2026-10", now=CLOSES)) == "2026-10-0001"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE billing_invoice SET total = 1",
        "UPDATE billing_invoice SET number = 9",
        "DELETE FROM billing_invoice",
        "UPDATE billing_invoiceline SET minor = 1",
        "DELETE FROM billing_invoiceline",
        "INSERT INTO billing_invoiceline (tenant_id, invoice_id, n, project_id, offering_id, price_version_id, leases,"
        " unit_seconds, exact_num, minor) SELECT tenant_id, invoice_id, 99, 'p', 'o', 0, 0, 0, 0, 0"
        " FROM billing_invoiceline",
    ],
)
def test_a_final_invoice_and_its_lines_cannot_be_changed(berlin: Tenant, sql: str) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    close_month.close_period(berlin, "2026-10", now=CLOSES)
    with (
        pytest.raises(DatabaseError, match="is final"),
        tenant_scope(berlin.pk),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_invoices_lines_and_charges_are_visible_to_their_tenant_only(berlin: Tenant) -> None:
    lease_rating.rate_all_leases(now=CLOSES)
    close_month.close_period(berlin, "2026-10", now=CLOSES)
    other_tenant, _ = create_customer()
    with tenant_scope(other_tenant.pk):
        assert not Invoice.objects.exists()
        assert not InvoiceLine.objects.exists()
        assert not RatedCharge.objects.exists()


def test_closing_a_month_does_not_end_running_leases() -> None:
    tenant, project = create_customer()
    lease = add_running_lease(project, create_priced_offering(), utc("2026-10-31 00:00:00"))
    close_month.close_due_months(now=utc("2026-11-01 00:05:00"))
    with tenant_scope(tenant.pk):
        assert Lease.objects.get(pk=lease.pk).state == LeaseState.ACTIVE


def test_a_closing_run_can_be_limited_to_a_number_of_months() -> None:
    offering = create_priced_offering()
    for _ in range(3):
        add_ended_lease(create_customer()[1], offering, utc("2026-10-05 00:00:00"), HOUR)
    now = utc("2026-11-01 00:05:00")
    lease_rating.rate_all_leases(now=now)
    assert [close_month.close_due_months(now=now, most=2).months for _ in range(3)] == [2, 1, 0]
