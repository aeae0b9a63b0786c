"""What an older release wrote, which knew of no ledger, is booked as it happened; nobody's rows hold up another's."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import DatabaseError

from billing import tasks
from billing.models import Invoice, LedgerSeal
from billing.services import proofs
from billing.services.ledger import books, catching_up, posting
from ports import clock
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines, november
from tests.billing.ledger.ledgers import booked, on_accounts, transfers
from tests.billing.ledger.test_posting import FINAL, PAID
from tests.billing.ledger.test_sealing import later
from tests.billing.payments.bills import NOW, bill, collect, fresh, pay

pytestmark = pytest.mark.django_db


@contextmanager
def older_release() -> Iterator[None]:
    """Let invoices be closed and paid by a release that posts nothing."""
    with patch.object(posting, "_post", return_value=0):
        yield


def test_old_invoices_and_payments_are_booked_as_they_happened() -> None:
    with older_release():
        owed, paid = bill(), bill()
        collect(pay(paid))
    assert booked(owed) == booked(paid) == []
    assert catching_up.post_missing(now=later()) == 5
    assert (booked(owed), booked(paid)) == (FINAL, [*FINAL, PAID])
    assert {each.at for each in transfers(owed)} == {owed.finalized_at}
    assert transfers(paid)[2].at == fresh(paid).paid_at
    assert catching_up.post_missing(now=later()) == 0


def test_an_old_invoice_that_was_taken_back_is_booked_and_reversed() -> None:
    with older_release():
        invoice = bill()
    with as_tenant(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    assert catching_up.post_missing(now=NOW) == 4
    assert on_accounts(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert catching_up.post_missing(now=NOW) == 0


def test_what_was_given_back_and_drawn_is_booked_in_the_order_in_which_it_can_be() -> None:
    with older_release():
        invoice = month_of_two_lines()
        collect(pay(invoice))
        credit(invoice, {1: 150})
    with as_staff():
        assert sorted({what for _, what, _ in books.missing()}) == ["credited", "finalized", "paid"]
    assert catching_up.post_missing(now=later()) == 5
    assert on_accounts(invoice.tenant_id) == {"receivable": 0, "accrued": 0, "wallet_paid": 150}
    with patch.object(posting, "finalized", return_value=0):
        following = november(invoice, 100)
    with as_staff():
        assert books.missing() == [
            (invoice.tenant_id, "finalized", following.pk), (invoice.tenant_id, "finalized", following.pk)
        ]  # fmt: skip
    assert catching_up.post_missing(now=later()) == 3
    assert on_accounts(invoice.tenant_id)["wallet_paid"] == 50
    assert catching_up.post_missing(now=later()) == 0


@pytest.mark.parametrize("error", [DatabaseError("no such row"), posting.Contradiction("otherwise")])
def test_one_tenants_trouble_keeps_nobody_elses_waiting(error: Exception) -> None:
    with older_release():
        first, second = sorted((bill(), bill()), key=lambda invoice: invoice.tenant_id)
    real = posting.finalized

    def odd(invoices: list[str], *, now: object) -> int:
        if invoices == [first.pk]:
            raise error
        return real(invoices, now=now)  # type: ignore[arg-type]

    with patch.dict(catching_up.POST, finalized=odd):
        assert catching_up.post_missing(now=NOW) == 2
    assert (booked(first), booked(second)) == ([], FINAL)
    assert catching_up.post_missing(now=NOW) == 2


def test_the_task_books_and_seals() -> None:
    with older_release():
        invoice = bill()
    tasks.keep_ledger()
    assert booked(invoice) == FINAL
    with clock.standing_at(later()):
        tasks.keep_ledger()
    with as_staff():
        assert LedgerSeal.objects.get().transfers == [each.pk for each in transfers(invoice)]


def proof(name: str, minutes: int) -> tuple[int, tuple[str, ...]]:
    with as_staff():
        found = {each.name: each for each in proofs.check(now=NOW + timedelta(minutes=minutes))}
    return found[name].found, found[name].examples


def test_the_proofs_name_what_is_not_in_the_books_once_there_was_time_for_it() -> None:
    with older_release():
        invoice = bill()
    assert proof("invoices are in the books", 5) == (0, ())
    assert proof("invoices are in the books", 40) == (1, (invoice.pk,))
    catching_up.post_missing(now=NOW)
    assert proof("invoices are in the books", 40) == (0, ())
    assert proof("books balance", 40) == (0, ())


def test_the_books_of_many_tenants_balance() -> None:
    for number in range(4):
        invoice = bill((number + 1) * 10**9)
        if number % 2:
            collect(pay(invoice))
    with as_staff():
        (euros,) = books.trial_balance()
        (reckoned,), drifts = books.reckoned()
    assert euros == reckoned
    assert (euros.debit, euros.balanced, drifts) == (1000, True, ())
    assert [(line.type, line.accounts, line.debit, line.credit) for line in euros.lines] == [
        ("receivable", 4, 400, 0),
        ("accrued", 4, 0, 0),
        ("revenue", 1, 0, 1000),
        ("cash", 1, 600, 0),
    ]
