"""Ledger transfers and balances of tests."""

from billing.domain.ledger import AccountType
from billing.models import AccountBalance, Invoice, LedgerTransfer
from tenants.services.rls import staff_scope, tenant_scope

# Held or drawn money must exist: these never go below their floor, initially zero.
FLOORED_TYPES = frozenset({AccountType.WALLET_PAID, AccountType.WALLET_PROMO})
Row = tuple[str, str, str, int]  # kind, what is debited, what is credited, minor units


def transfers_of(invoice: Invoice) -> list[Row]:
    """Return the transfers of an invoice, first to last."""
    columns = "kind", "debit_account__type", "credit_account__type", "minor"
    with tenant_scope(invoice.tenant_id):
        return list(LedgerTransfer.objects.filter(ref=invoice.pk).order_by("id").values_list(*columns))


def transfers(invoice: Invoice) -> list[LedgerTransfer]:
    with tenant_scope(invoice.tenant_id):
        return list(LedgerTransfer.objects.filter(ref=invoice.pk).order_by("id"))


def account_balances(tenant_id: str | None = None) -> dict[str, int]:
    """Return the account balances of a tenant, or of the platform."""
    with staff_scope():
        found = AccountBalance.objects.filter(account__tenant_id=tenant_id)
        return dict(found.values_list("account__type", "minor"))
