"""Late seconds cost what they would have cost on time, within commitments and tiers."""

import json
import random
from datetime import datetime, timedelta

import pytest

from billing.models import Invoice
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections import correction_proposals
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports.line_explanations import explain_invoice_line
from billing.verify.verify import check
from broker.models import Lease, Offering
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import (
    CLOSES,
    NOW,
    START,
    adjustments_of,
    close_and_get_invoice,
    create_draft,
    line_amounts,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.corrections.correction_setup import ANNA, WHY, approve_correction
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_quote,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    set_price,
    utc,
)
from tests.billing.verify.written_bundles import write_bundle

pytestmark = pytest.mark.django_db
DECEMBER = utc("2026-12-31 00:00:00")
DAY = START + timedelta(days=1)


def rate_late_usage(tenant: Tenant) -> Invoice:
    """Charge what became known after the close, and return December's draft, verified."""
    lease_rating.rate_all_leases(now=DECEMBER)
    drafts.refresh_drafts(tenant, now=DECEMBER)
    draft = invoices_of(tenant)[-1]
    assert draft.number is None
    verify_invoice(draft)
    with tenant_scope(tenant.pk):
        assert all(explain_invoice_line(line).recomputed_equal for line in invoice_lines(draft))
    return draft


def close_december(tenant: Tenant) -> Invoice:
    closed = close_month.close_period(tenant, "2026-12", now=utc("2027-01-01 00:10:00"))
    assert closed is not None
    verify_invoice(closed)
    return closed


def add_seconds(lease: Lease, since: datetime, hours: int, *, now: datetime) -> None:
    """Approve a correction that charges more time of a lease."""
    until = since + timedelta(hours=hours)
    proposed = correction_proposals.propose_lease_correction(
        lease, charge=True, since=since, until=until, why=WHY, actor=ANNA, now=now
    )
    approve_correction(proposed, now=now)


@pytest.mark.parametrize("quoted", [False, True])
def test_late_usage_within_a_commitment_costs_nothing_more(quoted: bool) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 2, until=DAY)
    add_ended_lease(project, offering, START, 2 * HOUR)
    final = close_and_get_invoice(tenant)
    assert final.total == 24 * 2 * 50
    lease = add_ended_lease(project, offering, START, 4 * HOUR, quantity=2)
    if quoted:
        add_quote(lease, offering.price_versions.get())
    # For two hours one unit is left; afterwards both.
    assert line_amounts(rate_late_usage(tenant)) == [(offering.pk, 200)]
    assert close_december(tenant).total == 200
    assert [kind for kind, _, _ in adjustments_of(tenant)] == ["commit", "shortfall", "commit"]
    verify_invoice(final)


def test_later_usage_does_not_use_a_committed_second_twice() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 1, until=DAY)
    close_and_get_invoice(tenant)
    add_ended_lease(project, offering, START, HOUR)
    assert rate_late_usage(tenant).total == 0
    close_december(tenant)
    add_ended_lease(project, offering, START, 2 * HOUR)
    later = utc("2027-01-02 00:00:00")
    lease_rating.rate_all_leases(now=later)
    drafts.refresh_drafts(tenant, now=later)
    third = invoices_of(tenant)[-1]
    verify_invoice(third)
    assert third.total == 100
    for invoice in invoices_of(tenant):
        verify_invoice(invoice)


def test_late_usage_costs_the_price_of_the_tier_of_its_month() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [EURO // 2])
    add_ended_lease(project, offering, START, 8 * HOUR)
    close_and_get_invoice(tenant)
    add_ended_lease(project, offering, DAY, 4 * HOUR)
    add_ended_lease(project, offering, CLOSES, 9 * HOUR)
    # Of the late hours two at 1.00 and two at 0.50; in December nine at 1.00.
    assert line_amounts(rate_late_usage(tenant)) == [(offering.pk, 300 + 900)]
    assert close_december(tenant).total == 1200


def test_late_usage_with_a_quote_saves_by_the_tiers_in_force_in_its_month() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    quoted = add_ended_lease(project, offering, START, 5 * HOUR)
    add_quote(quoted, offering.price_versions.get())
    add_ended_lease(project, offering, START, 10 * HOUR)
    price = offering.price_versions.get()
    price.valid = (price.valid.lower, START - timedelta(hours=1))
    price.save(update_fields=["valid"])
    price.refresh_from_db()
    set_tiered_price(
        offering, "graduated", [10 * HOUR], [EURO // 2], nano=2 * EURO, valid=(START - timedelta(hours=1), None)
    )
    close_and_get_invoice(tenant)
    late = add_ended_lease(project, offering, DAY, 4 * HOUR)
    add_quote(late, price)
    assert line_amounts(rate_late_usage(tenant)) == [(offering.pk, 200)]


@pytest.mark.parametrize("late", [False, True])
def test_seconds_that_a_correction_adds_are_covered_by_a_commitment(late: bool) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 1, until=DAY)
    lease = add_ended_lease(project, offering, START, 2 * HOUR)
    if late:
        assert close_and_get_invoice(tenant).total == 24 * 50
    else:
        create_draft(tenant)
    add_seconds(lease, START + timedelta(hours=2), 3, now=DECEMBER if late else NOW)
    if late:
        assert rate_late_usage(tenant).total == 0
        assert close_december(tenant).total == 0
    else:
        verify_invoice(create_draft(tenant))
        final = close_and_get_invoice(tenant)
        assert final.total == 24 * 50
        verify_invoice(final)


@pytest.mark.parametrize("late", [False, True])
def test_seconds_that_a_correction_adds_cost_the_price_of_their_tier(late: bool) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [EURO // 2])
    lease = add_ended_lease(project, offering, START, 10 * HOUR)
    final = close_and_get_invoice(tenant) if late else create_draft(tenant)
    assert final.total == 1000
    add_seconds(lease, START + timedelta(hours=10), 4, now=DECEMBER if late else NOW)
    if late:
        assert rate_late_usage(tenant).total == 200
    else:
        final = close_and_get_invoice(tenant)
        assert final.total == 1200
        verify_invoice(final)


@pytest.mark.parametrize("seed", range(6))
def test_a_month_costs_the_same_whether_its_usage_was_late_or_not(seed: int) -> None:
    chance = random.Random(seed)
    usage = [
        (chance.randrange(3 * 86_400), chance.randrange(600, 86_400), chance.randrange(1, 4), chance.random())
        for _ in range(12)
    ]
    totals = set()
    for share_late in (0, 0.5, 1):
        tenant, project = create_customer()
        offering = create_priced_offering(None)
        set_tiered_price(offering, "graduated", [20 * HOUR, 60 * HOUR], [EURO // 2, EURO // 3])
        create_commitment_terms(tenant, offering, 2, EURO // 4, until=START + timedelta(days=3))
        create_commitment_terms(tenant, offering, 1, EURO // 5, since=DAY, until=START + timedelta(days=2))
        _add_usage(project, offering, [one for one in usage if one[3] >= share_late])
        invoices = [close_and_get_invoice(tenant)]
        if share_late:
            _add_usage(project, offering, [one for one in usage if one[3] < share_late])
            invoices.append(rate_late_usage(tenant))
        totals.add(sum(int(line.exact_num) for invoice in invoices for line in invoice_lines(invoice)))
        for invoice in invoices:
            verify_invoice(invoice)
    assert len(totals) == 1


def _add_usage(project: Project, offering: Offering, usage: list[tuple[int, int, int, float]]) -> None:
    for begins, lasts, quantity, quoted in usage:
        lease = add_ended_lease(project, offering, START + timedelta(seconds=begins), lasts, quantity=quantity)
        if int(quoted * 100) % 2:
            add_quote(lease, offering.price_versions.get())


def test_late_usage_at_a_lower_price_than_its_quote_is_charged_at_that() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    set_price(offering, EURO, since=DAY)
    create_commitment_terms(tenant, offering, 1, EURO // 2, until=START + timedelta(hours=1))
    close_and_get_invoice(tenant)
    lease = add_ended_lease(project, offering, DAY - timedelta(hours=1), 2 * HOUR)
    add_quote(lease, offering.price_versions.earliest("valid"))
    assert sorted(minor for _, minor in line_amounts(rate_late_usage(tenant))) == [100, 200]


def test_the_verifier_finds_altered_usage_of_earlier_invoices() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    create_commitment_terms(tenant, offering, 2, until=DAY)
    earlier = add_ended_lease(project, offering, START, 2 * HOUR)
    close_and_get_invoice(tenant)
    late = add_ended_lease(project, offering, START, 4 * HOUR, quantity=2)
    draft = rate_late_usage(tenant)
    with tenant_scope(tenant.pk):
        good = json.loads(b"".join(invoice_bundles.build_bundle(draft)))
    assert (good["version"], good["corrected_before"]) == (8, [])
    assert [life["id"] for life in good["leases"]] == [earlier.pk, late.pk]
    assert check(write_bundle(good)).equal
    first, second = good["leases"]
    longer = [step if step["seq"] < 2 else step | {"at": "2026-11-02T03:00:00Z"} for step in first["steps"]]
    (agreed,) = good["commitments"]
    for change in (
        {"leases": [second]},
        {"leases": [first | {"steps": longer}, second]},
        {"leases": [first, second | {"late": []}]},
        {"commitments": []},
        {"commitments": [agreed | {"units": 3}]},
        {"carried": []},
        {"months": good["months"][1:]},
    ):
        assert not check(write_bundle(good | change)).equal, change


def test_late_usage_beside_a_quoted_lease_is_verified_without_any_terms() -> None:
    """The price of the other lease's November is on no line of December."""
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=START + timedelta(days=2))
    add_ended_lease(project, offering, START, 60 * 24 * HOUR)
    lease_rating.rate_all_leases(now=utc("2027-01-02 00:00:00"))
    assert close_month.close_due_months(now=CLOSES).months == 1
    add_ended_lease(project, offering, START + timedelta(days=3), HOUR)
    other = create_priced_offering(EURO)
    add_quote(add_ended_lease(project, other, CLOSES, HOUR), other.price_versions.get())
    draft = rate_late_usage(tenant)
    assert draft.total == 31 * 24 * 200 + 200 + 100
    assert close_december(tenant).total == draft.total
