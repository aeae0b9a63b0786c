"""Credit notes of what grants had paid: never more money than was paid, and never more to a grant than it paid."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.models import CreditNote, Grant, GrantReturn, Invoice
from billing.services import closing, proofs, rating
from billing.services.ledger import books
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines
from tests.billing.grants.gifts import give, lapse, left
from tests.billing.histories import HOUR, at, customer, ran, sold
from tests.billing.payments.bills import NOW, collect, fresh, pay, taken

pytestmark = pytest.mark.django_db
CENT = 10**7


def granted_month(
    *grants: int, ends: str = "", lines: tuple[int, ...] = (200, 105)
) -> tuple[Invoice, list[Grant]]:
    """Return an October of these lines, of which grants paid what they could."""
    tenant, project = customer()
    given = [
        give(tenant, minor, priority=n, expires_at=at(ends) if ends else None)
        for n, minor in enumerate(grants)
    ]
    for n, cents in enumerate(lines):
        ran(project, sold(cents * CENT), at(f"2026-10-{n % 28 + 3:02} 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    found = closing.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found, given


def balance(invoice: Invoice) -> int:
    with as_tenant(invoice.tenant_id):
        return books.balance(invoice.tenant_id, invoice.currency)


def balanced() -> None:
    with as_staff():
        assert (books.reckoned()[1], books.uncleared()) == ((), [])
        assert [proof.name for proof in proofs.check(now=NOW) if not proof.holds] == []


def test_money_goes_back_before_a_grant_has_anything() -> None:
    invoice, (grant,) = granted_month(200)
    collect(pay(invoice))
    note = credit(invoice, {1: 150})
    assert (note.off_due, note.to_balance, note.to_grants) == (0, 105, 45)
    assert (balance(invoice), left(grant)) == (105, 45)
    note = credit(invoice)
    assert (note.to_balance, note.to_grants) == (0, 155)
    assert (balance(invoice), left(grant), taken(invoice)) == (105, 200, [105])
    balanced()


def test_what_is_due_becomes_less_before_anything_goes_back() -> None:
    invoice, (grant,) = granted_month(200)
    note = credit(invoice)
    assert (note.off_due, note.to_balance, note.to_grants) == (105, 0, 200)
    assert (balance(invoice), left(grant), fresh(invoice).status) == (0, 200, "paid")
    balanced()


def test_what_was_drawn_last_goes_back_first() -> None:
    invoice, (first, second) = granted_month(200, 105)
    credit(invoice, {1: 150})
    assert (left(first), left(second)) == (45, 105)
    credit(invoice, {2: 5})
    assert (left(first), left(second)) == (50, 105)
    balanced()


def test_what_goes_back_to_a_grant_that_lapsed_is_nobodys() -> None:
    invoice, (grant,) = granted_month(300, ends="2026-11-01 00:00:00")
    assert lapse(NOW) == 1
    note = credit(invoice)
    assert (note.off_due, note.to_balance, note.to_grants) == (5, 0, 300)
    assert (balance(invoice), left(grant)) == (0, 0)
    with as_tenant(invoice.tenant_id):
        assert GrantReturn.objects.get().lapsed
    balanced()


def test_without_a_grant_all_that_was_paid_goes_to_the_balance() -> None:
    invoice = month_of_two_lines()
    collect(pay(invoice))
    assert credit(invoice).to_balance == 305


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    grants=st.lists(st.integers(1, 300), max_size=3),
    paid_first=st.booleans(),
    parts=st.lists(st.tuples(st.integers(1, 2), st.integers(1, 120)), max_size=6),
)
def test_in_whichever_order_no_more_money_comes_back_than_was_paid(
    grants: list[int], paid_first: bool, parts: list[tuple[int, int]]
) -> None:
    invoice, given_ = granted_month(*grants)
    if paid_first and invoice.to_pay:
        collect(pay(invoice))
    rest = {1: 200, 2: 105}
    for n, minor in parts:
        part = min(minor, rest[n])
        rest[n] -= part
        if part:
            credit(invoice, {n: part})
    if any(rest.values()):
        credit(invoice)
    with as_tenant(invoice.tenant_id):
        assert sum(note.total for note in CreditNote.objects.filter(invoice=invoice)) == 305
    assert balance(invoice) == sum(taken(invoice))
    assert [left(grant) for grant in given_] == grants
    balanced()
