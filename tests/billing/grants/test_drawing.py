"""Grants pay before money does: in their order, in their scope, for what was used before their end."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from billing.models import BalanceDraw, Grant, GrantDraw, Invoice
from billing.services import closing, drafts, proofs, rating
from billing.services.grants import ending
from billing.services.grants.giving import GivenOtherwise
from billing.services.ledger import books
from tenants.models import AuditEvent, Tenant
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import LATER, credit
from tests.billing.grants.gifts import GIVEN, WHY, drawn, give, lapse, left, stands
from tests.billing.histories import EURO, HOUR, at, customer, ran, sold
from tests.billing.ledger.ledgers import booked, on_accounts
from tests.billing.payments.bills import NOW, collect, fresh, pay, sweep, taken

pytestmark = pytest.mark.django_db
CENT = EURO // 100


def closed(tenant: Tenant, label: str = "2026-10") -> Invoice:
    rating.rate_tenant(tenant, now=NOW if label == "2026-10" else LATER)
    found = closing.close_period(tenant, label, now=NOW if label == "2026-10" else LATER)
    assert found is not None
    return found


def balanced() -> None:
    with as_staff():
        assert (books.reckoned()[1], books.uncleared()) == ((), [])
        assert all(totals.balanced for totals in books.trial_balance())
        assert [proof.name for proof in proofs.check(now=NOW + timedelta(hours=1)) if not proof.holds] == []


def test_a_grant_is_given_away_and_stands_on_an_account_of_its_own() -> None:
    tenant, _ = customer()
    first, second = give(tenant, 500), give(tenant, 300)
    assert (left(first), left(second)) == (500, 300)
    assert on_accounts()["promotion"] == 800
    balanced()


def test_a_grant_pays_what_it_can_and_money_pays_the_rest() -> None:
    tenant, project = customer()
    ran(project, sold(200 * CENT), at("2026-10-05 00:00:00"), HOUR)
    grant = give(tenant, 150)
    invoice = closed(tenant)
    assert (drawn(invoice), invoice.settled, invoice.to_pay, left(grant)) == ({grant.pk: 150}, 150, 50, 0)
    assert ("draw", "wallet_promo", "receivable", 150) in booked(invoice)
    assert collect(pay(invoice)).minor == 50
    assert stands(grant, NOW).state == "used_up"
    balanced()


def test_what_is_left_of_a_grant_pays_the_next_month() -> None:
    tenant, project = customer()
    offering = sold(200 * CENT)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    ran(project, offering, at("2026-11-05 00:00:00"), HOUR)
    grant = give(tenant, 350)
    october, november = closed(tenant), closed(tenant, "2026-11")
    assert (drawn(october), drawn(november)) == ({grant.pk: 200}, {grant.pk: 150})
    sweep(LATER)
    assert taken(october) == [50]
    assert fresh(october).status == "paid"
    balanced()


def test_the_lowest_priority_goes_first_and_of_these_what_ends_first() -> None:
    tenant, project = customer()
    ran(project, sold(250 * CENT), at("2026-10-05 00:00:00"), HOUR)
    last = give(tenant, 100, priority=200)
    forever = give(tenant, 100)
    soon = give(tenant, 100, expires_at=at("2026-12-01 00:00:00"))
    first = give(tenant, 100, priority=1)
    assert drawn(closed(tenant)) == {first.pk: 100, soon.pk: 100, forever.pk: 50}
    assert left(last) == 100


def test_a_grant_pays_only_in_its_scope() -> None:
    tenant, root = customer()
    with as_tenant(tenant.pk):
        child = projects.create(name="child", parent=root, actor=SYSTEM, now=GIVEN)
        leaf = projects.create(name="leaf", parent=child, actor=SYSTEM, now=GIVEN)
    cheap, dear = sold(100 * CENT), sold(200 * CENT)
    for project in (root, child, leaf):
        for offering in (cheap, dear):
            ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    below = give(tenant, 10_000, project=child)
    offered = give(tenant, 10_000, offering=cheap)
    both = give(tenant, 10_000, project=leaf, offering=dear, priority=1)
    invoice = closed(tenant)
    assert drawn(invoice) == {both.pk: 200, below.pk: 400, offered.pk: 100}
    assert invoice.to_pay == 200
    balanced()


def test_a_wide_grant_leaves_to_a_narrow_one_what_only_that_may_pay() -> None:
    tenant, project = customer()
    offering = sold(100 * CENT)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    ran(project, sold(100 * CENT), at("2026-10-05 00:00:00"), HOUR)
    wide = give(tenant, 100, priority=1)
    narrow = give(tenant, 100, offering=offering)
    invoice = closed(tenant)
    assert (drawn(invoice), invoice.to_pay) == ({wide.pk: 100, narrow.pk: 100}, 0)


def test_grants_go_before_the_balance_and_before_a_payment() -> None:
    tenant, project = customer()
    offering = sold(300 * CENT)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    ran(project, offering, at("2026-11-05 00:00:00"), HOUR)
    october = closed(tenant)
    collect(pay(october))
    credit(october, {1: 120})
    grant = give(tenant, 100, now=NOW)
    november = closed(tenant, "2026-11")
    with as_tenant(tenant.pk):
        assert BalanceDraw.objects.get().minor == 120
    assert (drawn(november), november.to_pay) == ({grant.pk: 100}, 80)
    balanced()


def test_b31_what_was_used_up_to_the_very_moment_of_its_end_a_grant_pays_and_no_second_more() -> None:
    tenant, project = customer()
    end = at("2026-10-05 00:30:00")
    ran(project, sold(360 * CENT), at("2026-10-05 00:00:00"), HOUR)
    grant = give(tenant, 1000, expires_at=end)
    invoice = closed(tenant)
    assert (drawn(invoice), left(grant)) == ({grant.pk: 180}, 820)


@pytest.mark.parametrize(("ends", "paid"), [("2026-10-31 23:59:59", 5900), ("2026-11-01 00:00:00", 6000)])
def test_b31_a_grant_that_ends_with_the_month_pays_the_whole_month(ends: str, paid: int) -> None:
    tenant, project = customer()
    ran(project, sold(60 * 60 * 100 * CENT), at("2026-10-31 23:59:00"), 60)
    grant = give(tenant, 10_000, expires_at=at(ends))
    assert lapse(NOW) == 0
    assert drawn(closed(tenant)) == {grant.pk: paid}
    assert lapse(NOW) == 1
    assert (left(grant), stands(grant, NOW).state) == (0, "lapsed")


def test_b31_a_grant_that_ended_before_the_lease_began_pays_nothing_of_it() -> None:
    tenant, project = customer()
    ran(project, sold(200 * CENT), at("2026-10-05 00:00:00"), HOUR)
    grant = give(tenant, 1000, expires_at=at("2026-10-05 00:00:00"))
    assert drawn(closed(tenant)) == {}
    assert lapse(NOW) == 1
    assert stands(grant, NOW).lapsed == 1000
    assert on_accounts()["breakage"] == 1000
    balanced()


def test_two_grants_that_end_do_not_pay_the_same_seconds() -> None:
    tenant, project = customer()
    ran(project, sold(400 * CENT), at("2026-10-05 00:00:00"), HOUR)
    first = give(tenant, 1000, expires_at=at("2026-10-05 00:15:00"))
    second = give(tenant, 1000, expires_at=at("2026-10-05 00:30:00"))
    third = give(tenant, 30, expires_at=at("2026-10-05 00:30:00"), priority=1)
    assert drawn(closed(tenant)) == {third.pk: 30, first.pk: 100, second.pk: 70}


def test_what_is_left_lapses_once_and_only_when_its_last_month_is_final() -> None:
    tenant, project = customer()
    ran(project, sold(200 * CENT), at("2026-10-05 00:00:00"), HOUR)
    grant = give(tenant, 500, expires_at=at("2026-10-20 00:00:00"))
    assert lapse(at("2026-10-25 00:00:00")) == 0
    assert stands(grant, at("2026-10-25 00:00:00")).state == "ending"
    rating.rate_tenant(tenant, now=NOW)
    assert lapse(NOW) == 0
    invoice = closed(tenant)
    assert drawn(invoice) == {grant.pk: 200}
    assert (lapse(NOW), lapse(NOW)) == (1, 0)
    assert stands(grant, NOW).lapsed == 300
    balanced()


def test_a_grant_that_nobody_used_lapses_when_its_month_is_closed() -> None:
    tenant, _ = customer("Pacific/Auckland")
    grant = give(tenant, 500, expires_at=at("2026-10-20 00:00:00"))
    assert lapse(at("2026-10-31 10:00:00")) == 0
    closing.close_due(now=at("2026-10-31 11:04:59"))
    assert lapse(at("2026-10-31 11:04:59")) == 0
    closing.close_due(now=at("2026-10-31 11:05:00"))
    assert lapse(at("2026-10-31 11:05:00")) == 1
    assert (stands(grant, NOW).state, stands(grant, NOW).lapsed) == ("lapsed", 500)
    balanced()


def test_what_was_used_and_is_not_charged_yet_keeps_a_grant_from_lapsing() -> None:
    tenant, project = customer()
    grant = give(tenant, 500, expires_at=at("2026-10-20 00:00:00"))
    ran(project, sold(200 * CENT), at("2026-10-05 00:00:00"), HOUR)
    assert lapse(NOW) == 0
    closing.close_due(now=NOW)
    assert lapse(NOW) == 1
    assert stands(grant, NOW).lapsed == 300


def test_what_cannot_be_ended_keeps_nobody_elses_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = [give(customer()[0], 500, expires_at=at("2026-10-20 00:00:00")) for _ in range(2)]
    lapse(NOW)
    closing.close_due(now=NOW)
    real = ending._lapse

    def broken(grant_id: str, *rest: Any) -> bool:
        if grant_id == grants[0].pk:
            raise DatabaseError("no")
        return real(grant_id, *rest)

    monkeypatch.setattr(ending, "_lapse", broken)
    assert lapse(NOW) == 1
    assert (left(grants[0]), left(grants[1])) == (500, 0)


def test_of_two_workers_one_ends_a_grant() -> None:
    tenant, _ = customer()
    grant = give(tenant, 500, expires_at=at("2026-10-20 00:00:00"))
    lapse(NOW)
    closing.close_due(now=NOW)
    with as_tenant(tenant.pk):
        ends = at("2026-10-20 00:00:00")
        assert [ending._lapse(grant.pk, tenant, ends, NOW) for _ in range(2)] == [True, False]


def test_the_same_grant_twice_is_given_once() -> None:
    tenant, _ = customer()
    first, second = give(tenant, 500, idem="breach 7"), give(tenant, 500, idem="breach 7")
    assert first.pk == second.pk
    assert on_accounts()["promotion"] == 500
    with pytest.raises(GivenOtherwise, match="another grant"):
        give(tenant, 501, idem="breach 7")


def test_what_nobody_can_give_is_refused_and_nothing_is_booked() -> None:
    (tenant, _), (_, other) = customer(), customer()
    for wrong, field in (
        ({"cents": 0}, "amount"),
        ({"cents": 10**16}, "amount"),
        ({"cents": 1, "priority": 1001}, "priority"),
        ({"cents": 1, "expires_at": GIVEN}, "expires_at"),
        ({"cents": 1, "project": other}, "project"),
    ):
        with pytest.raises(Invalid) as refused:
            give(tenant, **wrong)  # type: ignore[arg-type]
        assert refused.value.field == field
    with as_tenant(tenant.pk):
        assert not Grant.objects.exists()


def test_the_trail_says_who_gave_how_much_for_what() -> None:
    tenant, project = customer()
    offering = sold()
    give(tenant, 500, project=project, offering=offering, expires_at=at("2026-12-01 00:00:00"))
    with as_tenant(tenant.pk):
        event = AuditEvent.objects.get(action="grant.give")
    assert (event.subject_label, event.detail) == (
        "€5.00 of credit",
        {
            "reason": WHY,
            "project": project.pk,
            "offering": offering.pk,
            "ends": "2026-12-01T00:00:00+00:00",
        },
    )


def test_closing_again_draws_nothing_again() -> None:
    tenant, project = customer()
    ran(project, sold(200 * CENT), at("2026-10-05 00:00:00"), HOUR)
    give(tenant, 500)
    closed(tenant)
    closing.close_due(now=LATER)
    drafts.refresh(tenant, now=LATER)
    with as_tenant(tenant.pk):
        assert [draw.minor for draw in GrantDraw.objects.all()] == [200]
