"""Grants: draw order, scope, expiry, audit and repetition."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from billing.models import BalanceDraw, Grant, GrantDraw, Invoice
from billing.services.funds.grants import grant_expiry
from billing.services.funds.grants.new_grants import GrantKeyReused
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import invariant_checks, ledger_balances
from billing.services.rating import lease_rating
from tenants.models import AuditEvent, Tenant
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import LATER, issue_note
from tests.billing.grants.grant_setup import (
    GIVEN,
    WHY,
    amounts_drawn,
    create_grant,
    expire_grants,
    grant_state,
    remaining_amount,
)
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.ledger.ledger_rows import account_balances, transfers_of
from tests.billing.payments.payable_invoices import (
    NOW,
    charged_amounts,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)

pytestmark = pytest.mark.django_db
CENT = EURO // 100


def close_month_of(tenant: Tenant, label: str = "2026-10") -> Invoice:
    lease_rating.rate_tenant_leases(tenant, now=NOW if label == "2026-10" else LATER)
    found = close_month.close_period(tenant, label, now=NOW if label == "2026-10" else LATER)
    assert found is not None
    return found


def assert_balanced() -> None:
    with staff_scope():
        assert (ledger_balances.recomputed_trial_balance()[1], ledger_balances.uncleared_invoices()) == (
            (),
            [],
        )
        assert all(totals.balanced for totals in ledger_balances.stored_trial_balance())
        assert [
            proof.name for proof in invariant_checks.check_invariants(now=NOW + timedelta(hours=1)) if not proof.holds
        ] == []


def test_a_grant_is_booked_to_promotion_with_an_account_of_its_own() -> None:
    tenant, _ = create_customer()
    first, second = create_grant(tenant, 500), create_grant(tenant, 300)
    assert (remaining_amount(first), remaining_amount(second)) == (500, 300)
    assert account_balances()["promotion"] == 800
    assert_balanced()


def test_a_grant_pays_its_amount_and_a_payment_covers_the_remainder() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(200 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    grant = create_grant(tenant, 150)
    invoice = close_month_of(tenant)
    assert (amounts_drawn(invoice), invoice.settled, invoice.to_pay, remaining_amount(grant)) == (
        {grant.pk: 150},
        150,
        50,
        0,
    )
    assert ("draw", "wallet_promo", "receivable", 150) in transfers_of(invoice)
    assert process_payment(request_payment(invoice)).minor == 50
    assert grant_state(grant, NOW).state == "used_up"
    assert_balanced()


def test_the_remainder_of_a_grant_pays_the_next_month() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(200 * CENT)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    add_ended_lease(project, offering, utc("2026-11-05 00:00:00"), HOUR)
    grant = create_grant(tenant, 350)
    october, november = close_month_of(tenant), close_month_of(tenant, "2026-11")
    assert (amounts_drawn(october), amounts_drawn(november)) == ({grant.pk: 200}, {grant.pk: 150})
    sweep_payments(LATER)
    assert charged_amounts(october) == [50]
    assert reload_invoice(october).status == "paid"
    assert_balanced()


def test_grants_are_drawn_by_lowest_priority_and_then_by_earliest_expiry() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(250 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    last = create_grant(tenant, 100, priority=200)
    forever = create_grant(tenant, 100)
    soon = create_grant(tenant, 100, expires_at=utc("2026-12-01 00:00:00"))
    first = create_grant(tenant, 100, priority=1)
    assert amounts_drawn(close_month_of(tenant)) == {first.pk: 100, soon.pk: 100, forever.pk: 50}
    assert remaining_amount(last) == 100


def test_a_grant_pays_only_in_its_scope() -> None:
    tenant, root = create_customer()
    with tenant_scope(tenant.pk):
        child = projects.create(name="child", parent=root, actor=SYSTEM, now=GIVEN)
        leaf = projects.create(name="leaf", parent=child, actor=SYSTEM, now=GIVEN)
    cheap, dear = create_priced_offering(100 * CENT), create_priced_offering(200 * CENT)
    for project in (root, child, leaf):
        for offering in (cheap, dear):
            add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    below = create_grant(tenant, 10_000, project=child)
    offered = create_grant(tenant, 10_000, offering=cheap)
    both = create_grant(tenant, 10_000, project=leaf, offering=dear, priority=1)
    invoice = close_month_of(tenant)
    assert amounts_drawn(invoice) == {both.pk: 200, below.pk: 400, offered.pk: 100}
    assert invoice.to_pay == 200
    assert_balanced()


def test_a_grant_for_all_offerings_leaves_a_scoped_grant_its_usage() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(100 * CENT)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    add_ended_lease(project, create_priced_offering(100 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    wide = create_grant(tenant, 100, priority=1)
    narrow = create_grant(tenant, 100, offering=offering)
    invoice = close_month_of(tenant)
    assert (amounts_drawn(invoice), invoice.to_pay) == ({wide.pk: 100, narrow.pk: 100}, 0)


def test_grants_are_drawn_before_the_balance_and_before_a_payment() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(300 * CENT)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    add_ended_lease(project, offering, utc("2026-11-05 00:00:00"), HOUR)
    october = close_month_of(tenant)
    process_payment(request_payment(october))
    issue_note(october, {1: 120})
    grant = create_grant(tenant, 100, now=NOW)
    november = close_month_of(tenant, "2026-11")
    with tenant_scope(tenant.pk):
        assert BalanceDraw.objects.get().minor == 120
    assert (amounts_drawn(november), november.to_pay) == ({grant.pk: 100}, 80)
    assert_balanced()


def test_b31_a_grant_pays_usage_exactly_up_to_its_expiry() -> None:
    tenant, project = create_customer()
    end = utc("2026-10-05 00:30:00")
    add_ended_lease(project, create_priced_offering(360 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    grant = create_grant(tenant, 1000, expires_at=end)
    invoice = close_month_of(tenant)
    assert (amounts_drawn(invoice), remaining_amount(grant)) == ({grant.pk: 180}, 820)


@pytest.mark.parametrize(("ends", "paid"), [("2026-10-31 23:59:59", 5900), ("2026-11-01 00:00:00", 6000)])
def test_b31_a_grant_expiring_at_month_end_pays_the_whole_month(ends: str, paid: int) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(60 * 60 * 100 * CENT), utc("2026-10-31 23:59:00"), 60)
    grant = create_grant(tenant, 10_000, expires_at=utc(ends))
    assert expire_grants(NOW) == 0
    assert amounts_drawn(close_month_of(tenant)) == {grant.pk: paid}
    assert expire_grants(NOW) == 1
    assert (remaining_amount(grant), grant_state(grant, NOW).state) == (0, "lapsed")


def test_b31_a_grant_that_expired_before_the_lease_started_pays_nothing() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(200 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    grant = create_grant(tenant, 1000, expires_at=utc("2026-10-05 00:00:00"))
    assert amounts_drawn(close_month_of(tenant)) == {}
    assert expire_grants(NOW) == 1
    assert grant_state(grant, NOW).lapsed == 1000
    assert account_balances()["breakage"] == 1000
    assert_balanced()


def test_two_expiring_grants_do_not_pay_the_same_seconds() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(400 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    first = create_grant(tenant, 1000, expires_at=utc("2026-10-05 00:15:00"))
    second = create_grant(tenant, 1000, expires_at=utc("2026-10-05 00:30:00"))
    third = create_grant(tenant, 30, expires_at=utc("2026-10-05 00:30:00"), priority=1)
    assert amounts_drawn(close_month_of(tenant)) == {third.pk: 30, first.pk: 100, second.pk: 70}


def test_the_remainder_of_a_grant_expires_once_its_last_month_is_final() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(200 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    grant = create_grant(tenant, 500, expires_at=utc("2026-10-20 00:00:00"))
    assert expire_grants(utc("2026-10-25 00:00:00")) == 0
    assert grant_state(grant, utc("2026-10-25 00:00:00")).state == "ending"
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    assert expire_grants(NOW) == 0
    invoice = close_month_of(tenant)
    assert amounts_drawn(invoice) == {grant.pk: 200}
    assert (expire_grants(NOW), expire_grants(NOW)) == (1, 0)
    assert grant_state(grant, NOW).lapsed == 300
    assert_balanced()


def test_an_unused_grant_lapses_when_its_month_is_closed() -> None:
    tenant, _ = create_customer("Pacific/Auckland")
    grant = create_grant(tenant, 500, expires_at=utc("2026-10-20 00:00:00"))
    assert expire_grants(utc("2026-10-31 10:00:00")) == 0
    close_month.close_due_months(now=utc("2026-10-31 11:04:59"))
    assert expire_grants(utc("2026-10-31 11:04:59")) == 0
    close_month.close_due_months(now=utc("2026-10-31 11:05:00"))
    assert expire_grants(utc("2026-10-31 11:05:00")) == 1
    assert (grant_state(grant, NOW).state, grant_state(grant, NOW).lapsed) == ("lapsed", 500)
    assert_balanced()


def test_a_grant_does_not_expire_before_its_usage_is_charged() -> None:
    tenant, project = create_customer()
    grant = create_grant(tenant, 500, expires_at=utc("2026-10-20 00:00:00"))
    add_ended_lease(project, create_priced_offering(200 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    assert expire_grants(NOW) == 0
    close_month.close_due_months(now=NOW)
    assert expire_grants(NOW) == 1
    assert grant_state(grant, NOW).lapsed == 300


def test_a_grant_that_fails_to_expire_does_not_block_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = [create_grant(create_customer()[0], 500, expires_at=utc("2026-10-20 00:00:00")) for _ in range(2)]
    expire_grants(NOW)
    close_month.close_due_months(now=NOW)
    real = grant_expiry._expire_grant

    def broken(grant_id: str, *rest: Any) -> bool:
        if grant_id == grants[0].pk:
            raise DatabaseError("no")
        return real(grant_id, *rest)

    monkeypatch.setattr(grant_expiry, "_expire_grant", broken)
    assert expire_grants(NOW) == 1
    assert (remaining_amount(grants[0]), remaining_amount(grants[1])) == (500, 0)


def test_a_grant_expires_only_once() -> None:
    tenant, _ = create_customer()
    grant = create_grant(tenant, 500, expires_at=utc("2026-10-20 00:00:00"))
    expire_grants(NOW)
    close_month.close_due_months(now=NOW)
    with tenant_scope(tenant.pk):
        ends = utc("2026-10-20 00:00:00")
        assert [grant_expiry._expire_grant(grant.pk, tenant, ends, NOW) for _ in range(2)] == [True, False]


def test_a_repeated_grant_request_creates_one_grant() -> None:
    tenant, _ = create_customer()
    first, second = create_grant(tenant, 500, idem="breach 7"), create_grant(tenant, 500, idem="breach 7")
    assert first.pk == second.pk
    assert account_balances()["promotion"] == 500
    with pytest.raises(GrantKeyReused, match="Another grant"):
        create_grant(tenant, 501, idem="breach 7")


def test_an_invalid_grant_is_refused_at_its_field_and_books_nothing() -> None:
    (tenant, _), (_, other) = create_customer(), create_customer()
    for wrong, field in (
        ({"cents": 0}, "amount"),
        ({"cents": 10**16}, "amount"),
        ({"cents": 1, "priority": 1001}, "priority"),
        ({"cents": 1, "expires_at": GIVEN}, "expires_at"),
        ({"cents": 1, "project": other}, "project"),
    ):
        with pytest.raises(InvalidValue) as refused:
            create_grant(tenant, **wrong)  # type: ignore[arg-type]
        assert refused.value.field == field
    with tenant_scope(tenant.pk):
        assert not Grant.objects.exists()


def test_a_grant_is_audited_with_amount_reason_and_scope() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering()
    create_grant(tenant, 500, project=project, offering=offering, expires_at=utc("2026-12-01 00:00:00"))
    with tenant_scope(tenant.pk):
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


def test_closing_a_month_again_draws_grants_only_once() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(200 * CENT), utc("2026-10-05 00:00:00"), HOUR)
    create_grant(tenant, 500)
    close_month_of(tenant)
    close_month.close_due_months(now=LATER)
    drafts.refresh_drafts(tenant, now=LATER)
    with tenant_scope(tenant.pk):
        assert [draw.minor for draw in GrantDraw.objects.all()] == [200]
