"""Committed units are paid for in every second: what they cover at their price, what nobody used as a line."""

import json
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from billing.models import Commitment, MonthCharge, PriceVersion, Quote, RateCard
from billing.services import bundles, closing, commitments, drafts, rating
from billing.services.commitments import CommitmentOverlaps, CommitmentPrepaid
from billing.services.explain import explain
from billing.services.wallets import terms
from billing.services.wallets.terms import HasCommitment
from billing.verify.verify import check
from broker.models import Offering, OfferingState
from tenants.models import AuditEvent, Tenant
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    S,
    at,
    customer,
    invoices,
    lines,
    lived,
    promise,
    ran,
    sold,
)
from tests.billing.months.terms import (
    CLOSES,
    NOW,
    START,
    amounts,
    carried,
    checked,
    closed,
    drafted,
    given,
    tiered,
)
from tests.billing.verify.papers import sealed

pytestmark = pytest.mark.django_db
NOVEMBER = at("2026-11-01 00:00:00")
DAY = 24 * HOUR
MONTH = 30 * DAY


def agreed(
    tenant: Tenant,
    offering: Offering,
    units: int = 2,
    nano: int = EURO // 2,
    *,
    since: datetime = START,
    until: datetime | None = None,
) -> Commitment:
    return commitments.agree(
        tenant,
        offering,
        units=units,
        nano_per_hour=nano,
        since=since,
        until=until,
        actor=OPERATOR,
        now=min(since, NOW),
    )


def price_of(offering: Offering, **more: int) -> PriceVersion:
    """Let an offering cost 1.00 an hour from October on."""
    return PriceVersion.objects.create(
        rate_card=RateCard.objects.get_or_create(name="list", tenant_id=None)[0],
        offering=offering,
        currency="EUR",
        valid=(at("2026-10-01 00:00:00"), None),
        nano_per_hour=EURO,
        created_at=at("2026-10-01 00:00:00"),
        **more,
    )


def day(offering: Offering, tenant: Tenant, *, units: int = 2) -> Commitment:
    """Commit to two units on the second of November, at half the list's price."""
    return agreed(tenant, offering, units, until=START + timedelta(days=1))


def test_covered_seconds_cost_its_price_the_rest_the_lists_and_what_nobody_used_is_a_line() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant)
    ran(project, offering, START, 10 * HOUR, quantity=3)
    draft = drafted(tenant)
    # 10 h of two units at 0.50, of one at 1.00; of the other 14 h, two units at 0.50.
    assert amounts(draft) == [(offering.pk, 1000 + 1000), ("shortfall", 1400)]
    checked(draft)
    final = closed(tenant)
    assert (final.total, final.number) == (3400, 1)
    assert carried(tenant) == [
        ("commit", offering.pk, -20 * HOUR * EURO // 2),
        ("shortfall", "shortfall", 28 * HOUR * EURO // 2),
    ]
    assert checked(final).total == 3400
    with as_tenant(tenant.pk):
        used, short = (explain(line) for line in lines(final))
    assert (used.recomputed_equal, short.recomputed_equal) == (True, True)
    assert short.what == "Committed and not used"


def test_a_month_without_any_use_owes_all_of_it_and_so_does_every_one_after() -> None:
    tenant, _ = customer()
    offering = sold(EURO)
    agreed(tenant, offering, 1, EURO, since=NOVEMBER)
    assert closing.close_due(now=CLOSES).months == 1
    final = invoices(tenant)[0]
    assert (final.total, amounts(final)) == (720_00, [("shortfall", 720_00)])
    checked(final)
    assert closing.close_due(now=at("2027-01-01 00:10:00")).months == 1
    assert [invoice.total for invoice in invoices(tenant)] == [720_00, 744_00]


def test_all_used_leaves_no_shortfall() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant)
    ran(project, offering, START, DAY, quantity=2)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 2400)]
    checked(final)


def test_who_was_asked_for_first_is_covered_first_whatever_project_it_is_of() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant, units=1)
    first = ran(project, offering, START + timedelta(hours=2), 4 * HOUR)
    second = ran(project, offering, START, 24 * HOUR)
    assert first.pk < second.pk
    final = closed(tenant)
    checked(final)
    # All 24 h are covered: 4 h of the first lease, the rest of the second.
    assert final.total == 24 * 50 + 4 * 100


def test_a_price_below_that_of_the_commitment_is_never_made_dearer() -> None:
    tenant, project = customer()
    offering = sold(EURO // 4)
    day(offering, tenant)
    ran(project, offering, START, 10 * HOUR)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 250), ("shortfall", 38 * 50)]
    checked(final)


def test_what_was_promised_or_taken_back_uses_none_of_it() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    quoted = ran(project, offering, START, 10 * HOUR)
    promise(quoted, offering.price_versions.get())
    day(offering, tenant, units=1)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 1000), ("shortfall", 1200)]
    checked(final)
    with as_tenant(tenant.pk):
        assert Quote.objects.count() == 1


def test_a_start_that_was_given_back_uses_none_of_it() -> None:
    tenant, project = customer()
    offering = sold(None)
    price_of(offering, free_start_s=600)
    end = START + timedelta(seconds=300)
    lived(project, offering, [(START, S.REQUESTED), (START, S.ACTIVE), (end, S.RELEASED)], taken=2)
    ran(project, offering, end, HOUR)
    day(offering, tenant, units=1)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 50), ("shortfall", 23 * 50)]
    checked(final)


def test_what_is_covered_counts_for_no_tier() -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [4 * HOUR], [EURO // 10])
    day(offering, tenant, units=1)
    ran(project, offering, START, 10 * HOUR, quantity=2)
    final = closed(tenant)
    # One unit is covered; of the other, four hours at 1.00 and six at 0.10.
    assert amounts(final) == [(offering.pk, 500 + 400 + 60), ("shortfall", 700)]
    assert [kind for kind, _, _ in carried(tenant)] == ["commit", "shortfall", "tier"]
    checked(final)


def test_discounts_are_of_what_is_left_and_not_of_what_nobody_used() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant)
    ran(project, offering, START, 10 * HOUR, quantity=2)
    given(tenant, percent_bp=1000)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 900), ("shortfall", 1400)]
    checked(final)


def test_one_follows_another_to_the_second_and_each_has_its_own_shortfall_on_one_line() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    noon = START + timedelta(hours=12)
    first = agreed(tenant, offering, 1, EURO // 2)
    with pytest.raises(CommitmentOverlaps):
        agreed(tenant, offering, since=noon)
    commitments.end(first, at=noon, actor=OPERATOR, now=START)
    agreed(tenant, offering, 2, EURO // 4, since=noon, until=START + timedelta(days=1))
    other = sold(EURO)
    agreed(tenant, other, 1, EURO, until=noon)
    ran(project, offering, START, 13 * HOUR)
    final = closed(tenant)
    assert amounts(final) == [(offering.pk, 600 + 25), ("shortfall", 1200 + 25 + 22 * 25)]
    assert len({row.source for row in _rows(tenant, "shortfall")}) == 2
    checked(final)


def _rows(tenant: Tenant, kind: str) -> list[MonthCharge]:
    with as_tenant(tenant.pk):
        return list(MonthCharge.objects.filter(kind=kind))


def test_seconds_that_come_after_the_close_cost_the_lists_price() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant)
    final = closed(tenant)
    assert amounts(final) == [("shortfall", 2400)]
    ran(project, offering, START, HOUR)
    later = at("2026-12-31 00:00:00")
    rating.rate(now=later)
    drafts.refresh(tenant, now=later)
    draft = invoices(tenant)[-1]
    assert amounts(draft) == [(offering.pk, 100)]
    checked(draft)
    checked(final)


def test_nothing_of_a_closed_month_moves_any_more() -> None:
    tenant, _ = customer()
    offering = sold(EURO)
    made = agreed(tenant, offering, 1, EURO, since=NOVEMBER)
    final = closed(tenant)
    commitments.end(made, at=CLOSES, actor=OPERATOR, now=CLOSES)
    checked(final)
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
            as_tenant(tenant.pk),
            pytest.raises(DatabaseError, match=r"commitment com_|month 2026-11 is closed"),
            transaction.atomic(),
        ):
            connection.cursor().execute(change)
    checked(final)


def test_whoever_touches_a_commitment_of_a_bundle_is_found_out() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    day(offering, tenant)
    ran(project, offering, START, 10 * HOUR, quantity=3)
    final = closed(tenant)
    with as_tenant(tenant.pk):
        good = json.loads(b"".join(bundles.bundle(final)))
    assert good["version"] == 7
    assert check(sealed(good)).equal
    (told,) = good["commitments"]
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
        assert not check(sealed(good | {"commitments": [told | change]})).equal, change
    assert not check(sealed(good | {"commitments": []})).equal
    assert not check(sealed(good | {"commitments": [told, told | {"id": "com_2"}]})).equal
    for n in range(len(good["carried"])):
        assert not check(sealed(good | {"carried": good["carried"][:n] + good["carried"][n + 1 :]})).equal


def test_what_cannot_be_meant_is_refused() -> None:
    tenant, _ = customer()
    offering, spot, gone = sold(EURO), sold(EURO, price_class="spot"), sold(EURO)
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
        with pytest.raises(Invalid):
            commitments.agree(tenant, **(usual | odd), actor=OPERATOR, now=NOW)  # type: ignore[arg-type]
    made = agreed(tenant, offering, since=NOW)
    for moment in (NOW - timedelta(days=1), NOW):
        with pytest.raises(Invalid):
            commitments.end(made, at=moment, actor=OPERATOR, now=NOW)
    with as_staff():
        assert commitments.find(made.pk).tenant == tenant
        with pytest.raises(Missing):
            commitments.find("com_none")
    with as_tenant(tenant.pk):
        assert AuditEvent.objects.filter(action="commitment.agree").count() == 1


def test_whoever_pays_beforehand_has_none_and_whoever_has_one_pays_by_invoice() -> None:
    tenant, _ = customer()
    offering = sold(EURO)
    made = agreed(tenant, offering, since=NOW)
    with pytest.raises(HasCommitment):
        terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=NOW)
    ends = NOW + timedelta(hours=1)
    commitments.end(made, at=ends, actor=OPERATOR, now=NOW)
    with pytest.raises(HasCommitment, match="2026-11, which has no final invoice yet"):
        terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=ends)
    assert closing.close_due(now=CLOSES).months == 1
    terms.set_terms(tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=CLOSES)
    with pytest.raises(CommitmentPrepaid):
        agreed(tenant, offering, since=CLOSES)
    assert [invoice.total for invoice in invoices(tenant)] == [100]
