"""The bundle of an invoice, as the product makes it, against the program that checks it and shares no line with it."""

import json
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from billing.models import Invoice, InvoiceLine
from billing.services import bundles, closing, drafts, periods, rating
from billing.services.bundles import DraftMoves
from billing.verify.verify import Report, check
from tenants.models import Project, Tenant
from tenants.services.walls import as_tenant
from tests.billing.histories import (
    EURO,
    HOUR,
    S,
    at,
    customer,
    invoices,
    lived,
    promise,
    ran,
    reprice,
    runs,
    sold,
)
from tests.billing.verify.papers import sealed

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")
START = at("2026-11-02 00:00:00")


def written(invoice: Invoice) -> bytes:
    with as_tenant(invoice.tenant_id):
        return b"".join(bundles.bundle(invoice))


def drafted(tenant: Tenant) -> bytes:
    rating.rate(now=NOW)
    drafts.refresh(tenant, now=NOW)
    return written(invoices(tenant)[-1])


def checked(raw: bytes) -> Report:
    report = check(raw)
    assert report.differences == []
    assert report.unchecked == []
    return report


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return customer("Europe/Berlin")


def test_a_bundle_holds_what_happened_and_not_one_charge(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(1_340_000_000)
    lease = ran(project, offering, START, HOUR, quantity=2)
    raw = drafted(tenant)
    (invoice,), version = invoices(tenant), offering.price_versions.get()
    step = {"offering": offering.pk, "project": project.pk, "quantity": 2}
    found = json.loads(raw)
    assert len(found.pop("sha256")) == 64
    assert found == {
        "format": "gpubroker-invoice",
        "version": 1,
        "invoice": {"id": invoice.pk, "tenant": tenant.pk, "number": None, "month": "2026-11", "currency": "EUR",
                    "decimals": 2, "total": 268},
        "months": [{"label": "2026-11", "start": "2026-10-31T23:00:00Z", "end": "2026-11-30T23:00:00Z",
                    "start_zone": "Europe/Berlin", "end_zone": "Europe/Berlin"}],
        "prices": [{"id": version.pk, "offering": offering.pk, "nano_per_hour": "1340000000",
                    "since": "2020-01-01T00:00:00Z", "until": None}],
        "lines": [{"n": 1, "project": project.pk, "offering": offering.pk, "price": version.pk, "leases": 1,
                   "unit_seconds": 7200, "exact": str(7200 * 1_340_000_000), "minor": 268}],
        "leases": [{"id": lease.pk, "promised": None, "late": [], "steps": [
            {"seq": 0, "at": "2026-11-02T00:00:00Z", "state": "requested", **step},
            {"seq": 1, "at": "2026-11-02T00:00:00Z", "state": "provisioning", **step},
            {"seq": 2, "at": "2026-11-02T00:00:00Z", "state": "active", **step},
            {"seq": 3, "at": "2026-11-02T01:00:00Z", "state": "releasing", **step},
        ]}],
    }  # fmt: skip
    report = checked(raw)
    assert (report.total, report.unit_seconds, report.stretches, report.transitions) == (268, 7200, 1, 4)


def test_a_final_invoice_has_the_same_bytes_for_ever(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    runs(project, offering, at("2026-10-30 22:00:00"))
    ran(project, offering, at("2026-10-11 22:00:00"), HOUR)
    closing.close_due(now=at("2026-11-05 00:00:00"))
    october = invoices(tenant)[0]
    first = written(october)
    checked(first)
    with as_tenant(tenant.pk):
        Project.objects.filter(pk=project.pk).update(name="renamed")
        Tenant.objects.filter(pk=tenant.pk).update(name="renamed")
    reprice(offering, 2 * EURO, since=at("2026-11-20 00:00:00"))
    ran(project, offering, at("2026-10-12 22:00:00"), 60)  # late
    rating.rate(now=NOW)
    drafts.refresh(tenant, now=NOW)
    closing.close_due(now=at("2026-12-05 00:00:00"))
    assert invoices(tenant)[1].status == "finalized"
    assert written(october) == first


def test_an_open_lease_is_in_a_draft_with_what_it_was_charged_for(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    steps = [
        (START + timedelta(hours=h), state)
        for h, state in enumerate([S.REQUESTED, S.ACTIVE, S.STOPPED, S.ACTIVE])
    ]
    lived(project, offering, steps)
    runs(project, offering, START)  # not charged for anything yet
    report = checked(drafted(tenant))
    (lease,) = report.bundle.leases
    assert [step.state for step in lease.steps] == ["requested", "active", "stopped"]
    assert report.total == 100


def test_a_change_of_price_and_of_terms_cuts_a_stretch(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering, other = sold(EURO), sold(3 * EURO)
    reprice(offering, 2 * EURO, since=START + timedelta(minutes=30))
    steps = [
        (START + timedelta(hours=h), state)
        for h, state in enumerate([S.ACTIVE, S.ACTIVE, S.ACTIVE, S.RELEASED])
    ]
    lived(project, offering, steps, terms=[(offering, 1), (offering, 4), (other, 2)])
    report = checked(drafted(tenant))
    assert sorted(line.unit_seconds for line in report.bundle.lines) == [1800, 2 * HOUR, 1800 + 4 * HOUR]
    assert report.total == 50 + 100 + 800 + 600


def test_a_promised_price_is_in_the_bundle_and_outlives_the_list(kestrel: tuple[Tenant, Project]) -> None:
    """It rose between quote and launch and again while the lease ran; beside it a lease that cites nothing."""
    tenant, project = kestrel
    offering = sold(EURO)
    cited, _ = (ran(project, offering, START, HOUR, quantity=2) for _ in range(2))
    quote = promise(cited, offering.price_versions.get())
    reprice(offering, 2 * EURO, since=START - timedelta(seconds=30))
    reprice(offering, 4 * EURO, since=START + timedelta(minutes=30))
    raw = drafted(tenant)
    report = checked(raw)
    assert report.total == 200 + 200 + 400
    found = json.loads(raw)
    assert {life["id"]: life["promised"] for life in found["leases"]}[cited.pk] == {
        "quote": quote.pk,
        "price": quote.price_version_id,
        "offering": offering.pk,
        "nano_per_hour": "1000000000",
        "quantity": 2,
        "max_duration_s": HOUR,
        "cap": 200,
        "made": "2020-01-01T00:00:00Z",
        "expires": "2100-01-01T00:00:00Z",
        "cited": "2026-11-02T00:00:00Z",
    }
    assert [life["promised"] for life in found["leases"] if life["id"] != cited.pk] == [None]
    for life in found["leases"]:
        if life["promised"]:
            life["promised"].update(nano_per_hour="900000000", cap=180)
    assert check(sealed(found)).differences


def test_a_quote_of_which_nothing_is_charged_here_comes_with_its_price(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering, other = sold(EURO), sold(3 * EURO)
    steps = [
        (START + timedelta(hours=h), state) for h, state in enumerate([S.REQUESTED, S.ACTIVE, S.RELEASED])
    ]
    version = offering.price_versions.get()
    promise(lived(project, offering, steps, terms=[(offering, 1), (other, 1)]), version)
    report = checked(drafted(tenant))
    assert [line.offering for line in report.bundle.lines] == [other.pk]
    assert version.pk in {price.id for price in report.bundle.prices}


def test_late_seconds_are_named_and_stand_on_the_later_invoice(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    runs(project, offering, at("2026-10-31 22:00:00"))
    closing.close_due(now=at("2026-11-01 00:00:00"))
    late = ran(
        project, offering, at("2026-10-31 20:00:00"), 4 * HOUR
    )  # three hours of October, one of November
    raw = drafted(tenant)
    report = checked(raw)
    (lease,) = report.bundle.leases
    assert (lease.id, [(part.seq, part.month) for part in lease.late]) == (late.pk, [(2, "2026-10")])
    assert [month.label for month in report.bundle.months] == ["2026-10", "2026-11"]
    assert report.total == 400
    assert checked(written(invoices(tenant)[0])).total == 100


def test_late_seconds_that_came_after_the_charges_were_read_are_no_part(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    runs(project, offering, at("2026-10-31 22:00:00"))
    closing.close_due(now=at("2026-11-01 00:00:00"))
    ran(project, offering, at("2026-10-31 20:00:00"), HOUR)
    drafted(tenant)
    real = bundles.charged_on
    with patch.object(bundles, "charged_on", lambda invoice: bundles.Charged({}, real(invoice).sums)):
        found = json.loads(written(invoices(tenant)[-1]))
    assert (found["leases"], [month["label"] for month in found["months"]]) == ([], ["2026-11"])


def test_a_tenant_that_moved_has_a_border_of_either_zone() -> None:
    tenant, project = customer("Asia/Kolkata")
    offering = sold(EURO)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    with as_tenant(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(time_zone="America/St_Johns")
        tenant.refresh_from_db()
    ran(project, offering, at("2026-11-05 00:00:00"), HOUR)
    ran(project, offering, at("2026-09-05 00:00:00"), HOUR)
    drafted(tenant)
    found = [
        [(month.label, month.start_zone, month.end_zone) for month in checked(written(invoice)).bundle.months]
        for invoice in invoices(tenant)
    ]
    assert found == [
        [("2026-09", "America/St_Johns", "Asia/Kolkata")],
        [("2026-10", "Asia/Kolkata", "Asia/Kolkata")],
        [("2026-11", "Asia/Kolkata", "America/St_Johns")],
    ]


@pytest.mark.parametrize(
    "zone", ["Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"]
)
def test_months_of_restless_zones_are_checked_to_the_second(zone: str) -> None:
    tenant, project = customer(zone)
    offering = sold(1_234_567_891)
    runs(project, offering, at("2025-12-20 00:00:00"))
    for month in range(1, 13):
        closing.close_due(now=at(f"2026-{month:02d}-05 00:00:00"))
    found = invoices(tenant)
    assert len(found) == 12
    for invoice in found:
        assert checked(written(invoice)).total == invoice.total


def test_currencies_without_and_with_three_decimals(kestrel: tuple[Tenant, Project]) -> None:
    for currency, total in (("JPY", 1), ("KWD", 1000)):
        tenant, project = customer("UTC", currency=currency)
        ran(project, sold(EURO, currency=currency), START, HOUR)
        assert checked(drafted(tenant)).total == total


def test_a_draft_without_a_line_has_a_bundle_too(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    with as_tenant(tenant.pk):
        month = periods.current(tenant, now=NOW)
        invoice = Invoice.objects.create(tenant=tenant, period=month, currency="EUR", refreshed_at=NOW)
    assert checked(written(invoice)).total == 0


def test_a_draft_that_is_behind_its_charges_says_so(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    ran(project, offering, START, HOUR)
    drafted(tenant)
    ran(project, offering, START, HOUR)
    rating.rate(now=NOW)
    with pytest.raises(DraftMoves):
        written(invoices(tenant)[0])
    drafts.refresh(tenant, now=NOW)
    assert checked(written(invoices(tenant)[0])).total == 200


def test_a_draft_that_moves_while_it_is_read_is_read_again(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    ran(project, sold(EURO), START, HOUR)
    drafted(tenant)
    real, calls = bundles.charged_on, list[int]()

    def behind(invoice: Invoice) -> Any:
        calls.append(1)
        found = real(invoice)
        return bundles.Charged({}, {}) if len(calls) == 1 else found

    with patch.object(bundles, "charged_on", behind):
        assert checked(written(invoices(tenant)[0])).total == 100
    assert len(calls) == 2


def test_a_final_invoice_that_is_wrong_is_given_out_and_found_wrong(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    ran(project, sold(EURO), START, HOUR)
    drafted(tenant)
    (invoice,) = invoices(tenant)
    final = {"status": "finalized", "series": "2026-11", "number": 7, "finalized_at": NOW}
    with as_tenant(tenant.pk):
        InvoiceLine.objects.filter(invoice=invoice).update(minor=101)
        Invoice.objects.filter(pk=invoice.pk).update(**final)
    (wrong,) = invoices(tenant)
    assert check(written(wrong)).differences == [
        "line 1, amount: the invoice says 1.01 EUR, recomputed is 1.00 EUR",
    ]


def test_many_leases_are_read_in_pieces(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = sold(EURO)
    for n in range(5):
        ran(project, offering, START + timedelta(hours=n), HOUR)
    whole = drafted(tenant)
    with patch.object(bundles, "AT_ONCE", 2):
        assert drafted(tenant) == whole
    assert checked(whole).total == 500
