"""Who charges, and who is charged, as papers name them: as they were when the invoice became final, or as they are."""

from billing.domain import papers
from billing.domain.parties import Party
from billing.models import Invoice
from billing.services.tax import standings

HOUSE = "gpubroker"


def supplier(invoice: Invoice) -> papers.Party:
    """Return who charges; where the settings named nobody, the house."""
    if invoice.finalized_at is None:
        return supplier_now()
    return on_paper(Party(**invoice.supplier)) if invoice.supplier else papers.Party(HOUSE)


def supplier_now() -> papers.Party:
    """Return who charges at present, for papers that are of no invoice."""
    told = standings.supplier()
    return on_paper(told) if told else papers.Party(HOUSE)


def customer(invoice: Invoice) -> papers.Party:
    """Return who is charged; its id, which stays whatever it is called, stands at the foot of its papers."""
    if invoice.finalized_at is None:
        told = standings.customer(invoice.tenant)
    else:  # of an invoice from before parties were written down the name is the present one
        told = Party(**invoice.customer) if invoice.customer else Party(invoice.tenant.name)
    return on_paper(told)


def on_paper(party: Party) -> papers.Party:
    """Return a party as a paper shows it."""
    vat = [f"VAT {party.vat_id}"] if party.vat_id else []
    email = [party.email] if party.email else []
    return papers.Party(party.name, (*party.address, *vat, *email))
