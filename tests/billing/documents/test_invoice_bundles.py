"""Invoice bundles against the independent verifier."""

import json
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from billing.models import Invoice, InvoiceLine
from billing.services.documents import invoice_bundles
from billing.services.documents.invoice_bundles import DraftChanging
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from billing.verify.verify import Report, check
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    set_price,
    utc,
)
from tests.billing.verify.written_bundles import write_bundle

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
START = utc("2026-11-02 00:00:00")


def build_bundle(invoice: Invoice) -> bytes:
    with tenant_scope(invoice.tenant_id):
        return b"".join(invoice_bundles.build_bundle(invoice))


def draft_bundle(tenant: Tenant) -> bytes:
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    return build_bundle(invoices_of(tenant)[-1])


def verify_bundle(raw: bytes) -> Report:
    report = check(raw)
    assert report.differences == []
    assert report.unchecked == []
    return report


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return create_customer("Europe/Berlin")


def test_a_bundle_contains_usage_and_prices_but_no_charges(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(1_340_000_000)
    lease = add_ended_lease(project, offering, START, HOUR, quantity=2)
    raw = draft_bundle(tenant)
    (invoice,), version = invoices_of(tenant), offering.price_versions.get()
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
    report = verify_bundle(raw)
    assert (report.total, report.unit_seconds, report.stretches, report.transitions) == (268, 7200, 1, 4)


def test_the_bundle_of_a_final_invoice_never_changes(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    add_running_lease(project, offering, utc("2026-10-30 22:00:00"))
    add_ended_lease(project, offering, utc("2026-10-11 22:00:00"), HOUR)
    close_month.close_due_months(now=utc("2026-11-05 00:00:00"))
    october = invoices_of(tenant)[0]
    first = build_bundle(october)
    verify_bundle(first)
    with tenant_scope(tenant.pk):
        Project.objects.filter(pk=project.pk).update(name="renamed")
        Tenant.objects.filter(pk=tenant.pk).update(name="renamed")
    set_price(offering, 2 * EURO, since=utc("2026-11-20 00:00:00"))
    add_ended_lease(project, offering, utc("2026-10-12 22:00:00"), 60)  # late
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    close_month.close_due_months(now=utc("2026-12-05 00:00:00"))
    assert invoices_of(tenant)[1].status == "finalized"
    assert build_bundle(october) == first


def test_an_open_lease_is_in_a_draft_bundle_up_to_its_last_charged_second(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    steps = [
        (START + timedelta(hours=h), state) for h, state in enumerate([S.REQUESTED, S.ACTIVE, S.STOPPED, S.ACTIVE])
    ]
    add_lease_history(project, offering, steps)
    add_running_lease(project, offering, START)  # not charged for anything yet
    report = verify_bundle(draft_bundle(tenant))
    (lease,) = report.bundle.leases
    assert [step.state for step in lease.steps] == ["requested", "active", "stopped"]
    assert report.total == 100


def test_changes_of_price_and_terms_split_a_usage_period(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering, other = create_priced_offering(EURO), create_priced_offering(3 * EURO)
    set_price(offering, 2 * EURO, since=START + timedelta(minutes=30))
    steps = [(START + timedelta(hours=h), state) for h, state in enumerate([S.ACTIVE, S.ACTIVE, S.ACTIVE, S.RELEASED])]
    add_lease_history(project, offering, steps, terms=[(offering, 1), (offering, 4), (other, 2)])
    report = verify_bundle(draft_bundle(tenant))
    assert sorted(line.unit_seconds for line in report.bundle.lines) == [1800, 2 * HOUR, 1800 + 4 * HOUR]
    assert report.total == 50 + 100 + 800 + 600


def test_a_quoted_price_is_in_the_bundle_and_survives_price_increases(kestrel: tuple[Tenant, Project]) -> None:
    """The price rose twice; a second lease redeems no quote."""
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    cited, _ = (add_ended_lease(project, offering, START, HOUR, quantity=2) for _ in range(2))
    quote = add_quote(cited, offering.price_versions.get())
    set_price(offering, 2 * EURO, since=START - timedelta(seconds=30))
    set_price(offering, 4 * EURO, since=START + timedelta(minutes=30))
    raw = draft_bundle(tenant)
    report = verify_bundle(raw)
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
        "ceiling": True,
    }
    assert [life["promised"] for life in found["leases"] if life["id"] != cited.pk] == [None]
    for life in found["leases"]:
        if life["promised"]:
            life["promised"].update(nano_per_hour="900000000", cap=180)
    assert check(write_bundle(found)).differences


def test_a_quote_without_charges_is_in_the_bundle_with_its_price(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering, other = create_priced_offering(EURO), create_priced_offering(3 * EURO)
    steps = [(START + timedelta(hours=h), state) for h, state in enumerate([S.REQUESTED, S.ACTIVE, S.RELEASED])]
    version = offering.price_versions.get()
    add_quote(add_lease_history(project, offering, steps, terms=[(offering, 1), (other, 1)]), version)
    report = verify_bundle(draft_bundle(tenant))
    assert [line.offering for line in report.bundle.lines] == [other.pk]
    assert version.pk in {price.id for price in report.bundle.prices}


def test_late_usage_is_marked_in_the_bundle_of_the_later_invoice(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    add_running_lease(project, offering, utc("2026-10-31 22:00:00"))
    close_month.close_due_months(now=utc("2026-11-01 00:00:00"))
    late = add_ended_lease(
        project, offering, utc("2026-10-31 20:00:00"), 4 * HOUR
    )  # three hours of October, one of November
    raw = draft_bundle(tenant)
    report = verify_bundle(raw)
    (lease,) = report.bundle.leases
    assert (lease.id, [(part.seq, part.month) for part in lease.late]) == (late.pk, [(2, "2026-10")])
    assert [month.label for month in report.bundle.months] == ["2026-10", "2026-11"]
    assert report.total == 400
    assert verify_bundle(build_bundle(invoices_of(tenant)[0])).total == 100


def test_late_usage_read_after_the_charges_is_not_in_the_bundle(
    kestrel: tuple[Tenant, Project],
) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    add_running_lease(project, offering, utc("2026-10-31 22:00:00"))
    close_month.close_due_months(now=utc("2026-11-01 00:00:00"))
    add_ended_lease(project, offering, utc("2026-10-31 20:00:00"), HOUR)
    draft_bundle(tenant)
    real = invoice_bundles.read_charged_usage
    with patch.object(
        invoice_bundles,
        "read_charged_usage",
        lambda invoice: invoice_bundles.ChargedUsage({}, real(invoice).sums),
    ):
        found = json.loads(build_bundle(invoices_of(tenant)[-1]))
    assert (found["leases"], [month["label"] for month in found["months"]]) == ([], ["2026-11"])


def test_months_around_a_time_zone_change_have_a_start_and_end_zone() -> None:
    tenant, project = create_customer("Asia/Kolkata")
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(time_zone="America/St_Johns")
        tenant.refresh_from_db()
    add_ended_lease(project, offering, utc("2026-11-05 00:00:00"), HOUR)
    add_ended_lease(project, offering, utc("2026-09-05 00:00:00"), HOUR)
    draft_bundle(tenant)
    found = [
        [
            (month.label, month.start_zone, month.end_zone)
            for month in verify_bundle(build_bundle(invoice)).bundle.months
        ]
        for invoice in invoices_of(tenant)
    ]
    assert found == [
        [("2026-09", "America/St_Johns", "Asia/Kolkata")],
        [("2026-10", "Asia/Kolkata", "Asia/Kolkata")],
        [("2026-11", "Asia/Kolkata", "America/St_Johns")],
    ]


@pytest.mark.deep
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_months_in_time_zones_with_clock_changes_verify_to_the_second(zone: str) -> None:
    tenant, project = create_customer(zone)
    offering = create_priced_offering(1_234_567_891)
    add_running_lease(project, offering, utc("2025-12-20 00:00:00"))
    for month in range(1, 13):
        close_month.close_due_months(now=utc(f"2026-{month:02d}-05 00:00:00"))
    found = invoices_of(tenant)
    assert len(found) == 12
    for invoice in found:
        assert verify_bundle(build_bundle(invoice)).total == invoice.total


def test_bundles_in_currencies_with_zero_and_three_decimals_verify(kestrel: tuple[Tenant, Project]) -> None:
    for currency, total in (("JPY", 1), ("KWD", 1000)):
        tenant, project = create_customer("UTC", currency=currency)
        add_ended_lease(project, create_priced_offering(EURO, currency=currency), START, HOUR)
        assert verify_bundle(draft_bundle(tenant)).total == total


def test_a_draft_without_lines_has_a_verifiable_bundle(kestrel: tuple[Tenant, Project]) -> None:
    tenant, _ = kestrel
    with tenant_scope(tenant.pk):
        month = billing_periods.current_period(tenant, now=NOW)
        invoice = Invoice.objects.create(tenant=tenant, period=month, currency="EUR", refreshed_at=NOW)
    assert verify_bundle(build_bundle(invoice)).total == 0


def test_a_bundle_of_a_draft_older_than_its_charges_is_refused(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, START, HOUR)
    draft_bundle(tenant)
    add_ended_lease(project, offering, START, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    with pytest.raises(DraftChanging):
        build_bundle(invoices_of(tenant)[0])
    drafts.refresh_drafts(tenant, now=NOW)
    assert verify_bundle(build_bundle(invoices_of(tenant)[0])).total == 200


def test_a_draft_that_changes_while_read_is_read_again(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    draft_bundle(tenant)
    real, calls = invoice_bundles.read_charged_usage, list[int]()

    def behind(invoice: Invoice) -> Any:
        calls.append(1)
        found = real(invoice)
        return invoice_bundles.ChargedUsage({}, {}) if len(calls) == 1 else found

    with patch.object(invoice_bundles, "read_charged_usage", behind):
        assert verify_bundle(build_bundle(invoices_of(tenant)[0])).total == 100
    assert len(calls) == 2


def test_the_verifier_finds_a_wrong_amount_in_a_final_invoice(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    draft_bundle(tenant)
    (invoice,) = invoices_of(tenant)
    final = {"status": "finalized", "series": "2026-11", "number": 7, "finalized_at": NOW}
    with tenant_scope(tenant.pk):
        InvoiceLine.objects.filter(invoice=invoice).update(minor=101)
        Invoice.objects.filter(pk=invoice.pk).update(**final)
    (wrong,) = invoices_of(tenant)
    assert check(build_bundle(wrong)).differences == [
        "line 1, amount: the invoice says 1.01 EUR, recomputed is 1.00 EUR",
    ]


def test_a_bundle_read_in_batches_has_the_same_bytes(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    for n in range(5):
        add_ended_lease(project, offering, START + timedelta(hours=n), HOUR)
    whole = draft_bundle(tenant)
    with patch.object(invoice_bundles, "LEASES_PER_QUERY", 2):
        assert draft_bundle(tenant) == whole
    assert verify_bundle(whole).total == 500
