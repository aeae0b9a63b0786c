"""What stands in the books, as tests read and disturb it."""

from billing.models import AccountBalance, Invoice, LedgerTransfer
from tenants.services.walls import as_staff, as_tenant

Row = tuple[str, str, str, int]  # kind, what is debited, what is credited, minor units


def booked(invoice: Invoice) -> list[Row]:
    """Return the transfers of an invoice, first to last."""
    columns = "kind", "debit_account__type", "credit_account__type", "minor"
    with as_tenant(invoice.tenant_id):
        return list(LedgerTransfer.objects.filter(ref=invoice.pk).order_by("id").values_list(*columns))


def transfers(invoice: Invoice) -> list[LedgerTransfer]:
    with as_tenant(invoice.tenant_id):
        return list(LedgerTransfer.objects.filter(ref=invoice.pk).order_by("id"))


def on_accounts(tenant_id: str | None = None) -> dict[str, int]:
    """Return what is on the accounts of a tenant, or on the platform's."""
    with as_staff():
        found = AccountBalance.objects.filter(account__tenant_id=tenant_id)
        return dict(found.values_list("account__type", "minor"))
