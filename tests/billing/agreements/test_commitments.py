"""Commitment coverage, shortfall lines and limits of commitment changes."""

import json
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from billing.models import Commitment, InvoiceAdjustment, PriceVersion, RateCard
from billing.services.adjustments.commitment_adjustments import commitments_in_force
from billing.services.agreements import commitment_coverage, commitments
from billing.services.agreements.commitments import CommitmentPrepaid
from billing.services.documents import invoice_bundles
from billing.services.funds.accounts import account_terms
from billing.services.funds.accounts.account_terms import HasCommitment
from billing.services.invoicing.month_close import close_month
from billing.services.reports.line_explanations import explain_invoice_line
from billing.verify.verify import check
from broker.models import Offering, OfferingState
from tenants.models import AuditEvent, Tenant
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import (
    CLOSES,
    NOW,
    START,
    adjustments_of,
    close_and_get_invoice,
    create_discount,
    create_draft,
    line_amounts,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    S,
    add_ended_lease,
    add_lease_history,
    add_quote,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    utc,
)
from tests.billing.verify.written_bundles import write_bundle

pytestmark = pytest.mark.django_db
NOVEMBER = utc("2026-11-01 00:00:00")
DAY = 24 * HOUR
MONTH = 30 * DAY


def create_commitment_terms(
    tenant: Tenant,
    offering: Offering,
    units: int = 2,
    nano: int = EURO // 2,
    *,
    since: datetime = START,
    until: datetime | None = None,
) -> Commitment:
    return commitments.create_commitment(
        tenant,
        offering,
        units=units,
        nano_per_hour=nano,
        since=since,
        until=until,
        actor=OPERATOR,
        now=min(since, NOW),
    )


def create_list_price(offering: Offering, **more: int) -> PriceVersion:
    """Create a price of 1.00 an hour valid from October."""
    return PriceVersion.objects.create(
        rate_card=RateCard.objects.get_or_create(name="list", tenant_id=None)[0],
        offering=offering,
        currency="EUR",
        valid=(utc("2026-10-01 00:00:00"), None),
        nano_per_hour=EURO,
        created_at=utc("2026-10-01 00:00:00"),
        **more,
    )


def create_one_day_commitment(offering: Offering, tenant: Tenant, *, units: int = 2) -> Commitment:
    """Create a commitment to two units for one day at half the list price."""
    return create_commitment_terms(tenant, offering, units, until=START + timedelta(days=1))


def test_covered_usage_costs_the_committed_price_and_unused_units_are_billed() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_one_day_commitment(offering, tenant)
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=3)
    draft = create_draft(tenant)
    # 10 h of two units at 0.50, of one at 1.00; of the other 14 h, two units at 0.50.
    assert line_amounts(draft) == [(offering.pk, 1000 + 1000), ("shortfall", 1400)]
    verify_invoice(draft)
    final = close_and_get_invoice(tenant)
    assert (final.total, final.number) == (3400, 1)
    assert adjustments_of(tenant) == [
        ("commit", offering.pk, -20 * HOUR * EURO // 2),
        ("shortfall", "shortfall", 28 * HOUR * EURO // 2),
    ]
    assert verify_invoice(final).total == 3400
    with tenant_scope(tenant.pk):
        used, short = (explain_invoice_line(line) for line in invoice_lines(final))
    assert (used.recomputed_equal, short.recomputed_equal) == (True, True)
    assert short.title == "Unused commitment"


def test_months_without_usage_bill_the_whole_commitment() -> None:
    tenant, _ = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 1, EURO, since=NOVEMBER)
    assert close_month.close_due_months(now=CLOSES).months == 1
    final = invoices_of(tenant)[0]
    assert (final.total, line_amounts(final)) == (720_00, [("shortfall", 720_00)])
    verify_invoice(final)
    assert close_month.close_due_months(now=utc("2027-01-01 00:10:00")).months == 1
    assert [invoice.total for invoice in invoices_of(tenant)] == [720_00, 744_00]


def test_a_fully_used_commitment_has_no_shortfall() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_one_day_commitment(offering, tenant)
    add_ended_lease(project, offering, START, DAY, quantity=2)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 2400)]
    verify_invoice(final)


def test_the_lease_requested_first_is_covered_first() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_one_day_commitment(offering, tenant, units=1)
    first = add_ended_lease(project, offering, START + timedelta(hours=2), 4 * HOUR)
    second = add_ended_lease(project, offering, START, 24 * HOUR)
    assert first.pk < second.pk
    final = close_and_get_invoice(tenant)
    verify_invoice(final)
    # All 24 h are covered: 4 h of the first lease, the rest of the second.
    assert final.total == 24 * 50 + 4 * 100


def test_a_list_price_below_the_committed_price_is_not_raised() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO // 4)
    create_one_day_commitment(offering, tenant)
    add_ended_lease(project, offering, START, 10 * HOUR)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 250), ("shortfall", 38 * 50)]
    verify_invoice(final)


def test_quoted_usage_consumes_a_commitment() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    quoted = add_ended_lease(project, offering, START, 10 * HOUR)
    add_quote(quoted, offering.price_versions.get())
    create_one_day_commitment(offering, tenant, units=1)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 500), ("shortfall", 700)]
    verify_invoice(final)


def test_a_free_start_consumes_no_commitment() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    create_list_price(offering, free_start_s=600)
    end = START + timedelta(seconds=300)
    add_lease_history(project, offering, [(START, S.REQUESTED), (START, S.ACTIVE), (end, S.RELEASED)], taken=2)
    add_ended_lease(project, offering, end, HOUR)
    create_one_day_commitment(offering, tenant, units=1)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 50), ("shortfall", 23 * 50)]
    verify_invoice(final)


def test_covered_usage_does_not_count_towards_price_tiers() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [4 * HOUR], [EURO // 10])
    create_one_day_commitment(offering, tenant, units=1)
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=2)
    final = close_and_get_invoice(tenant)
    # One unit is covered; of the other, four hours at 1.00 and six at 0.10.
    assert line_amounts(final) == [(offering.pk, 500 + 400 + 60), ("shortfall", 700)]
    assert [kind for kind, _, _ in adjustments_of(tenant)] == ["commit", "shortfall", "tier"]
    verify_invoice(final)


def test_discounts_apply_to_usage_and_not_to_the_shortfall() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_one_day_commitment(offering, tenant)
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=2)
    create_discount(tenant, percent_bp=1000)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 900), ("shortfall", 1400)]
    verify_invoice(final)


def test_consecutive_commitments_share_one_shortfall_line() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    noon = START + timedelta(hours=12)
    first = create_commitment_terms(tenant, offering, 1, EURO // 2)
    commitments.end_commitment(first, at=noon, actor=OPERATOR, now=START)
    create_commitment_terms(tenant, offering, 2, EURO // 4, since=noon, until=START + timedelta(days=1))
    other = create_priced_offering(EURO)
    create_commitment_terms(tenant, other, 1, EURO, until=noon)
    add_ended_lease(project, offering, START, 13 * HOUR)
    final = close_and_get_invoice(tenant)
    assert line_amounts(final) == [(offering.pk, 600 + 25), ("shortfall", 1200 + 25 + 22 * 25)]
    assert len({row.source for row in _rows(tenant, "shortfall")}) == 2
    verify_invoice(final)


def test_commitments_to_one_offering_add_up() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 1, EURO // 2, until=START + timedelta(hours=20))
    create_commitment_terms(
        tenant, offering, 2, EURO // 4, since=START + timedelta(hours=5), until=START + timedelta(days=1)
    )
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=2)
    add_ended_lease(project, offering, START + timedelta(hours=8), 4 * HOUR, quantity=2)
    draft = create_draft(tenant)
    with tenant_scope(tenant.pk):
        first, second = (
            commitment_coverage.coverage_in_month(each, draft.period, until=CLOSES)
            for each in commitments_in_force(tenant.pk, draft.period, "EUR")
        )
    assert first is not None
    assert second is not None
    assert [day // HOUR for day in (first.covered, first.unused, first.beyond)] == [12, 8, 5 + 2]
    assert [day // HOUR for day in (second.covered, second.unused, second.beyond)] == [3 + 4 + 2, 29, 2]
    final = close_and_get_invoice(tenant)
    # Covered: 12 h at 0.50 and 9 h at 0.25; beyond: one unit from 0 to 5 h, one from 8 to 10 h.
    assert line_amounts(final) == [(offering.pk, 600 + 225 + 700), ("shortfall", 400 + 29 * 25)]
    assert len(_rows(tenant, "commit")) == 2
    verify_invoice(final)


def _rows(tenant: Tenant, kind: str) -> list[InvoiceAdjustment]:
    with tenant_scope(tenant.pk):
        return list(InvoiceAdjustment.objects.filter(kind=kind))


def test_a_commitment_cannot_be_changed_in_a_closed_month() -> None:
    tenant, _ = create_customer()
    offering = create_priced_offering(EURO)
    made = create_commitment_terms(tenant, offering, 1, EURO, since=NOVEMBER)
    final = close_and_get_invoice(tenant)
    commitments.end_commitment(made, at=CLOSES, actor=OPERATOR, now=CLOSES)
    verify_invoice(final)
    for change in (
        "UPDATE billing_commitment SET valid = tstzrange('2026-11-01', '2026-11-20')",
        "UPDATE billing_commitment SET units = 2",
        "UPDATE billing_commitment SET valid = tstzrange('2026-11-01', NULL)",
        "UPDATE billing_commitment SET valid = tstzrange('2026-11-02', upper(valid))",
        "DELETE FROM billing_commitment",
        "INSERT INTO billing_commitment (id, units, nano_per_hour, currency, valid, agreed_by, agreed_at, offering_id,"
        " tenant_id) SELECT 'com_2', 1, nano_per_hour, currency, tstzrange('2026-11-30', '2026-12-01'), agreed_by,"
        " agreed_at, offering_id, tenant_id FROM billing_commitment",
    ):
        with (
            tenant_scope(tenant.pk),
            pytest.raises(DatabaseError, match=r"commitment com_|month 2026-11 is closed"),
            transaction.atomic(),
        ):
            connection.cursor().execute(change)
    verify_invoice(final)


def test_the_verifier_finds_an_altered_commitment_in_a_bundle() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_one_day_commitment(offering, tenant)
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=3)
    final = close_and_get_invoice(tenant)
    with tenant_scope(tenant.pk):
        good = json.loads(b"".join(invoice_bundles.build_bundle(final)))
    assert good["version"] == 7
    assert check(write_bundle(good)).equal
    (found,) = good["commitments"]
    for change in (
        {"units": 3},
        {"units": 1},
        {"units": 0},
        {"nano_per_hour": "500000001"},
        {"nano_per_hour": "0"},
        {"offering": "off_x"},
        {"since": "2026-11-02T00:00:01Z"},
        {"until": "2026-11-03T00:00:01Z"},
        {"since": "2026-12-02T00:00:00Z", "until": None},
    ):
        assert not check(write_bundle(good | {"commitments": [found | change]})).equal, change
    assert not check(write_bundle(good | {"commitments": []})).equal
    assert not check(write_bundle(good | {"commitments": [found, found | {"id": "com_2"}]})).equal
    assert not check(write_bundle(good | {"commitments": [found, found]})).equal
    for n in range(len(good["carried"])):
        assert not check(write_bundle(good | {"carried": good["carried"][:n] + good["carried"][n + 1 :]})).equal


def test_invalid_commitment_terms_are_refused() -> None:
    tenant, _ = create_customer()
    offering, spot, gone = (
        create_priced_offering(EURO),
        create_priced_offering(EURO, price_class="spot"),
        create_priced_offering(EURO),
    )
    Offering.objects.filter(pk=gone.pk).update(state=OfferingState.RETIRED)
    gone.refresh_from_db()
    usual = {"offering": offering, "units": 1, "nano_per_hour": EURO, "since": NOW, "until": None}
    for odd in (
        {"units": 0},
        {"units": 100_001},
        {"nano_per_hour": 0},
        {"nano_per_hour": -1},
        {"since": NOW - timedelta(days=1)},
        {"until": NOW},
        {"offering": spot},
        {"offering": gone},
    ):
        with pytest.raises(InvalidValue):
            commitments.create_commitment(tenant, **(usual | odd), actor=OPERATOR, now=NOW)  # type: ignore[arg-type]
    made = create_commitment_terms(tenant, offering, since=NOW)
    for moment in (NOW - timedelta(days=1), NOW):
        with pytest.raises(InvalidValue):
            commitments.end_commitment(made, at=moment, actor=OPERATOR, now=NOW)
    with staff_scope():
        assert commitments.find_commitment(made.pk).tenant == tenant
        with pytest.raises(ObjectNotFound):
            commitments.find_commitment("com_none")
    with tenant_scope(tenant.pk):
        assert AuditEvent.objects.filter(action="commitment.agree").count() == 1


def test_a_tenant_with_a_commitment_cannot_become_prepaid() -> None:
    tenant, _ = create_customer()
    offering = create_priced_offering(EURO)
    made = create_commitment_terms(tenant, offering, since=NOW)
    with pytest.raises(HasCommitment):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=NOW
        )
    ends = NOW + timedelta(hours=1)
    commitments.end_commitment(made, at=ends, actor=OPERATOR, now=NOW)
    with pytest.raises(HasCommitment, match="2026-11, which has no final invoice yet"):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=ends
        )
    assert close_month.close_due_months(now=CLOSES).months == 1
    account_terms.set_account_terms(
        tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=CLOSES
    )
    with pytest.raises(CommitmentPrepaid):
        create_commitment_terms(tenant, offering, since=CLOSES)
    assert [invoice.total for invoice in invoices_of(tenant)] == [100]
