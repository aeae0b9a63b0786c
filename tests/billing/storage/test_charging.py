"""Storage is charged by the GiB and second as leases are: once, exactly, and never for nought by chance."""

import random
from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from django.db import connection, transaction

from billing.domain.money import to_minor
from billing.models import InvoiceLine, RatedCharge
from billing.services import bundles, closing, drafts, gaps, periods, prices, rating, spend
from billing.services.conservation import over
from billing.services.cost_allocation import allocated
from billing.services.explain import explain
from billing.services.exports import focus, sheets
from billing.services.papers import lines as papers
from billing.services.prices import PriceFixed
from billing.services.rating import PriceGap
from billing.services.storage import charging
from billing.services.storage.sale import sold_since
from billing.verify import verify
from broker.models import VolumeStep
from broker.services.volumes import histories
from tenants.models import Tenant
from tenants.services.walls import as_staff, as_sweep, as_tenant
from tests.billing.histories import EURO, HOUR, at, charges, customer, invoices, lines, ran, reprice, sold
from tests.billing.storage.shelves import GIB_HOUR, delete, kept, resized, steps, storage

pytestmark = pytest.mark.django_db
NOVEMBER, DECEMBER, JANUARY = at("2026-11-01 00:00:00"), at("2026-12-01 00:00:00"), at("2027-01-01 00:00:00")
MONTH_S = 30 * 24 * HOUR


def close(tenant: Tenant, label: str, end: datetime) -> None:
    """Close a month, which there is."""
    with as_tenant(tenant.pk):
        periods.ensure(tenant, since=end - timedelta(days=1), until=end)
    closing.close_period(tenant, label, now=end + closing.GRACE)


def line_of(tenant: Tenant) -> InvoiceLine:
    with as_tenant(tenant.pk):
        return InvoiceLine.objects.select_related("invoice__period", "invoice__tenant").get()


def test_a_volume_costs_its_gib_for_every_second_of_the_month() -> None:
    storage()
    tenant, project = customer()
    kept(project, 50, NOVEMBER)
    close(tenant, "2026-11", DECEMBER)
    [charge] = charges(tenant)
    assert (charge.meter, charge.unit_seconds) == ("gib_seconds", 50 * MONTH_S)
    assert int(charge.exact_num) == 50 * MONTH_S * GIB_HOUR
    [invoice] = invoices(tenant)
    assert invoice.total == to_minor(50 * MONTH_S * GIB_HOUR, 2) == 360
    assert invoice.number


def test_it_goes_on_into_the_next_month_where_the_last_one_ended() -> None:
    storage()
    tenant, project = customer("Asia/Kolkata")
    border = at("2026-11-30 18:30:00")
    volume = kept(project, 7, border - timedelta(hours=1))
    close(tenant, "2026-11", border)
    delete(volume, border + timedelta(seconds=1))
    charging.rate(now=DECEMBER)
    assert [(c.s, c.e, c.unit_seconds) for c in sorted(charges(tenant), key=lambda c: c.s)] == [
        (border - timedelta(hours=1), border, 7 * HOUR),
        (border, border + timedelta(seconds=1), 7),
    ]


def test_nothing_is_charged_twice_however_often_it_is_tried() -> None:
    storage()
    tenant, project = customer()
    kept(project, 5, NOVEMBER, NOVEMBER + timedelta(days=1))
    assert charging.rate(now=DECEMBER).written == 1
    assert charging.rate(now=DECEMBER).written == 0
    assert charging.rate(now=DECEMBER, whole=True).written == 0
    assert len(charges(tenant)) == 1


def test_a_price_that_changes_and_a_size_that_changes_count_from_their_second_on() -> None:
    offering, (tenant, project) = storage(), customer()
    reprice(offering, 3 * GIB_HOUR, since=NOVEMBER + timedelta(seconds=100))
    volume = kept(project, 10, NOVEMBER)
    resized(volume, 20, NOVEMBER + timedelta(seconds=150))
    delete(volume, NOVEMBER + timedelta(seconds=200))
    charging.rate(now=DECEMBER)
    assert sum(int(c.exact_num) for c in charges(tenant)) == GIB_HOUR * (100 * 10 + 50 * 10 * 3 + 50 * 20 * 3)


def test_storage_without_any_price_is_charged_to_nobody_and_closes_every_month() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), NOVEMBER, HOUR)
    kept(project, 50, NOVEMBER)
    close(tenant, "2026-11", DECEMBER)
    assert [invoice.total for invoice in invoices(tenant)] == [100]
    assert charging.rate(now=DECEMBER).written == 0
    with as_staff():
        assert gaps.unpriced(now=DECEMBER) == []


def test_what_volumes_were_before_storage_was_sold_is_never_charged() -> None:
    tenant, project = customer()
    kept(project, 50, NOVEMBER)
    begins = DECEMBER - timedelta(hours=2)
    storage(since=begins)
    close(tenant, "2026-11", DECEMBER)
    assert [c.unit_seconds for c in charges(tenant)] == [50 * 2 * HOUR]


def test_storage_cannot_begin_to_be_sold_for_what_was_counted_already() -> None:
    offering, (_, project) = storage(None), customer()
    kept(project, 50, NOVEMBER, NOVEMBER + timedelta(days=2))
    with pytest.raises(PriceFixed, match="charged to nobody"):
        reprice(offering, GIB_HOUR, since=NOVEMBER + timedelta(days=1))
    reprice(offering, GIB_HOUR, since=NOVEMBER + timedelta(days=2))
    with pytest.raises(PriceFixed, match="charged to nobody"):
        reprice(storage(None, region="us-1"), GIB_HOUR, since=NOVEMBER)
    assert sold_since() == NOVEMBER + timedelta(days=2)


def test_a_price_of_nought_is_a_choice_and_writes_charges_of_nought() -> None:
    storage(0), (found := customer())
    tenant, project = found
    kept(project, 50, NOVEMBER, NOVEMBER + timedelta(hours=1))
    charging.rate(now=DECEMBER)
    assert [(c.unit_seconds, int(c.exact_num)) for c in charges(tenant)] == [(50 * HOUR, 0)]


def test_once_storage_is_sold_a_region_without_a_price_is_a_gap_until_somebody_mends_it() -> None:
    storage()
    tenant, project = customer()
    far = kept(project, 3, NOVEMBER, NOVEMBER + timedelta(hours=1), region="us-1")
    outcome = charging.rate(now=DECEMBER)
    assert [(gap.lease, gap.unit_seconds) for gap in outcome.gaps] == [(far.pk, 3 * HOUR)]
    with pytest.raises(PriceGap, match=far.pk):
        close(tenant, "2026-11", DECEMBER)
    with as_staff():
        assert [(each.lease, each.unit_seconds) for each in gaps.unpriced(now=DECEMBER)] == [
            (far.pk, 3 * HOUR)
        ]
    assert charges(tenant) == []
    storage(GIB_HOUR, region="us-1")
    assert charging.rate(now=DECEMBER).written == 1
    close(tenant, "2026-11", DECEMBER)


def test_one_that_goes_on_without_a_price_is_among_the_gaps() -> None:
    storage()
    _, project = customer()
    kept(project, 3, NOVEMBER, region="us-1")
    with as_staff():
        [gap] = gaps.unpriced(now=NOVEMBER + timedelta(hours=1))
    assert (gap.unit_seconds, gap.label) == (3 * HOUR, "Storage, us-1")


def test_what_postgresql_refuses_holds_up_its_own_tenant_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    storage()
    (one, project), (other, beside) = customer(), customer()
    for each in (project, beside):
        kept(each, 2, NOVEMBER, NOVEMBER + timedelta(hours=1))
    real = charging._charge

    def charge(tenant: Tenant, *args: object, **more: object) -> object:
        if tenant.pk == one.pk:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1/0")
        return real(tenant, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(charging, "_charge", charge)
    outcome = charging.rate(now=DECEMBER)
    assert [broken.tenant for broken in outcome.broken] == [one.pk]
    assert (len(charges(one)), len(charges(other))) == (0, 1)


def test_seconds_that_become_known_late_stand_on_the_next_open_invoice() -> None:
    storage()
    tenant, project = customer()
    kept(project, 1, NOVEMBER)
    close(tenant, "2026-11", DECEMBER)
    kept(project, 8, NOVEMBER, NOVEMBER + timedelta(hours=1))
    charging.rate(now=DECEMBER + timedelta(days=1))
    [late] = [c for c in charges(tenant) if c.period_id != c.billed_period_id]
    assert late.unit_seconds == 8 * HOUR
    assert next(invoice.total for invoice in invoices(tenant)) == 7


def test_the_daily_round_cuts_what_volumes_there_are_and_charges_them() -> None:
    storage()
    tenant, project = customer()
    volume = kept(project, 4, NOVEMBER)
    charging.charge_daily(now=NOVEMBER + timedelta(hours=23))
    assert len(steps(volume)) == 1
    charging.charge_daily(now=NOVEMBER + timedelta(days=1))
    charging.charge_daily(now=NOVEMBER + timedelta(days=1, hours=3))
    assert len(steps(volume)) == 2
    assert [c.unit_seconds for c in charges(tenant)] == [4 * 24 * HOUR]


def test_cutting_a_history_changes_nothing_of_what_it_costs() -> None:
    storage()
    totals = set()
    for cuts in (0, 1, 25):
        tenant, project = customer("Australia/Lord_Howe")
        volume = kept(project, 37, NOVEMBER + timedelta(seconds=17))
        for day in range(cuts):
            with as_tenant(tenant.pk), transaction.atomic():
                histories.cut_all(tenant, at=NOVEMBER + timedelta(days=day, seconds=day * 1000 + 99))
        delete(volume, DECEMBER - timedelta(days=2, seconds=3))
        rating.rate(now=DECEMBER)
        charging.rate(now=DECEMBER)
        drafts.refresh(tenant, now=DECEMBER)
        totals.add((invoices(tenant)[0].total, sum(int(c.exact_num) for c in charges(tenant))))
    assert len(totals) == 1


def test_random_volumes_cost_what_every_single_second_of_them_does() -> None:
    chance = random.Random(41)
    storage()
    cuts = sorted(NOVEMBER + timedelta(seconds=chance.randrange(4000)) for _ in range(4))
    nanos = [GIB_HOUR, *(chance.randrange(10**9) for _ in cuts)]
    offering = storage(None)
    for cut, nano in zip(cuts, nanos[1:], strict=True):
        reprice(offering, nano, since=cut)
    tenant, project = customer()
    owed = Fraction(0)
    for _ in range(30):
        begins = NOVEMBER + timedelta(seconds=chance.randrange(3000))
        gib, life = chance.randrange(1, 5000), chance.randrange(0, 900)
        kept(project, gib, begins, begins + timedelta(seconds=life))
        for second in range(life):
            moment = begins + timedelta(seconds=second)
            nano = nanos[sum(cut <= moment for cut in cuts)]
            owed += Fraction(gib * nano, 3600 * 10**9)
    charging.rate(now=DECEMBER)
    drafts.refresh(tenant, now=DECEMBER)
    assert Fraction(sum(int(c.exact_num) for c in charges(tenant)), 3600 * 10**9) == owed
    with as_staff():
        kept_all = over(first=NOVEMBER, last=DECEMBER)
    assert (kept_all.stored_minus_charged, kept_all.lines_minus_charges, kept_all.charged_minus_active) == (
        0,
        0,
        0,
    )
    by_line = defaultdict[int, int](int)
    for charge in charges(tenant):
        by_line[charge.price_version_id] += int(charge.exact_num)
    assert {line.price_version_id: int(line.exact_num) for line in lines(invoices(tenant)[0])} == by_line


@pytest.fixture
def closed() -> Tenant:
    """A tenant with a month of storage and an hour of a lease, closed."""
    storage()
    tenant, project = customer("Europe/Berlin")
    ran(project, sold(EURO), NOVEMBER + timedelta(days=3), HOUR)
    kept(project, 50, NOVEMBER - timedelta(days=2), NOVEMBER + timedelta(days=9))
    kept(project, 11, NOVEMBER + timedelta(days=1, seconds=7))
    for label, end in (("2026-10", at("2026-10-31 23:00:00")), ("2026-11", at("2026-11-30 23:00:00"))):
        close(tenant, label, end)
    return tenant


def storage_line(tenant: Tenant) -> InvoiceLine:
    with as_tenant(tenant.pk):
        rows = InvoiceLine.objects.select_related("invoice__period", "invoice__tenant").order_by(
            "-invoice__number"
        )
        by_gib = RatedCharge.objects.filter(meter="gib_seconds").values("offering_id")
        return rows.filter(invoice__period__label="2026-11", offering_id__in=by_gib).get()


def test_a_line_of_storage_explains_which_volume_from_when_to_when(closed: Tenant) -> None:
    line = storage_line(closed)
    with as_tenant(closed.pk):
        told = explain(line)
    assert told.recomputed_equal
    assert told.what == "Storage, eu-1"
    assert {(use.name.split()[0], use.windows[0].quantity) for use in told.leases} == {
        ("data", 50),
        ("data", 11),
    }
    assert (
        sum(window.unit_seconds for use in told.leases for window in use.windows if window.charged)
        == line.unit_seconds
    )


def test_the_independent_script_recomputes_storage_and_finds_what_was_changed(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    with as_tenant(closed.pk):
        whole = bundles.bundle(invoice)
    raw = b"".join(whole)
    report = verify.check(raw)
    assert report.differences == []
    assert "volumes      2, by the GiB" in "\n".join(verify.told(report))
    grown = raw.replace(b'"gib":50', b'"gib":51')
    assert any("exact amount" in words for words in verify.check(grown).differences)
    shrunk = raw.replace(b'"gib":50', b'"gib":-1')
    assert any("less than no GiB" in words for words in verify.check(shrunk).differences)
    volume = raw.partition(b'"volumes":[\n')[2].partition(b"}]}")[0] + b"}]}"
    twice = raw.replace(volume, volume + b"," + volume)
    assert any("there twice" in words for words in verify.check(twice).differences)


def test_exports_tell_storage_as_storage(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    rows = [dict(zip(focus.COLUMNS, row, strict=True)) for row in focus.rows(invoice)]
    kept_ = [row for row in rows if row["ServiceCategory"] == "Storage"]
    assert {(row["ResourceType"], row["PricingUnit"], row["SkuMeter"]) for row in kept_} == {
        ("Volume", "GiB-Hours", "gib_seconds")
    }
    assert sum(Fraction(row["BilledCost"]) for row in rows) == Fraction(invoice.total, 100)
    with as_tenant(closed.pk):
        [paper] = [each for each in papers.told(invoice) if each.what == "Storage, eu-1"]
    assert paper.terms.startswith("2 volumes · by the GiB")
    assert "data" in "".join(str(row) for row in sheets._charges(invoice))


def test_storage_falls_to_who_made_the_volume(closed: Tenant) -> None:
    invoice = storage_line(closed).invoice
    with as_tenant(closed.pk):
        by_user = {part.key: part.minor for part in allocated(invoice, by="user")}
        by_tag = allocated(invoice, by="tag", tag="team")
    assert by_user["usr_ada"] == storage_line(closed).minor
    assert sum(part.total for part in by_tag) == invoice.total


def test_spend_counts_volumes_to_the_second_and_their_gib_as_no_hours_of_cards() -> None:
    storage()
    tenant, project = customer()
    volume = kept(project, 100, NOVEMBER)
    now = NOVEMBER + timedelta(hours=5, minutes=1)
    with as_tenant(tenant.pk):
        before = spend.lines([NOVEMBER, DECEMBER], until=now, cut="user")
        cost = spend.costs([volume.pk], now=now)[volume.pk]
    charging.charge_daily(now=NOVEMBER + timedelta(days=1))
    with as_tenant(tenant.pk):
        after = spend.lines([NOVEMBER, DECEMBER], until=now, cut="user")
    assert before == after
    assert [(line.unit_seconds, line.exact_num, line.part) for line in before] == [
        (0, 100 * (5 * HOUR + 60) * GIB_HOUR, "usr_ada")
    ]
    assert cost.exact_num == before[0].exact_num


def test_spend_goes_on_over_a_step_that_is_not_charged_yet() -> None:
    storage()
    tenant, project = customer()
    kept(project, 10, NOVEMBER, NOVEMBER + timedelta(hours=2))
    with as_tenant(tenant.pk):
        assert spend.between(tenant, NOVEMBER, DECEMBER) == to_minor(10 * 2 * HOUR * GIB_HOUR, 2)
        [line] = spend.lines([NOVEMBER, DECEMBER], until=DECEMBER)
    assert line.exact_num == 10 * 2 * HOUR * GIB_HOUR


def test_prices_of_storage_are_those_of_the_list() -> None:
    offering = storage()
    assert prices.at(NOVEMBER, currency="EUR", offerings=[offering.pk])[offering.pk].nano_per_hour == GIB_HOUR
    assert VolumeStep.objects.count() == 0


def test_the_month_of_whoever_has_only_volumes_is_closed_as_well() -> None:
    storage()
    tenant, project = customer()
    kept(project, 50, DECEMBER - timedelta(hours=2))
    assert closing.close_due(now=DECEMBER + closing.GRACE).months == 1
    assert [(invoice.period.label, invoice.number is not None) for invoice in invoices(tenant)] == [
        ("2026-11", True)
    ]


def test_whose_volumes_have_news_is_asked_without_a_look_at_anybody_elses() -> None:
    storage()
    (mine, project), (_, elsewhere) = customer(), customer()
    kept(project, 50, NOVEMBER, DECEMBER)
    kept(elsewhere, 50, NOVEMBER, DECEMBER)
    looked_at = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'broker_volumestep'"
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(looked_at)
        [before] = cursor.fetchone()
        assert charging.with_news([mine.pk]) == {mine.pk}
        cursor.execute(looked_at)
        assert cursor.fetchone() == (before + VolumeStep.objects.filter(tenant_id=mine.pk).count(),)
