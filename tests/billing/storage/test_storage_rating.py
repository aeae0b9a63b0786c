"""Storage rating per GiB-second."""

import random
from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from django.db import connection, transaction

from billing.domain.money import to_minor
from billing.models import InvoiceLine, PriceVersion, RatedCharge
from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import PriceAlreadyCharged
from billing.services.documents import csv_exports, invoice_bundles
from billing.services.documents import line_names as papers
from billing.services.documents.focus import focus_exports
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating, spend, storage_rating, unpriced_usage
from billing.services.rating.lease_rating import PriceGap
from billing.services.reports.conservation import check_conservation
from billing.services.reports.cost_allocation import allocate_cost
from billing.services.reports.line_explanations import explain_invoice_line
from billing.verify import verify
from broker.models import VolumeSizeChange
from broker.services.volumes import volume_metering
from tenants.models import Tenant
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    set_price,
    utc,
)
from tests.billing.storage.storage_histories import (
    GIB_HOUR,
    add_volume_history,
    create_priced_storage,
    delete_volume,
    resize_volume,
    size_changes,
)

pytestmark = pytest.mark.django_db
NOVEMBER, DECEMBER, JANUARY = utc("2026-11-01 00:00:00"), utc("2026-12-01 00:00:00"), utc("2027-01-01 00:00:00")
MONTH_S = 30 * 24 * HOUR


def close_month_of(tenant: Tenant, label: str, end: datetime) -> None:
    """Close an existing month."""
    with tenant_scope(tenant.pk):
        billing_periods.ensure_periods(tenant, since=end - timedelta(days=1), until=end)
    close_month.close_period(tenant, label, now=end + close_month.CLOSING_GRACE)


def line_of(tenant: Tenant) -> InvoiceLine:
    with tenant_scope(tenant.pk):
        return InvoiceLine.objects.select_related("invoice__period", "invoice__tenant").get()


def test_a_volume_is_charged_per_gib_for_every_second_of_the_month() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    add_volume_history(project, 50, NOVEMBER)
    close_month_of(tenant, "2026-11", DECEMBER)
    [charge] = charges_of(tenant)
    assert (charge.meter, charge.unit_seconds) == ("gib_seconds", 50 * MONTH_S)
    assert int(charge.exact_num) == 50 * MONTH_S * GIB_HOUR
    [invoice] = invoices_of(tenant)
    assert invoice.total == to_minor(50 * MONTH_S * GIB_HOUR, 2) == 360
    assert invoice.number


def test_a_volume_is_charged_without_a_gap_across_the_month_end() -> None:
    create_priced_storage()
    tenant, project = create_customer("Asia/Kolkata")
    border = utc("2026-11-30 18:30:00")
    volume = add_volume_history(project, 7, border - timedelta(hours=1))
    close_month_of(tenant, "2026-11", border)
    delete_volume(volume, border + timedelta(seconds=1))
    storage_rating.rate_volumes(now=DECEMBER)
    assert [(c.s, c.e, c.unit_seconds) for c in sorted(charges_of(tenant), key=lambda c: c.s)] == [
        (border - timedelta(hours=1), border, 7 * HOUR),
        (border, border + timedelta(seconds=1), 7),
    ]


def test_repeated_storage_rating_charges_once() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    add_volume_history(project, 5, NOVEMBER, NOVEMBER + timedelta(days=1))
    assert storage_rating.rate_volumes(now=DECEMBER).written == 1
    assert storage_rating.rate_volumes(now=DECEMBER).written == 0
    assert storage_rating.rate_volumes(now=DECEMBER, whole=True).written == 0
    assert len(charges_of(tenant)) == 1


def test_price_and_size_changes_of_storage_apply_from_their_second() -> None:
    offering, (tenant, project) = create_priced_storage(), create_customer()
    set_price(offering, 3 * GIB_HOUR, since=NOVEMBER + timedelta(seconds=100))
    volume = add_volume_history(project, 10, NOVEMBER)
    resize_volume(volume, 20, NOVEMBER + timedelta(seconds=150))
    delete_volume(volume, NOVEMBER + timedelta(seconds=200))
    storage_rating.rate_volumes(now=DECEMBER)
    assert sum(int(c.exact_num) for c in charges_of(tenant)) == GIB_HOUR * (100 * 10 + 50 * 10 * 3 + 50 * 20 * 3)


def test_storage_without_any_price_is_free_and_does_not_block_month_close() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), NOVEMBER, HOUR)
    add_volume_history(project, 50, NOVEMBER)
    close_month_of(tenant, "2026-11", DECEMBER)
    assert [invoice.total for invoice in invoices_of(tenant)] == [100]
    assert storage_rating.rate_volumes(now=DECEMBER).written == 0
    with staff_scope():
        assert unpriced_usage.unpriced_usage(now=DECEMBER) == []


def test_storage_before_its_first_price_is_never_charged() -> None:
    tenant, project = create_customer()
    add_volume_history(project, 50, NOVEMBER)
    begins = DECEMBER - timedelta(hours=2)
    create_priced_storage(since=begins)
    close_month_of(tenant, "2026-11", DECEMBER)
    assert [c.unit_seconds for c in charges_of(tenant)] == [50 * 2 * HOUR]


def test_a_storage_price_cannot_start_in_already_metered_time() -> None:
    offering, (_, project) = create_priced_storage(None), create_customer()
    add_volume_history(project, 50, NOVEMBER, NOVEMBER + timedelta(days=2))
    with pytest.raises(PriceAlreadyCharged, match="Storage cannot have a price in the past"):
        set_price(offering, GIB_HOUR, since=NOVEMBER + timedelta(days=1))
    set_price(offering, GIB_HOUR, since=NOVEMBER + timedelta(days=2))
    with pytest.raises(PriceAlreadyCharged, match="Storage cannot have a price in the past"):
        set_price(create_priced_storage(None, region="us-1"), GIB_HOUR, since=NOVEMBER)
    assert PriceVersion.objects.storage_sold_since() == NOVEMBER + timedelta(days=2)


def test_a_storage_price_of_zero_writes_charges_of_zero() -> None:
    create_priced_storage(0), (found := create_customer())
    tenant, project = found
    add_volume_history(project, 50, NOVEMBER, NOVEMBER + timedelta(hours=1))
    storage_rating.rate_volumes(now=DECEMBER)
    assert [(c.unit_seconds, int(c.exact_num)) for c in charges_of(tenant)] == [(50 * HOUR, 0)]


def test_a_region_without_a_storage_price_is_a_price_gap_until_it_is_priced() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    far = add_volume_history(project, 3, NOVEMBER, NOVEMBER + timedelta(hours=1), region="us-1")
    outcome = storage_rating.rate_volumes(now=DECEMBER)
    assert [(gap.lease, gap.unit_seconds) for gap in outcome.gaps] == [(far.pk, 3 * HOUR)]
    with pytest.raises(PriceGap, match=far.pk):
        close_month_of(tenant, "2026-11", DECEMBER)
    with staff_scope():
        assert [(each.lease, each.unit_seconds) for each in unpriced_usage.unpriced_usage(now=DECEMBER)] == [
            (far.pk, 3 * HOUR)
        ]
    assert charges_of(tenant) == []
    create_priced_storage(GIB_HOUR, region="us-1")
    assert storage_rating.rate_volumes(now=DECEMBER).written == 1
    close_month_of(tenant, "2026-11", DECEMBER)


def test_a_volume_without_a_price_is_listed_as_a_price_gap() -> None:
    create_priced_storage()
    _, project = create_customer()
    add_volume_history(project, 3, NOVEMBER, region="us-1")
    with staff_scope():
        [gap] = unpriced_usage.unpriced_usage(now=NOVEMBER + timedelta(hours=1))
    assert (gap.unit_seconds, gap.label) == (3 * HOUR, "Storage, us-1")


def test_a_database_error_for_storage_blocks_its_own_tenant_only(monkeypatch: pytest.MonkeyPatch) -> None:
    create_priced_storage()
    (one, project), (other, beside) = create_customer(), create_customer()
    for each in (project, beside):
        add_volume_history(each, 2, NOVEMBER, NOVEMBER + timedelta(hours=1))
    real = storage_rating._charge

    def charge(tenant: Tenant, *args: object, **more: object) -> object:
        if tenant.pk == one.pk:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1/0")
        return real(tenant, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(storage_rating, "_charge", charge)
    outcome = storage_rating.rate_volumes(now=DECEMBER)
    assert [broken.tenant for broken in outcome.broken] == [one.pk]
    assert (len(charges_of(one)), len(charges_of(other))) == (0, 1)


def test_late_storage_usage_is_on_the_next_open_invoice() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    add_volume_history(project, 1, NOVEMBER)
    close_month_of(tenant, "2026-11", DECEMBER)
    add_volume_history(project, 8, NOVEMBER, NOVEMBER + timedelta(hours=1))
    storage_rating.rate_volumes(now=DECEMBER + timedelta(days=1))
    [late] = [c for c in charges_of(tenant) if c.period_id != c.billed_period_id]
    assert late.unit_seconds == 8 * HOUR
    assert next(invoice.total for invoice in invoices_of(tenant)) == 7


def test_daily_storage_rating_splits_and_charges_volumes_once_a_day() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    volume = add_volume_history(project, 4, NOVEMBER)
    storage_rating.rate_volumes_daily(now=NOVEMBER + timedelta(hours=23))
    assert len(size_changes(volume)) == 1
    storage_rating.rate_volumes_daily(now=NOVEMBER + timedelta(days=1))
    storage_rating.rate_volumes_daily(now=NOVEMBER + timedelta(days=1, hours=3))
    assert len(size_changes(volume)) == 2
    assert [c.unit_seconds for c in charges_of(tenant)] == [4 * 24 * HOUR]


def test_splitting_a_volume_history_does_not_change_its_cost() -> None:
    create_priced_storage()
    totals = set()
    for cuts in (0, 1, 25):
        tenant, project = create_customer("Australia/Lord_Howe")
        volume = add_volume_history(project, 37, NOVEMBER + timedelta(seconds=17))
        for day in range(cuts):
            with tenant_scope(tenant.pk), transaction.atomic():
                volume_metering.add_tenant_ticks(tenant, at=NOVEMBER + timedelta(days=day, seconds=day * 1000 + 99))
        delete_volume(volume, DECEMBER - timedelta(days=2, seconds=3))
        lease_rating.rate_all_leases(now=DECEMBER)
        storage_rating.rate_volumes(now=DECEMBER)
        drafts.refresh_drafts(tenant, now=DECEMBER)
        totals.add((invoices_of(tenant)[0].total, sum(int(c.exact_num) for c in charges_of(tenant))))
    assert len(totals) == 1


def test_random_volumes_cost_a_second_by_second_calculation() -> None:
    chance = random.Random(41)
    create_priced_storage()
    cuts = sorted(NOVEMBER + timedelta(seconds=chance.randrange(4000)) for _ in range(4))
    nanos = [GIB_HOUR, *(chance.randrange(10**9) for _ in cuts)]
    offering = create_priced_storage(None)
    for cut, nano in zip(cuts, nanos[1:], strict=True):
        set_price(offering, nano, since=cut)
    tenant, project = create_customer()
    owed = Fraction(0)
    for _ in range(30):
        begins = NOVEMBER + timedelta(seconds=chance.randrange(3000))
        gib, life = chance.randrange(1, 5000), chance.randrange(0, 900)
        add_volume_history(project, gib, begins, begins + timedelta(seconds=life))
        for second in range(life):
            moment = begins + timedelta(seconds=second)
            nano = nanos[sum(cut <= moment for cut in cuts)]
            owed += Fraction(gib * nano, 3600 * 10**9)
    storage_rating.rate_volumes(now=DECEMBER)
    drafts.refresh_drafts(tenant, now=DECEMBER)
    assert Fraction(sum(int(c.exact_num) for c in charges_of(tenant)), 3600 * 10**9) == owed
    with staff_scope():
        kept_all = check_conservation(first=NOVEMBER, last=DECEMBER)
    assert (kept_all.stored_minus_charged, kept_all.lines_minus_charges, kept_all.charged_minus_active) == (
        0,
        0,
        0,
    )
    by_line = defaultdict[int, int](int)
    for charge in charges_of(tenant):
        by_line[charge.price_version_id] += int(charge.exact_num)
    assert {line.price_version_id: int(line.exact_num) for line in invoice_lines(invoices_of(tenant)[0])} == by_line


@pytest.fixture
def closed() -> Tenant:
    """Return a tenant with a closed month of storage and one lease hour."""
    create_priced_storage()
    tenant, project = create_customer("Europe/Berlin")
    add_ended_lease(project, create_priced_offering(EURO), NOVEMBER + timedelta(days=3), HOUR)
    add_volume_history(project, 50, NOVEMBER - timedelta(days=2), NOVEMBER + timedelta(days=9))
    add_volume_history(project, 11, NOVEMBER + timedelta(days=1, seconds=7))
    for label, end in (("2026-10", utc("2026-10-31 23:00:00")), ("2026-11", utc("2026-11-30 23:00:00"))):
        close_month_of(tenant, label, end)
    return tenant


def storage_line(tenant: Tenant) -> InvoiceLine:
    with tenant_scope(tenant.pk):
        rows = InvoiceLine.objects.select_related("invoice__period", "invoice__tenant").order_by("-invoice__number")
        by_gib = RatedCharge.objects.filter(meter="gib_seconds").values("offering_id")
        return rows.filter(invoice__period__label="2026-11", offering_id__in=by_gib).get()


def test_a_storage_line_explains_its_volumes_and_periods(closed: Tenant) -> None:
    line = storage_line(closed)
    with tenant_scope(closed.pk):
        explained = explain_invoice_line(line)
    assert explained.recomputed_equal
    assert explained.title == "Storage, eu-1"
    assert {(use.name.split()[0], use.windows[0].quantity) for use in explained.leases} == {
        ("data", 50),
        ("data", 11),
    }
    assert (
        sum(window.unit_seconds for use in explained.leases for window in use.windows if window.charged)
        == line.unit_seconds
    )


def test_the_verifier_recomputes_storage_and_finds_alterations(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    with tenant_scope(closed.pk):
        whole = invoice_bundles.build_bundle(invoice)
    raw = b"".join(whole)
    report = verify.check(raw)
    assert report.differences == []
    assert "volumes      2, per GiB" in "\n".join(verify.report_lines(report))
    grown = raw.replace(b'"gib":50', b'"gib":51')
    assert any("exact amount" in words for words in verify.check(grown).differences)
    shrunk = raw.replace(b'"gib":50', b'"gib":-1')
    assert any("size is negative" in words for words in verify.check(shrunk).differences)
    volume = raw.partition(b'"volumes":[\n')[2].partition(b"}]}")[0] + b"}]}"
    twice = raw.replace(volume, volume + b"," + volume)
    assert any("occurs twice" in words for words in verify.check(twice).differences)


def test_exports_and_documents_label_storage(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    rows = [dict(zip(focus_exports.COLUMNS, row, strict=True)) for row in focus_exports.focus_rows(invoice)]
    kept_ = [row for row in rows if row["ServiceCategory"] == "Storage"]
    assert {(row["ResourceType"], row["PricingUnit"], row["SkuMeter"]) for row in kept_} == {
        ("Volume", "GiB-Hours", "gib_seconds")
    }
    assert sum(Fraction(row["BilledCost"]) for row in rows) == Fraction(invoice.total, 100)
    with tenant_scope(closed.pk):
        [paper] = [each for each in papers.name_lines(invoice) if each.title == "Storage, eu-1"]
    assert paper.terms.startswith("2 volumes · per GiB")
    assert "data" in "".join(str(row) for row in csv_exports._charge_rows(invoice))


def test_storage_cost_is_allocated_to_the_creator_of_the_volume(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    with tenant_scope(closed.pk):
        by_user = {part.key: part.net for part in allocate_cost(invoice, by="user")}
        by_tag = allocate_cost(invoice, by="tag", tag="team")
    assert by_user["usr_ada"] == storage_line(closed).minor
    assert sum(part.total for part in by_tag) == invoice.total


def test_spend_counts_storage_to_the_second_without_gpu_hours() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    volume = add_volume_history(project, 100, NOVEMBER)
    now = NOVEMBER + timedelta(hours=5, minutes=1)
    with tenant_scope(tenant.pk):
        before = spend.spend_lines([NOVEMBER, DECEMBER], until=now, cut="user")
        cost = spend.costs_of([volume.pk], now=now)[volume.pk]
    storage_rating.rate_volumes_daily(now=NOVEMBER + timedelta(days=1))
    with tenant_scope(tenant.pk):
        after = spend.spend_lines([NOVEMBER, DECEMBER], until=now, cut="user")
    assert before == after
    assert [(line.unit_seconds, line.exact_num, line.part) for line in before] == [
        (0, 100 * (5 * HOUR + 60) * GIB_HOUR, "usr_ada")
    ]
    assert cost.exact_num == before[0].exact_num


def test_spend_includes_storage_usage_not_charged_yet() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    add_volume_history(project, 10, NOVEMBER, NOVEMBER + timedelta(hours=2))
    with tenant_scope(tenant.pk):
        assert spend.spend_between(tenant, NOVEMBER, DECEMBER) == to_minor(10 * 2 * HOUR * GIB_HOUR, 2)
        [line] = spend.spend_lines([NOVEMBER, DECEMBER], until=DECEMBER)
    assert line.exact_num == 10 * 2 * HOUR * GIB_HOUR


def test_storage_prices_are_in_the_price_list() -> None:
    offering = create_priced_storage()
    assert (
        price_list.prices_at(NOVEMBER, currency="EUR", offerings=[offering.pk])[offering.pk].nano_per_hour == GIB_HOUR
    )
    assert VolumeSizeChange.objects.count() == 0


def test_a_tenant_with_only_volumes_gets_its_month_closed() -> None:
    create_priced_storage()
    tenant, project = create_customer()
    add_volume_history(project, 50, DECEMBER - timedelta(hours=2))
    assert close_month.close_due_months(now=DECEMBER + close_month.CLOSING_GRACE).months == 1
    assert [(invoice.period.label, invoice.number is not None) for invoice in invoices_of(tenant)] == [
        ("2026-11", True)
    ]


def test_finding_new_storage_usage_reads_rows_of_that_tenant_only() -> None:
    create_priced_storage()
    (mine, project), (_, elsewhere) = create_customer(), create_customer()
    add_volume_history(project, 50, NOVEMBER, DECEMBER)
    add_volume_history(elsewhere, 50, NOVEMBER, DECEMBER)
    checked_at = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'broker_volumesizechange'"
    )
    with system_scope(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(checked_at)
        [before] = cursor.fetchone()
        assert storage_rating.tenants_with_new_usage([mine.pk]) == {mine.pk}
        cursor.execute(checked_at)
        assert cursor.fetchone() == (before + VolumeSizeChange.objects.filter(tenant_id=mine.pk).count(),)
