"""Credit notes of taxed invoices: in any order and any parts they come to exactly the total and the tax."""

import random

import pytest

from billing.models import CreditNote, InvoiceStatus
from billing.services import crediting
from billing.services.crediting import left
from billing.services.ledger import books
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.histories import invoices
from tests.billing.tax.papers import october, taxed

pytestmark = pytest.mark.django_db


def test_a_part_of_a_line_takes_its_part_of_the_tax_along() -> None:
    taxed("DE", 19)
    invoice = october(200, 105)
    note = credit(invoice, {1: 100})
    assert (note.total, note.tax) == (119, 19)
    assert invoices(invoice.tenant)[0].due == 363 - 119


def test_all_of_it_comes_to_nought_and_to_nothing_owed() -> None:
    taxed("DE", 19)
    invoice = october(200, 105)
    note = credit(invoice)
    assert (note.total, note.tax) == (363, 58)
    (after,) = invoices(invoice.tenant)
    assert (after.due, after.status) == (0, InvoiceStatus.PAID)
    with as_tenant(invoice.tenant_id):
        assert books.owed(invoice.tenant_id) == []


def test_e7_b19_any_parts_in_any_order_come_to_exactly_total_and_tax() -> None:
    taxed("DE", 19)
    chance = random.Random(7)
    for _ in range(4):
        invoice = october(*(chance.choice([1, 2, 33, 101, 105]) for _ in range(chance.randrange(1, 6))))
        while True:
            with as_tenant(invoice.tenant_id):
                some = [line for line in left(invoice) if line.left]
            if not some:
                break
            chosen = chance.sample(some, chance.randrange(1, len(some) + 1))
            credit(invoice, {line.n: chance.randrange(1, line.left + 1) for line in chosen})
        with as_tenant(invoice.tenant_id):
            notes = CreditNote.objects.filter(invoice=invoice)
            assert sum(note.total for note in notes) == invoice.total
            assert sum(note.tax for note in notes) == invoice.tax
            lines = crediting.left(invoice)
            assert all((line.tax, line.minor) == (line.tax_credited, line.credited) for line in lines)
