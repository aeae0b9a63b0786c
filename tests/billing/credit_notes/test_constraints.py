"""PostgreSQL constraints on credit notes and balance draws, and concurrent credits."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from billing.models import BalanceDraw, CreditNote, CreditNoteLine, Invoice, InvoiceLine
from billing.services.invoicing.credit_notes import NotCreditable
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.payments.payable_invoices import NOW, create_draft_invoice, reload_invoice, request_payment
from tests.database import OwnDatabase


def assert_refused(invoice: Invoice, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(invoice.tenant_id), pytest.raises(DatabaseError, match=match):
        run_with_constraints(attack)


@transaction.atomic
def run_with_constraints(attack: Callable[[], Any]) -> None:
    """Run a write and check deferred constraints at once."""
    attack()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def credit_note_write(invoice: Invoice, lines: dict[int, int], **otherwise: Any) -> Callable[[], None]:
    """Return a function that writes a credit note directly, without the service."""

    def write() -> None:
        total = otherwise.get("total", sum(lines.values()))
        reduced_due = min(total, reload_invoice(invoice).due)
        fields = {"total": total, "reduced_due": reduced_due, "currency": "EUR"} | otherwise
        note = CreditNote.objects.create(
            tenant_id=invoice.tenant_id, invoice=invoice, series="CN", number=1, reason="a bug", issued_at=NOW, **fields
        )  # fmt: skip
        for line, minor in lines.items():
            CreditNoteLine.objects.create(tenant_id=invoice.tenant_id, credit_note=note, line_id=line, minor=minor)

    return write


def line_ids(invoice: Invoice) -> list[int]:
    with tenant_scope(invoice.tenant_id):
        return list(InvoiceLine.objects.filter(invoice=invoice).order_by("n").values_list("pk", flat=True))


@pytest.mark.django_db
def test_credit_notes_cannot_exceed_the_amount_of_a_line() -> None:
    invoice = create_october_invoice_of()
    first, second = line_ids(invoice)
    issue_note(invoice, {1: 150})
    assert_refused(invoice, credit_note_write(invoice, {first: 51}), "more is credited")
    assert_refused(invoice, credit_note_write(invoice, {second: 106}), "more is credited")


@pytest.mark.django_db
def test_a_credit_note_refers_to_lines_of_its_own_final_invoice() -> None:
    ours, theirs, unfinished = create_october_invoice_of(), create_october_invoice_of(), create_draft_invoice()
    assert_refused(ours, credit_note_write(ours, {line_ids(theirs)[0]: 1}), "lines of its own|foreign key")
    assert_refused(unfinished, credit_note_write(unfinished, {line_ids(unfinished)[0]: 1}), "final invoice")
    assert_refused(ours, credit_note_write(ours, {line_ids(ours)[0]: 1}, currency="USD"), "final invoice")


@pytest.mark.django_db
@pytest.mark.parametrize("otherwise", [{"total": 9}, {"total": 11}])
def test_a_credit_note_total_equals_the_sum_of_its_lines(otherwise: dict[str, int]) -> None:
    invoice = create_october_invoice_of()
    assert_refused(
        invoice, credit_note_write(invoice, {line_ids(invoice)[0]: 10}, **otherwise), "not the sum of its lines"
    )


@pytest.mark.django_db
def test_a_credit_note_without_lines_or_with_an_excessive_reduction_is_refused() -> None:
    invoice = create_october_invoice_of()
    assert_refused(invoice, credit_note_write(invoice, {}, total=5), "not the sum of its lines")
    assert_refused(invoice, credit_note_write(invoice, {line_ids(invoice)[0]: 5}, reduced_due=6), "credit_of_something")


@pytest.mark.django_db
def test_the_settled_amount_never_decreases_nor_exceeds_credits_and_draws() -> None:
    invoice = create_october_invoice_of()
    issue_note(invoice, {1: 50})
    rows = Invoice.objects.filter(pk=invoice.pk)
    assert_refused(invoice, lambda: rows.update(settled=49), "stays so")
    assert_refused(invoice, lambda: rows.update(settled=51), "is what was given back and drawn")
    assert_refused(invoice, lambda: rows.update(settled=305, status="paid", paid_at=NOW), "is what was given back")
    assert_refused(invoice, lambda: rows.update(status="void"), "stays so")
    assert_refused(invoice, lambda: rows.update(status="paid", paid_at=NOW), "paid by a payment")


@pytest.mark.django_db
def test_a_credit_note_cannot_settle_an_invoice_during_a_payment() -> None:
    invoice = create_october_invoice_of()
    request_payment(invoice)
    note = credit_note_write(invoice, {line_ids(invoice)[0]: 1})

    def attack() -> None:
        note()
        Invoice.objects.filter(pk=invoice.pk).update(settled=1)

    assert_refused(invoice, attack, "may have taken")


@pytest.mark.django_db
def test_a_draft_cannot_be_settled() -> None:
    unfinished = create_draft_invoice()
    rows = Invoice.objects.filter(pk=unfinished.pk)
    assert_refused(unfinished, lambda: rows.update(settled=1), "is what was given back and drawn")

    def attack() -> None:
        draw(unfinished, 1)()
        rows.update(settled=1)

    assert_refused(unfinished, attack, "settled_is_a_part_of_it")


@pytest.mark.django_db
def test_a_credit_note_reduces_the_amount_due_before_the_balance() -> None:
    invoice = create_october_invoice_of()
    line = line_ids(invoice)[0]
    assert_refused(invoice, credit_note_write(invoice, {line: 10}, reduced_due=0), "lowers what is due")
    assert_refused(invoice, credit_note_write(invoice, {line: 10}, reduced_due=9), "lowers what is due")


@pytest.mark.django_db
def test_a_line_cannot_be_added_to_an_issued_credit_note() -> None:
    invoice = create_october_invoice_of()
    note, line = issue_note(invoice, {1: 50}), line_ids(invoice)[1]
    assert_refused(
        invoice,
        lambda: CreditNoteLine.objects.create(tenant_id=invoice.tenant_id, credit_note=note, line_id=line, minor=1),
        "not the sum of its lines",
    )


def draw(invoice: Invoice, minor: int) -> Callable[[], None]:
    def write() -> None:
        BalanceDraw.objects.create(tenant_id=invoice.tenant_id, invoice=invoice, minor=minor, at=NOW)

    return write


@pytest.mark.django_db
def test_a_balance_draw_is_at_most_the_total_of_an_invoice_being_finalized() -> None:
    final, unfinished, others = create_october_invoice_of(), create_draft_invoice(), create_draft_invoice()
    assert_refused(final, draw(final, 1), "becomes final now")
    assert_refused(unfinished, draw(unfinished, unfinished.total + 1), "becomes final now")
    with tenant_scope(unfinished.tenant_id):
        foreign_draw = BalanceDraw(tenant_id=unfinished.tenant_id, invoice=others, minor=1, at=NOW)
        with pytest.raises(DatabaseError, match=r"becomes final now|foreign key"), transaction.atomic():
            foreign_draw.save()


def test_concurrent_credit_notes_never_exceed_the_line(own_database: OwnDatabase) -> None:
    invoice = create_october_invoice_of(100)

    def one(_: int) -> int:
        try:
            while True:
                try:
                    return issue_note(invoice, {1: 30}).total
                except NotCreditable:
                    continue  # somebody was faster: look again
        except InvalidValue:
            return 0
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        given_back = list(pool.map(one, range(16)))
    assert sorted(given_back, reverse=True)[:4] == [30, 30, 30, 0]
    assert reload_invoice(invoice).to_pay == 10
    with tenant_scope(invoice.tenant_id):
        assert sorted(CreditNote.objects.values_list("number", flat=True)) == [1, 2, 3]


def test_a_concurrently_repeated_credit_request_issues_one_note(own_database: OwnDatabase) -> None:
    invoice = create_october_invoice_of(100)

    def one(_: int) -> int:
        try:
            return issue_note(invoice, {1: 30}, seen=0).total
        except NotCreditable:
            return 0
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        given_back = list(pool.map(one, range(16)))
    assert sorted(given_back, reverse=True)[:2] == [30, 0]
    assert reload_invoice(invoice).to_pay == 70
