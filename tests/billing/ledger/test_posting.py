"""What happens to an invoice stands in the books, once, in the transaction in which it happened."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection

from billing.domain.ledger import AccountType
from billing.models import Invoice, LedgerAccount, LedgerTransfer
from billing.services import closing, rating
from billing.services.ledger import books, posting
from billing.services.payments import collecting
from billing.services.statements import statement
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import EURO, HOUR, at, customer, invoices, ran, sold
from tests.billing.ledger.ledgers import booked, on_accounts, transfers
from tests.billing.payments.bills import NOW, Ill, bill, collect, fresh, ill, pay, tried

pytestmark = pytest.mark.django_db

FINAL = [("invoice", "accrued", "revenue", 200), ("invoice", "receivable", "accrued", 200)]
PAID = ("payment", "cash", "receivable", 200)


def void(invoice: Invoice) -> None:
    with as_tenant(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
        posting.voided([invoice.pk], now=NOW)


def test_an_invoice_that_becomes_final_is_owed_and_earned() -> None:
    invoice = bill()
    assert booked(invoice) == FINAL
    assert {each.at for each in transfers(invoice)} == {invoice.finalized_at}
    assert on_accounts(invoice.tenant_id) == {"receivable": 200, "accrued": 0}
    assert on_accounts() == {"revenue": 200}


def test_what_is_collected_is_no_longer_owed() -> None:
    invoice = bill()
    payment = collect(pay(invoice))
    assert booked(invoice) == [*FINAL, PAID]
    assert transfers(invoice)[2].at == payment.settled_at
    assert on_accounts(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert on_accounts() == {"revenue": 200, "cash": 200}


def test_a_declined_payment_moves_nothing() -> None:
    invoice = bill()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    assert booked(invoice) == FINAL


def test_what_is_taken_back_is_reversed_transfer_by_transfer() -> None:
    invoice = bill()
    void(invoice)
    taken_back = [("void", "revenue", "accrued", 200), ("void", "accrued", "receivable", 200)]
    assert booked(invoice) == [*FINAL, *taken_back]
    rows = transfers(invoice)
    assert [each.reverses_id for each in rows] == [None, None, rows[0].pk, rows[1].pk]
    assert on_accounts(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert on_accounts() == {"revenue": 0}


def test_an_invoice_that_stands_is_not_taken_back() -> None:
    invoice = bill()
    with as_tenant(invoice.tenant_id):
        assert posting.voided([invoice.pk], now=NOW) == 0


def test_b13_posting_again_writes_nothing() -> None:
    invoice = bill()
    payment = collect(pay(invoice))
    before = transfers(invoice)
    with as_tenant(invoice.tenant_id):
        assert posting.finalized([invoice.pk], now=NOW) == 0
        assert posting.paid([payment.pk], now=NOW) == 0
    assert transfers(invoice) == before


def test_b14_the_same_name_with_another_amount_is_refused() -> None:
    invoice = bill()
    other = statement("ledger_finalized").replace("i.total,", "2 * i.total,")
    with (
        as_tenant(invoice.tenant_id),
        patch.object(posting, "statement", instead("ledger_finalized", other)),
        pytest.raises(posting.Contradiction, match=f"something else about {invoice.pk}:total"),
    ):
        posting.finalized([invoice.pk], now=NOW)
    assert booked(invoice) == FINAL


def instead(name: str, text: str) -> Callable[[str], str]:
    """Return the statements as ever, but for one that says this."""
    return lambda asked: text if asked == name else statement(asked)


def test_an_invoice_of_nothing_is_not_in_the_books() -> None:
    invoice = bill(0)
    assert booked(invoice) == []


def test_what_is_negative_goes_the_other_way() -> None:
    invoice = bill()
    text = (
        "SELECT %(tenant)s, 'EUR', now(), 'invoice', %(id)s, NULL::bigint, 'receivable', 'accrued', -5,"
        " %(id)s || ':x'"
    )
    with (
        as_tenant(invoice.tenant_id),
        patch.object(posting, "statement", instead("mine", text)),
    ):
        asked: Any = {"theirs": posting.THEIRS, "now": NOW, "tenant": invoice.tenant_id, "id": invoice.pk}
        posting._say("ledger_post", "mine", asked)
    assert booked(invoice)[-1] == ("invoice", "accrued", "receivable", 5)


def test_many_invoices_are_one_statement() -> None:
    tenant, project = customer()
    offering = sold(2 * EURO)
    for month in ("08", "09", "10"):
        ran(project, offering, at(f"2026-{month}-05 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    with patch.object(posting, "finalized", return_value=0):
        for month in ("08", "09", "10"):
            closing.close_period(tenant, f"2026-{month}", now=NOW)
    found = invoices(tenant)[:3]
    with as_tenant(tenant.pk):
        assert posting.finalized([each.pk for each in found], now=NOW) == 6
    assert [booked(each) for each in found] == [FINAL] * 3
    assert on_accounts(tenant.pk) == {"receivable": 600, "accrued": 0}


def test_every_currency_has_its_own_accounts() -> None:
    euros, yen = bill(), bill(currency="JPY")
    for invoice in (euros, yen):
        collect(pay(invoice))
    with as_staff():
        assert [(each.currency, each.debit, each.balanced) for each in books.trial_balance()] == [
            ("EUR", 200, True),
            ("JPY", 2, True),
        ]
        accounts = LedgerAccount.objects.filter(type=AccountType.REVENUE).values_list("currency", flat=True)
        assert sorted(accounts) == ["EUR", "JPY"]


def test_b42_an_invoice_is_final_only_together_with_its_transfers() -> None:
    tenant, project = customer()
    ran(project, sold(2 * EURO), at("2026-10-05 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    dies = patch.object(posting, "_post", side_effect=OSError("killed"))
    with dies, pytest.raises(OSError, match="killed"):
        closing.close_period(tenant, "2026-10", now=NOW)
    assert [each.status for each in invoices(tenant)] in ([], ["draft"])
    with as_tenant(tenant.pk):
        assert not LedgerTransfer.objects.exists()


def test_a_payment_has_succeeded_only_together_with_its_transfer() -> None:
    invoice = bill()
    payment = pay(invoice)
    dies = patch.object(posting, "_post", side_effect=OSError("killed"))
    with dies, pytest.raises(OSError, match="killed"):
        collecting.collect(payment.pk, payment.tenant_id, now=NOW)
    assert (fresh(invoice).status, [each.status for each in tried(invoice)]) == ("finalized", ["pending"])
    assert booked(invoice) == FINAL


def test_a_platform_account_tells_tenants_nothing_of_what_is_on_it() -> None:
    invoice = bill()
    with as_tenant(invoice.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(b.account_id) FROM billing_ledgeraccount a"
            " LEFT JOIN billing_accountbalance b ON b.account_id = a.id WHERE a.tenant_id IS NULL"
        )
        assert cursor.fetchone() == (1, 0)
