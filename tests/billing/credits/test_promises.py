"""What PostgreSQL itself refuses about credit notes, whoever writes: each attack is one that a bug could make."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from billing.models import CreditNote, CreditNoteLine, Invoice, InvoiceLine
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines
from tests.billing.payments.bills import NOW, draft, fresh, pay
from tests.database import OwnDatabase


def refused(invoice: Invoice, attack: Callable[[], Any], match: str) -> None:
    with as_tenant(invoice.tenant_id), pytest.raises(DatabaseError, match=match):
        through(attack)


@transaction.atomic
def through(attack: Callable[[], Any]) -> None:
    """Attack, and let what is looked at when a transaction ends be looked at."""
    attack()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def written(invoice: Invoice, lines: dict[int, int], **otherwise: Any) -> Callable[[], None]:
    """Write a note past the service."""

    def write() -> None:
        fields = {"total": sum(lines.values()), "off_due": 0, "currency": "EUR"} | otherwise
        note = CreditNote.objects.create(
            tenant_id=invoice.tenant_id, invoice=invoice, series="CN", number=1, reason="a bug", issued_at=NOW, **fields
        )  # fmt: skip
        for line, minor in lines.items():
            CreditNoteLine.objects.create(
                tenant_id=invoice.tenant_id, credit_note=note, line_id=line, minor=minor
            )

    return write


def lines_of(invoice: Invoice) -> list[int]:
    with as_tenant(invoice.tenant_id):
        return list(InvoiceLine.objects.filter(invoice=invoice).order_by("n").values_list("pk", flat=True))


@pytest.mark.django_db
def test_a_line_gives_back_no_more_than_it_came_to() -> None:
    invoice = month_of_two_lines()
    first, second = lines_of(invoice)
    credit(invoice, {1: 150})
    refused(invoice, written(invoice, {first: 51}), "more is credited")
    refused(invoice, written(invoice, {second: 106}), "more is credited")


@pytest.mark.django_db
def test_a_note_is_of_lines_of_its_own_final_invoice() -> None:
    ours, theirs, unfinished = month_of_two_lines(), month_of_two_lines(), draft()
    refused(ours, written(ours, {lines_of(theirs)[0]: 1}), "lines of its own|foreign key")
    refused(unfinished, written(unfinished, {lines_of(unfinished)[0]: 1}), "final invoice")
    refused(ours, written(ours, {lines_of(ours)[0]: 1}, currency="USD"), "final invoice")


@pytest.mark.django_db
@pytest.mark.parametrize("otherwise", [{"total": 9}, {"total": 11}])
def test_a_note_is_the_sum_of_its_lines(otherwise: dict[str, int]) -> None:
    invoice = month_of_two_lines()
    refused(invoice, written(invoice, {lines_of(invoice)[0]: 10}, **otherwise), "not the sum of its lines")


@pytest.mark.django_db
def test_a_note_without_lines_and_one_that_takes_off_more_than_it_is_are_none() -> None:
    invoice = month_of_two_lines()
    refused(invoice, written(invoice, {}, total=5), "not the sum of its lines")
    refused(invoice, written(invoice, {lines_of(invoice)[0]: 5}, off_due=6), "credit_of_something")


@pytest.mark.django_db
def test_what_is_settled_only_grows_and_is_never_more_than_all_of_it() -> None:
    invoice = month_of_two_lines()
    credit(invoice, {1: 50})
    rows = Invoice.objects.filter(pk=invoice.pk)
    refused(invoice, lambda: rows.update(settled=49), "stays so")
    refused(invoice, lambda: rows.update(settled=306), "settled_is_a_part_of_it")
    refused(invoice, lambda: rows.update(status="void"), "stays so")
    refused(invoice, lambda: rows.update(status="paid", paid_at=NOW), "paid by a payment")


@pytest.mark.django_db
def test_nothing_is_settled_otherwise_while_a_payment_may_have_taken_it() -> None:
    invoice = month_of_two_lines()
    pay(invoice)
    refused(invoice, lambda: Invoice.objects.filter(pk=invoice.pk).update(settled=1), "may have taken")


@pytest.mark.django_db
def test_a_draft_has_nothing_settled() -> None:
    unfinished = draft()
    refused(
        unfinished, lambda: Invoice.objects.filter(pk=unfinished.pk).update(settled=1), "settled_is_a_part"
    )


def test_many_who_give_back_one_line_at_once_give_back_one_line(own_database: OwnDatabase) -> None:
    invoice = month_of_two_lines(100)

    def one(_: int) -> int:
        try:
            return credit(invoice, {1: 30}).total
        except Refused:
            return 0
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        given_back = list(pool.map(one, range(16)))
    assert sorted(given_back, reverse=True)[:4] == [30, 30, 30, 0]
    assert fresh(invoice).to_pay == 10
    with as_tenant(invoice.tenant_id):
        assert sorted(CreditNote.objects.values_list("number", flat=True)) == [1, 2, 3]
