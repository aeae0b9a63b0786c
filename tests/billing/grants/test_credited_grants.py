"""Credit notes of invoices that grants paid in part."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.models import CreditNote, Grant, GrantReturn, Invoice
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import invariant_checks, ledger_balances
from billing.services.rating import lease_rating
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.grants.grant_setup import create_grant, expire_grants, remaining_amount
from tests.billing.histories import HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import (
    NOW,
    charged_amounts,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = pytest.mark.django_db
CENT = 10**7


def create_granted_month(
    *grants: int, ends: str = "", lines: tuple[int, ...] = (200, 105)
) -> tuple[Invoice, list[Grant]]:
    """Return an October invoice with these lines, and the grants that pay it."""
    tenant, project = create_customer()
    given = [
        create_grant(tenant, minor, priority=n, expires_at=utc(ends) if ends else None)
        for n, minor in enumerate(grants)
    ]
    for n, cents in enumerate(lines):
        add_ended_lease(project, create_priced_offering(cents * CENT), utc(f"2026-10-{n % 28 + 3:02} 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found, given


def available_balance(invoice: Invoice) -> int:
    with tenant_scope(invoice.tenant_id):
        return ledger_balances.available_balance(invoice.tenant_id, invoice.currency)


def assert_balanced() -> None:
    with staff_scope():
        assert (ledger_balances.recomputed_trial_balance()[1], ledger_balances.uncleared_invoices()) == (
            (),
            [],
        )
        assert [proof.name for proof in invariant_checks.check_invariants(now=NOW) if not proof.holds] == []


def test_a_credit_note_returns_the_payment_before_the_grant() -> None:
    invoice, (grant,) = create_granted_month(200)
    process_payment(request_payment(invoice))
    note = issue_note(invoice, {1: 150})
    assert (note.reduced_due, note.to_balance, note.to_grants) == (0, 105, 45)
    assert (available_balance(invoice), remaining_amount(grant)) == (105, 45)
    note = issue_note(invoice)
    assert (note.to_balance, note.to_grants) == (0, 155)
    assert (available_balance(invoice), remaining_amount(grant), charged_amounts(invoice)) == (105, 200, [105])
    assert_balanced()


def test_a_credit_note_reduces_the_amount_due_before_returning_a_grant() -> None:
    invoice, (grant,) = create_granted_month(200)
    note = issue_note(invoice)
    assert (note.reduced_due, note.to_balance, note.to_grants) == (105, 0, 200)
    assert (available_balance(invoice), remaining_amount(grant), reload_invoice(invoice).status) == (0, 200, "paid")
    assert_balanced()


def test_the_grant_drawn_last_is_returned_first() -> None:
    invoice, (first, second) = create_granted_month(200, 105)
    issue_note(invoice, {1: 150})
    assert (remaining_amount(first), remaining_amount(second)) == (45, 105)
    issue_note(invoice, {2: 5})
    assert (remaining_amount(first), remaining_amount(second)) == (50, 105)
    assert_balanced()


def test_credit_returned_to_an_expired_grant_lapses() -> None:
    invoice, (grant,) = create_granted_month(300, ends="2026-11-01 00:00:00")
    assert expire_grants(NOW) == 1
    note = issue_note(invoice)
    assert (note.reduced_due, note.to_balance, note.to_grants) == (5, 0, 300)
    assert (available_balance(invoice), remaining_amount(grant)) == (0, 0)
    with tenant_scope(invoice.tenant_id):
        assert GrantReturn.objects.get().lapsed
    assert_balanced()


def test_without_grants_a_credited_payment_goes_to_the_balance() -> None:
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    assert issue_note(invoice).to_balance == 305


@pytest.mark.deep
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    grants=st.lists(st.integers(1, 300), max_size=3),
    paid_first=st.booleans(),
    parts=st.lists(st.tuples(st.integers(1, 2), st.integers(1, 120)), max_size=6),
)
def test_credit_notes_in_any_order_return_no_more_than_was_paid(
    grants: list[int], paid_first: bool, parts: list[tuple[int, int]]
) -> None:
    invoice, given_ = create_granted_month(*grants)
    if paid_first and invoice.to_pay:
        process_payment(request_payment(invoice))
    rest = {1: 200, 2: 105}
    for n, minor in parts:
        part = min(minor, rest[n])
        rest[n] -= part
        if part:
            issue_note(invoice, {n: part})
    if any(rest.values()):
        issue_note(invoice)
    with tenant_scope(invoice.tenant_id):
        assert sum(note.total for note in CreditNote.objects.filter(invoice=invoice)) == 305
    assert available_balance(invoice) == sum(charged_amounts(invoice))
    assert [remaining_amount(grant) for grant in given_] == grants
    assert_balanced()
