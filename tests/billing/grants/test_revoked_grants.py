"""Credit taken back by operators: the unused rest, once, with its ledger entry."""

import pytest

from billing.services.funds.grants import grant_balances
from billing.services.funds.grants.grant_revocation import NotRevocable, revoke_grant
from billing.services.funds.wallets import grant_withdrawals
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold
from tests.billing.credit_notes.issued_notes import create_november_invoice, create_october_invoice_of
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import NOW

pytestmark = pytest.mark.django_db


def test_unused_rest_is_taken_back_and_pays_nothing_more() -> None:
    october = create_october_invoice_of(200)
    with tenant_scope(october.tenant_id):
        tenant = october.tenant
    grant = create_grant(tenant, 500)
    november = create_november_invoice(october, 100)
    assert november.settled == 100
    for _ in range(2):
        grant_withdrawals.take_back_grant(grant, why="trial is over", actor=OPERATOR, now=NOW)
    with tenant_scope(tenant.pk):
        (balance,) = grant_balances.grant_balances([type(grant).objects.get()], now=NOW)
    assert (balance.state, balance.left, balance.paid, balance.lapsed) == ("revoked", 0, 100, 400)
    assert account_sums() == {"receivable": 200, "promotion": 100, "revenue": 300}
    assert_books_hold()
    with staff_scope():
        event = AuditEvent.objects.get(action="grant.revoke")
    assert (event.detail["amount"], event.detail["reason"], event.actor_label) == (400, "trial is over", OPERATOR.label)


def test_credit_that_leases_hold_is_not_taken_back() -> None:
    with tenant_scope((october := create_october_invoice_of(200)).tenant_id):
        grant = create_grant(october.tenant, 500)
    with pytest.raises(NotRevocable, match=r"hold €1\.00"):
        revoke_grant(grant, available=400, why="x", actor=OPERATOR, now=NOW)
    with pytest.raises(InvalidValue):
        revoke_grant(grant, available=None, why=" ", actor=OPERATOR, now=NOW)
