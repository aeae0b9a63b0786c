"""FOCUS exports of many kinds of months against the rules of FOCUS 1.2."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from billing.models import Invoice
from billing.services.catalogue import tenant_prices
from billing.services.documents.focus import focus_exports
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import START, close_and_get_invoice, create_discount, set_tiered_price
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.agreements.test_minimums import create_test_minimum
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.focus.focus_rules import ROW_RULES, Row, broken_rules
from tests.billing.documents.test_exports import column_total, read_export
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    utc,
)
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
NOVEMBER = utc("2026-11-01 00:00:00")
ISSUED = utc("2026-12-03 10:00:00")


@pytest.fixture(autouse=True)
def _payments(simulated_payments: None) -> None:
    """Collect by the simulated gateway in every test here."""


def plain_month() -> Invoice:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(1_234_567_891), START, 3601, quantity=3)
    add_ended_lease(project, create_priced_offering(EURO, price_class="spot"), START + DAY, 7)
    return close_and_get_invoice(tenant)


def discounted_month() -> Invoice:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [HOUR], [EURO // 3])
    add_ended_lease(project, offering, START, 5 * HOUR + 1)
    own = create_priced_offering(2 * EURO)
    tenant_prices.set_tenant_price(
        tenant=tenant, offering=own, nano_per_hour=EURO, since=NOVEMBER, actor=OPERATOR, now=NOVEMBER
    )
    add_ended_lease(project, own, START, 2 * HOUR)
    create_discount(tenant, percent_bp=1234)
    create_discount(tenant, minor=7)
    return close_and_get_invoice(tenant)


def committed_month() -> Invoice:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 2, until=START + DAY)
    add_ended_lease(project, offering, START, 10 * HOUR + 1, quantity=3)
    add_ended_lease(project, offering, START + 2 * DAY, 10 * HOUR)
    create_discount(tenant, percent_bp=333)
    return close_and_get_invoice(tenant)


def late_month() -> Invoice:
    """The month after one with a commitment, with late usage that the commitment covers in part."""
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 2, until=START + DAY)
    add_ended_lease(project, offering, START, HOUR)
    close_and_get_invoice(tenant)
    add_ended_lease(project, offering, START + timedelta(hours=2), 2 * HOUR, quantity=3)
    return close_december(tenant)


def close_december(tenant: Tenant) -> Invoice:
    now = utc("2027-01-01 00:10:00")
    lease_rating.rate_all_leases(now=now)
    found = close_month.close_period(tenant, "2026-12", now=now)
    assert found is not None
    return found


def minimum_month() -> Invoice:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    create_test_minimum(tenant)
    return close_and_get_invoice(tenant)


def yen_month() -> Invoice:
    tenant, project = create_customer(currency="JPY")
    add_ended_lease(project, create_priced_offering(333 * EURO, currency="JPY"), START, 3599)
    return close_and_get_invoice(tenant)


def credited_month() -> Invoice:
    invoice = committed_month()
    issue_note(invoice, {1: 50}, now=ISSUED)
    issue_note(invoice, now=ISSUED)
    return invoice


MONTHS: list[Callable[[], Invoice]] = [
    plain_month,
    discounted_month,
    committed_month,
    late_month,
    minimum_month,
    yen_month,
    credited_month,
]


@pytest.fixture(autouse=True)
def _taxed(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


@pytest.mark.parametrize("month", MONTHS, ids=lambda month: month.__name__)
def test_the_export_keeps_every_rule_of_focus(month: Callable[[], Invoice]) -> None:
    rows = read_export(month(), "focus")
    assert list(rows[0]) == list(focus_exports.COLUMNS)
    assert broken_rules(rows) == {}


@pytest.mark.parametrize("month", MONTHS, ids=lambda month: month.__name__)
def test_billed_and_effective_costs_add_up_to_the_invoice_and_its_credit_notes(month: Callable[[], Invoice]) -> None:
    invoice = month()
    rows = read_export(invoice, "focus")
    places = 0 if invoice.currency == "JPY" else 2
    own = [row for row in rows if row["InvoiceId"] == str(invoice)]
    assert column_total(own, "BilledCost").scaleb(places) == invoice.total
    assert column_total(own, "EffectiveCost").scaleb(places) == invoice.total
    with tenant_scope(invoice.tenant_id):
        for note in invoice.credit_notes.all():
            theirs = [row for row in rows if row["InvoiceId"] == str(note)]
            assert column_total(theirs, "BilledCost").scaleb(2) == -note.total


def test_every_rule_can_fail() -> None:
    rows = [row for month in (committed_month, plain_month) for row in read_export(month(), "focus")]
    assert broken_rules(rows) == {}
    edits = [
        {name: value} for name in rows[0] for value in ("", "Odd", "1", "-1", "Purchase", "Usage-Based", '{"a": []}')
    ]
    edits += [
        {"ChargeCategory": "Credit", "EffectiveCost": "99"},
        {"ChargePeriodStart": "2020-01-01T00:00:00Z"},
        {"ChargePeriodEnd": "2020-01-01T00:00:00Z"},
        {"BillingPeriodEnd": "2020-01-01T00:00:00Z"},
        {"CapacityReservationId": "x"},
        {"RegionId": "", "ResourceId": ""},
        {"SkuId": "", "SkuPriceId": ""},
    ]
    unbroken = set(ROW_RULES)
    for edit in edits:
        for row in rows:
            edited: Row = row | edit
            for name in list(unbroken):
                try:
                    unbroken -= set() if ROW_RULES[name](edited) else {name}
                except (ValueError, TypeError, ArithmeticError):
                    continue
    assert unbroken == set()
