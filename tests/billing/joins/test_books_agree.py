"""Random histories of invoices: journal, VAT report, ageing list and open amounts agree.

Each step is what an operator does; a step that is refused changes nothing.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from billing.domain.ledger import CREDIT_NORMAL_TYPES
from billing.models import BankReceipt, BillingPeriod, Invoice
from billing.services.cancellations.cancelled_invoices import cancel_and_reopen
from billing.services.invoicing import credit_notes
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.payments import write_offs
from billing.services.payments.bank_receipts import receipt_assignment, receipt_reversal
from billing.services.payments.bank_receipts.receipt_records import ReceiptUse
from billing.services.reports.accounting import journal, month_end, vat_report
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold, receive, tenant_of
from tests.billing.credit_notes.issued_notes import create_november_invoice, credited_amount
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import OPERATOR, utc
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, PERSON, create_october_invoice, set_tax_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments", "captured")]
STEPS = 30
FAR = utc("2028-01-01 00:00:00")


class History:
    """Invoices of three tenants, taxed differently, and random acts on them."""

    def __init__(self, seed: int) -> None:
        self.chance, self.now = random.Random(seed), NOW + timedelta(days=31)
        self.done = Counter[str]()
        for party in (None, PERSON, ATELIER):
            cents = [self.chance.randint(1, 3000) for _ in range(self.chance.randint(1, 3))]
            invoice = create_october_invoice(*cents, party=party)
            if self.chance.random() < 0.5:
                create_grant(tenant_of(invoice), self.chance.randint(1, 500))
            create_november_invoice(invoice, self.chance.randint(1, 2000))

    def step(self) -> None:
        """Do one random act on a random invoice."""
        self.now += timedelta(hours=self.chance.randint(1, 200))
        with staff_scope():
            invoice = self.chance.choice(list(Invoice.objects.exclude(number=None).order_by("series", "number")))
        act: Callable[[Invoice], Any] = self.chance.choice(
            [
                self.pay,
                self.pay,
                self.prepay,
                self.credit,
                self.write_off,
                self.write_off,
                self.undo,
                self.reverse,
                self.cancel,
                self.assign,
            ]
        )
        with suppress(ProblemError), transaction.atomic():
            act(invoice)
            self.done[act.__name__] += 1

    def receipt_of(self, invoice: Invoice) -> BankReceipt | None:
        """Return a random receipt of the invoice's tenant."""
        with tenant_scope(invoice.tenant_id):
            found = list(BankReceipt.objects.filter(tenant=invoice.tenant_id).order_by("recorded_at", "pk"))
        return self.chance.choice(found) if found else None

    def pay(self, invoice: Invoice) -> None:
        receive(invoice, self.chance.choice([1, self.chance.randint(1, 4000), max(invoice.due, 1)]), now=self.now)

    def prepay(self, invoice: Invoice) -> None:
        receive(invoice, self.chance.randint(1, 900), pays=ReceiptUse.BALANCE, now=self.now)

    def assign(self, invoice: Invoice) -> None:
        with tenant_scope(invoice.tenant_id):
            receipt = self.chance.choice(
                list(BankReceipt.objects.filter(tenant=invoice.tenant_id).order_by("pk")) or [None]
            )
        if receipt:
            receipt_assignment.assign_rest(receipt, invoice, actor=OPERATOR, now=self.now)

    def credit(self, invoice: Invoice) -> None:
        with tenant_scope(invoice.tenant_id):
            line = self.chance.choice(credit_notes.creditable_lines(invoice))
        credit_notes.issue_credit_note(
            invoice, wanted={line.n: self.chance.randint(1, max(line.remaining, 1))}, seen=credited_amount(invoice),
            why="slow", actor=OPERATOR, now=self.now,
        )  # fmt: skip

    def write_off(self, invoice: Invoice) -> None:
        write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=self.now)

    def undo(self, invoice: Invoice) -> None:
        write_offs.undo_write_off(invoice, why="they answered", actor=OPERATOR, now=self.now)

    def reverse(self, invoice: Invoice) -> None:
        with tenant_scope(invoice.tenant_id):
            receipt = self.chance.choice(
                list(BankReceipt.objects.filter(tenant=invoice.tenant_id).order_by("pk")) or [None]
            )
        if receipt:
            receipt_reversal.reverse_receipt(receipt, why="returned", actor=OPERATOR, now=self.now)

    def cancel(self, invoice: Invoice) -> None:
        again = self.chance.random() < 0.7
        cancel_and_reopen(invoice, why="wrong address", credits_again=again, actor=OPERATOR, now=self.now)
        with tenant_scope(invoice.tenant_id):
            month = BillingPeriod.objects.get(pk=invoice.period_id)
        month_reviews.approve_month(month, actor=OPERATOR, now=self.now)
        close_month.close_period(tenant_of(invoice), month.label, now=self.now + timedelta(minutes=1))
        self.now += timedelta(minutes=2)


def journal_sums() -> dict[str, int]:
    """Return the balance of each account type by the journal, on the side where it grows."""
    sums = Counter[str]()
    with staff_scope():
        for entry in journal.read_journal(since=utc("2020-01-01 00:00:00"), until=FAR):
            sums[entry.debit.type] += entry.minor
            sums[entry.credit.type] -= entry.minor
    return {kind: -minor if kind in CREDIT_NORMAL_TYPES else minor for kind, minor in sums.items() if minor}


def assert_all_agree(now: datetime) -> None:
    booked = account_sums()
    assert journal_sums() == booked
    with staff_scope():
        vat = vat_report.vat_lines("2026-01", "2029-12")
        ageing = {row.invoice_id: row.minor for row in month_end.open_invoices(at=FAR)}
        invoices = list(Invoice.objects.select_related("period"))
    assert sum(line.tax for line in vat) == booked.get("tax_payable", 0)
    assert sum(line.net for line in vat) == booked.get("revenue", 0) - booked.get("bad_debt", 0)
    assert sum(line.net_bad_debts for line in vat) == -booked.get("bad_debt", 0)
    assert ageing == {each.pk: each.due for each in invoices if each.due}
    assert sum(ageing.values()) == booked.get("receivable", 0)
    assert_books_hold(now)


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    """Sell as a German supplier."""
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def run(seed: int) -> Counter[str]:
    """Run a history, check that all agree, and return how often each act was done."""
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    assert_all_agree(history.now)
    return history.done


def test_books_agree_after_a_random_history() -> None:
    done = run(1) + run(2)
    assert set(done) == {"pay", "prepay", "credit", "write_off", "undo", "reverse", "cancel", "assign"}


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3, 33))
def test_books_agree_after_many_random_histories(seed: int) -> None:
    run(seed)
