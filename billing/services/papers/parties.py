"""Who charges, and who is charged, as papers name them: as they were when the invoice became final, or as they are."""

from billing.domain import papers
from billing.domain.parties import Party
from billing.models import Invoice
from billing.services.tax import standings

HOUSE = "gpubroker"


def supplier(invoice: Invoice) -> papers.Party:
    """Return who charges; where the settings named nobody, the house."""
    if invoice.finalized_at is None:
        told = standings.supplier()
    else:
        told = Party(**invoice.supplier) if invoice.supplier else None
    return _on_paper(told) if told else papers.Party(HOUSE)


def customer(invoice: Invoice) -> papers.Party:
    """Return who is charged, and its id, which stays whatever it is called."""
    if invoice.finalized_at is None:
        told = standings.customer(invoice.tenant)
    else:  # of an invoice from before parties were written down the name is the present one
        told = Party(**invoice.customer) if invoice.customer else Party(invoice.tenant.name)
    return _on_paper(told, invoice.tenant_id)


def _on_paper(party: Party, *more: str) -> papers.Party:
    vat = [f"VAT {party.vat_id}"] if party.vat_id else []
    email = [party.email] if party.email else []
    return papers.Party(party.name, (*party.address, *vat, *email, *more))
