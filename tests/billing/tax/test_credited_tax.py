"""Credit notes of taxed invoices."""

import random

import pytest

from billing.models import CreditNote, InvoiceStatus
from billing.services.invoicing import credit_notes
from billing.services.invoicing.credit_notes import creditable_lines
from billing.services.ledger import ledger_balances
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import invoices_of
from tests.billing.tax.taxed_tenants import create_october_invoice, set_tax_rate

pytestmark = pytest.mark.django_db


def test_a_partial_credit_includes_its_share_of_the_tax() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, 105)
    note = issue_note(invoice, {1: 100})
    assert (note.total, note.tax) == (119, 19)
    assert invoices_of(invoice.tenant)[0].due == 363 - 119


def test_a_full_credit_note_settles_the_invoice_including_tax() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, 105)
    note = issue_note(invoice)
    assert (note.total, note.tax) == (363, 58)
    (after,) = invoices_of(invoice.tenant)
    assert (after.due, after.status) == (0, InvoiceStatus.PAID)
    with tenant_scope(invoice.tenant_id):
        assert ledger_balances.amounts_owed(invoice.tenant_id) == []


@pytest.mark.deep
def test_e7_b19_partial_credits_in_any_order_add_up_to_total_and_tax() -> None:
    set_tax_rate("DE", 19)
    chance = random.Random(7)
    for _ in range(4):
        invoice = create_october_invoice(*(chance.choice([1, 2, 33, 101, 105]) for _ in range(chance.randrange(1, 6))))
        while True:
            with tenant_scope(invoice.tenant_id):
                some = [line for line in creditable_lines(invoice) if line.remaining]
            if not some:
                break
            chosen = chance.sample(some, chance.randrange(1, len(some) + 1))
            issue_note(invoice, {line.n: chance.randrange(1, line.remaining + 1) for line in chosen})
        with tenant_scope(invoice.tenant_id):
            notes = CreditNote.objects.filter(invoice=invoice)
            assert sum(note.total for note in notes) == invoice.total
            assert sum(note.tax for note in notes) == invoice.tax
            lines = credit_notes.creditable_lines(invoice)
            assert all((line.tax, line.minor) == (line.tax_credited, line.credited) for line in lines)
