"""CSV exports of an invoice: FOCUS, charges and lines."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.models import Invoice, RatedCharge
from billing.services.catalogue import tenant_prices
from billing.services.documents import charge_exports, csv_exports
from billing.services.documents.focus import focus_exports
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.models import Lease
from ports import clock
from tenants.domain.roles import Role
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
OCTOBER = utc("2026-10-01 00:00:00")
FINE = Decimal("2e-12")
Rows = list[dict[str, str]]


def read_export(invoice: Invoice, kind: str) -> Rows:
    with tenant_scope(invoice.tenant_id):
        found = Invoice.objects.select_related("period", "tenant").get(pk=invoice.pk)
        return list(csv.DictReader(io.StringIO("".join(csv_exports.csv_text(found, kind)))))


def column_total(rows: Rows, name: str) -> Decimal:
    return sum((Decimal(row[name]) for row in rows), Decimal())


def close_october(tenant: Tenant) -> Invoice:
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def decimal_amount(invoice: Invoice, minor: int, places: int = 2) -> Decimal:
    return Decimal(minor).scaleb(-places)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.integers(1, 9999), st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=12),
    st.sampled_from([("EUR", 2), ("JPY", 0), ("KWD", 3)]),
)
@pytest.mark.deep
def test_exported_charges_and_lines_add_up_to_the_invoice(
    used: list[tuple[int, int, int]], currency: tuple[str, int]
) -> None:
    code, places = currency
    tenant, project = create_customer(currency=code)
    prices = (1_234_567_891, 333_333_333, 7 * EURO)
    shelf = [create_priced_offering(nano, currency=code) for nano in prices]
    for n, (seconds, which, quantity) in enumerate(used):
        add_ended_lease(project, shelf[which], OCTOBER + timedelta(hours=3 * n), seconds, quantity=quantity)
    invoice = close_october(tenant)
    rows = read_export(invoice, "focus")
    assert (
        column_total(rows, "BilledCost")
        == column_total(rows, "EffectiveCost")
        == decimal_amount(invoice, invoice.total, places)
    )
    assert column_total(read_export(invoice, "charges"), "billed") == decimal_amount(invoice, invoice.total, places)
    assert column_total(read_export(invoice, "lines"), "amount") == decimal_amount(invoice, invoice.total, places)
    with tenant_scope(tenant.pk):
        for line in invoice.lines.all():
            own = [row for row in rows if row["SkuId"] == line.offering_id]
            assert column_total(own, "BilledCost") == decimal_amount(invoice, line.minor, places)
            exact = Decimal(int(line.exact_num)) / (3600 * 10**9)
            assert abs(column_total(own, "ContractedCost") - exact) < Decimal("1e-11")
            odd = [row for row in own if abs(Decimal(row["BilledCost"]) - Decimal(row["ContractedCost"])) > FINE]
            assert odd in ([], own[:1])  # the first of a line bears its rounding


def test_exports_with_tax_add_up_to_the_invoice_total(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    tenant, project = create_customer()
    for n, nano in enumerate((1_111_111_111, 2_222_222_222)):
        add_ended_lease(project, create_priced_offering(nano), OCTOBER + timedelta(days=n), HOUR)
    invoice = close_october(tenant)
    rows = read_export(invoice, "focus")
    assert column_total(rows, "BilledCost") == decimal_amount(invoice, invoice.total)
    tax = [row for row in rows if row["ChargeCategory"] == "Tax"]
    assert column_total(tax, "BilledCost") == decimal_amount(invoice, invoice.tax) == Decimal("0.63")
    assert {row["SubAccountId"] for row in tax} == {project.pk}
    assert column_total(read_export(invoice, "lines"), "tax") == Decimal("0.63")


def test_an_exported_row_states_resource_requester_period_and_price() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    lease = add_ended_lease(project, offering, OCTOBER, 2 * HOUR)
    with tenant_scope(tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(
            name="=fold", tags={"team": "docking"}, requested_by="usr_x", requested_by_label="ada@example.org"
        )
    set_price(offering, 2 * EURO, since=OCTOBER + timedelta(hours=1))
    invoice = close_october(tenant)
    first, second = read_export(invoice, "focus")
    assert list(first) == list(focus_exports.COLUMNS)
    assert (first["ChargePeriodStart"], first["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:00Z",
        "2026-10-01T01:00:00Z",
    )
    assert (first["BillingPeriodStart"], first["BillingPeriodEnd"]) == (
        "2026-10-01T00:00:00Z",
        "2026-11-01T00:00:00Z",
    )
    assert (first["PricingQuantity"], first["ListUnitPrice"]) == ("1.000000000000", "1.000000000")
    assert (second["ContractedUnitPrice"], second["ContractedCost"]) == ("2.000000000", "2.000000000000")
    assert (first["ConsumedQuantity"], first["ConsumedUnit"]) == ("3600", "Seconds")
    assert first["Tags"] == '{"gpubroker/requested_by": "ada@example.org", "team": "docking"}'
    assert (first["InvoiceId"], first["ChargeClass"]) == ("2026-10-0001", "")
    charge = read_export(invoice, "charges")[0]
    assert (charge["lease_name"], charge["requested_by"]) == ("'=fold", "ada@example.org")
    assert (charge["billed"], charge["exact_numerator"]) == ("1.000000000000", str(HOUR * EURO))
    (one, two) = read_export(invoice, "lines")
    assert (one["price_per_hour"], two["amount"]) == ("1.000000000", "2.000000")


def test_late_usage_is_exported_as_corrections_on_the_next_invoice() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, OCTOBER, HOUR)
    close_october(tenant)
    late = add_ended_lease(project, offering, OCTOBER + timedelta(days=2), 2 * HOUR)
    after = utc("2026-11-02 00:00:00")
    lease_rating.rate_tenant_leases(tenant, now=after)
    drafts.refresh_drafts(tenant, now=after)
    with tenant_scope(tenant.pk):
        draft = Invoice.objects.get(status="draft")
    (row,) = read_export(draft, "focus")
    assert (row["ResourceId"], row["ChargeClass"], row["InvoiceId"]) == (late.pk, "Correction", "")
    assert read_export(draft, "charges")[0]["late"] == "late"


def test_charges_rated_during_the_export_of_a_draft_are_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charge_exports, "LEASES_PER_QUERY", 1)
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    leases = [add_ended_lease(project, offering, OCTOBER + timedelta(days=n), HOUR) for n in range(3)]
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        draft = Invoice.objects.select_related("period", "tenant").get()
    rows = charge_exports.billed_charges(draft)
    seen = [next(rows).charge]
    with tenant_scope(tenant.pk):  # one more stretch of a lease that was not read yet
        again = RatedCharge.objects.get(lease_id=max(each.pk for each in leases))
        fields = {f.attname: getattr(again, f.attname) for f in RatedCharge._meta.concrete_fields}
        RatedCharge.objects.create(**(fields | {"seq": again.seq + 10}))
    seen += [each.charge for each in rows]
    assert [charge.lease_id for charge in seen] == sorted(each.pk for each in leases)


@pytest.fixture
def kestrel() -> Iterator[TenantContext]:
    with clock.frozen_at(NOW):
        yield create_tenant("Kestrel")


def test_pages_and_api_return_the_same_export_files(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    add_ended_lease(kestrel.project, create_priced_offering(2 * EURO), OCTOBER, HOUR)
    lease_rating.rate_all_leases(now=NOW)
    invoice = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert invoice is not None
    payer = Client()
    payer.force_login(kestrel.create_member(Role.BILLING))
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    page = payer.get(f"/invoices/{invoice.pk}/").content.decode()
    for kind in csv_exports.EXPORT_KINDS:
        path = f"invoices/{invoice.pk}/exports/{kind}"
        assert f'href="/{path}/"' in page
        seen = payer.get(f"/{path}/")
        assert seen["Content-Type"] == "text/csv; charset=utf-8"
        assert seen["Content-Disposition"] == f'attachment; filename="invoice-2026-10-0001-{kind}.csv"'
        assert api.send("GET", path).content == seen.content
        monkeypatch.setattr("web.http.downloads.MAX_UNSTREAMED", 10)
        assert b"".join(payer.get(f"/{path}/").streaming_content) == seen.content
        assert b"".join(api.send("GET", path).streaming_content) == seen.content
        monkeypatch.undo()
    assert payer.get(f"/invoices/{invoice.pk}/exports/other/").status_code == 404
    assert api.send("GET", f"invoices/{invoice.pk}/exports/other").status_code == 404


def test_the_focus_export_states_list_price_and_tenant_price() -> None:
    tenant, project = create_customer()
    listed, unlisted = create_priced_offering(2 * EURO), create_priced_offering(None)
    for n, offering in enumerate((listed, unlisted)):
        tenant_prices.set_tenant_price(
            tenant=tenant, offering=offering, nano_per_hour=EURO, since=OCTOBER, actor=OPERATOR, now=OCTOBER
        )
        add_ended_lease(project, offering, OCTOBER + timedelta(days=n), HOUR)
    rows = {row["SkuId"]: row for row in read_export(close_october(tenant), "focus")}
    assert (rows[listed.pk]["ListCost"], rows[listed.pk]["ContractedCost"]) == (
        "2.000000000000",
        "1.000000000000",
    )
    assert rows[unlisted.pk]["ListUnitPrice"] == "1.000000000"


def test_rows_of_fully_credited_usage_keep_their_cost() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), OCTOBER, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    credit_seconds(tenant, HOUR - 1)
    used, given = sorted(
        read_export(close_october(tenant), "focus"), key=lambda row: row["ChargeCategory"], reverse=True
    )
    assert (used["ContractedCost"], given["ContractedCost"]) == ("1.000000000000", "-0.999722222222")
    assert column_total([used, given], "BilledCost") == 0
    assert abs(Decimal(used["BilledCost"]) - 1) < Decimal("0.005")


def credit_seconds(tenant: Tenant, seconds: int) -> None:
    """Credit the first seconds of the only charge."""
    with tenant_scope(tenant.pk):
        used = RatedCharge.objects.get()
        fields = {f.attname: getattr(used, f.attname) for f in RatedCharge._meta.concrete_fields}
        back = {"kind": "adjust", "unit_seconds": -seconds, "exact_num": -seconds * EURO}
        RatedCharge.objects.create(**(fields | back | {"e": used.s + timedelta(seconds=seconds)}))


def test_credited_usage_is_exported_as_an_adjustment_without_consumption() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), OCTOBER, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    credit_seconds(tenant, 120)
    invoice = close_october(tenant)
    rows = read_export(invoice, "focus")
    assert column_total(rows, "BilledCost") == decimal_amount(invoice, invoice.total) == Decimal("0.97")
    (given,) = [row for row in rows if row["ChargeCategory"] == "Adjustment"]
    assert (given["PricingQuantity"], given["ConsumedQuantity"]) == ("-0.033333333333", "")
    assert Decimal(given["BilledCost"]) < 0
