"""Posting of invoices, payments and reversals."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection

from billing.domain.ledger import AccountType
from billing.gateways.simulated import GatewayFault
from billing.models import Invoice, LedgerAccount, LedgerTransfer
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import ledger_balances, posting
from billing.services.payments import payment_collection
from billing.services.rating import lease_rating
from ports.postgres.sql_statements import load_sql
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    utc,
)
from tests.billing.ledger.ledger_rows import account_balances, transfers, transfers_of
from tests.billing.payments.payable_invoices import (
    NOW,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = pytest.mark.django_db

FINAL = [("invoice", "accrued", "revenue", 200), ("invoice", "receivable", "accrued", 200)]
PAID = ("payment", "cash", "receivable", 200)


def void_invoice(invoice: Invoice) -> None:
    with tenant_scope(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
        posting.reverse_invoices([invoice.pk], now=NOW)


def test_a_final_invoice_is_posted_as_receivable_and_revenue() -> None:
    invoice = create_final_invoice()
    assert transfers_of(invoice) == FINAL
    assert {each.at for each in transfers(invoice)} == {invoice.finalized_at}
    assert account_balances(invoice.tenant_id) == {"receivable": 200, "accrued": 0}
    assert account_balances() == {"revenue": 200}


def test_a_collected_payment_clears_the_receivable() -> None:
    invoice = create_final_invoice()
    payment = process_payment(request_payment(invoice))
    assert transfers_of(invoice) == [*FINAL, PAID]
    assert transfers(invoice)[2].at == payment.settled_at
    assert account_balances(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert account_balances() == {"revenue": 200, "cash": 200}


def test_a_declined_payment_posts_nothing() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    assert transfers_of(invoice) == FINAL


def test_a_void_invoice_is_reversed_transfer_by_transfer() -> None:
    invoice = create_final_invoice()
    void_invoice(invoice)
    taken_back = [("void", "revenue", "accrued", 200), ("void", "accrued", "receivable", 200)]
    assert transfers_of(invoice) == [*FINAL, *taken_back]
    rows = transfers(invoice)
    assert [each.reverses_id for each in rows] == [None, None, rows[0].pk, rows[1].pk]
    assert account_balances(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert account_balances() == {"revenue": 0}


def test_a_final_invoice_cannot_be_reversed() -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        assert posting.reverse_invoices([invoice.pk], now=NOW) == 0


def test_b13_posting_again_writes_nothing() -> None:
    invoice = create_final_invoice()
    payment = process_payment(request_payment(invoice))
    before = transfers(invoice)
    with tenant_scope(invoice.tenant_id):
        assert posting.post_invoices([invoice.pk], now=NOW) == 0
        assert posting.post_payments([payment.pk], now=NOW) == 0
    assert transfers(invoice) == before


def test_b14_a_transfer_key_with_another_amount_is_refused() -> None:
    invoice = create_final_invoice()
    other = load_sql("billing/ledger/invoice_transfers").replace("i.total,", "2 * i.total,")
    with (
        tenant_scope(invoice.tenant_id),
        patch.object(posting, "load_sql", load_sql_except("billing/ledger/invoice_transfers", other)),
        pytest.raises(posting.ConflictingTransfer, match=f"different transfers of {invoice.pk}:total"),
    ):
        posting.post_invoices([invoice.pk], now=NOW)
    assert transfers_of(invoice) == FINAL


def load_sql_except(name: str, text: str) -> Callable[[str], str]:
    """Return a loader that replaces one SQL statement."""
    return lambda wanted: text if wanted == name else load_sql(wanted)


def test_an_invoice_of_zero_is_not_posted() -> None:
    invoice = create_final_invoice(0)
    assert transfers_of(invoice) == []


def test_a_negative_amount_is_posted_in_the_opposite_direction() -> None:
    invoice = create_final_invoice()
    text = (
        "WITH given AS (SELECT %(tenant)s, 'EUR', now(), 'invoice', %(id)s, NULL::bigint, 'receivable', 'accrued', -5,"
        " %(id)s || ':x')"
    )
    with (
        tenant_scope(invoice.tenant_id),
        patch.object(posting, "load_sql", load_sql_except("mine", text)),
    ):
        values: Any = {
            "theirs": posting.TENANT_TYPES,
            "now": NOW,
            "tenant": invoice.tenant_id,
            "id": invoice.pk,
        }
        posting._run_ledger_sql("billing/ledger/post_transfers", "mine", values)
    assert transfers_of(invoice)[-1] == ("invoice", "accrued", "receivable", 5)


def test_many_invoices_are_posted_in_one_call() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    for month in ("08", "09", "10"):
        add_ended_lease(project, offering, utc(f"2026-{month}-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    with patch.object(posting, "post_invoices", return_value=0):
        for month in ("08", "09", "10"):
            close_month.close_period(tenant, f"2026-{month}", now=NOW)
    found = invoices_of(tenant)[:3]
    with tenant_scope(tenant.pk):
        assert posting.post_invoices([each.pk for each in found], now=NOW) == 6
    assert [transfers_of(each) for each in found] == [FINAL] * 3
    assert account_balances(tenant.pk) == {"receivable": 600, "accrued": 0}


def test_every_currency_has_its_own_accounts() -> None:
    euros, yen = create_final_invoice(), create_final_invoice(currency="JPY")
    for invoice in (euros, yen):
        process_payment(request_payment(invoice))
    with staff_scope():
        assert [(each.currency, each.debit, each.balanced) for each in ledger_balances.stored_trial_balance()] == [
            ("EUR", 200, True),
            ("JPY", 2, True),
        ]
        accounts = LedgerAccount.objects.filter(type=AccountType.REVENUE).values_list("currency", flat=True)
        assert sorted(accounts) == ["EUR", "JPY"]


def test_b42_an_invoice_becomes_final_only_together_with_its_transfers() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    dies = patch.object(posting, "_post_rows", side_effect=OSError("killed"))
    with dies, pytest.raises(OSError, match="killed"):
        close_month.close_period(tenant, "2026-10", now=NOW)
    assert [each.status for each in invoices_of(tenant)] in ([], ["draft"])
    with tenant_scope(tenant.pk):
        assert not LedgerTransfer.objects.exists()


def test_a_payment_succeeds_only_together_with_its_transfer() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    dies = patch.object(posting, "_post_rows", side_effect=OSError("killed"))
    with dies, pytest.raises(OSError, match="killed"):
        payment_collection.PAYMENTS.collect(payment.pk, payment.tenant_id, now=NOW)
    assert (reload_invoice(invoice).status, [each.status for each in payments_of(invoice)]) == (
        "finalized",
        ["pending"],
    )
    assert transfers_of(invoice) == FINAL


def test_tenants_cannot_see_platform_account_balances() -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(b.account_id) FROM billing_ledgeraccount a"
            " LEFT JOIN billing_accountbalance b ON b.account_id = a.id WHERE a.tenant_id IS NULL"
        )
        assert cursor.fetchone() == (1, 0)
