"""Seller and buyer of electronic invoices, as business terms of EN 16931."""

from typing import Any

from billing.domain.e_invoices import EMAIL_SCHEME
from billing.domain.parties import InvoiceParty
from billing.domain.tax import TaxTreatment
from billing.models import Invoice
from tenants.services.errors import ProblemError

Terms = dict[str, Any]
XRECHNUNG = "xrechnung"


class EInvoiceImpossible(ProblemError):
    code, status, title = "e-invoice-impossible", 409, "There is no electronic invoice"


def invoice_parties(invoice: Invoice, profile: str) -> tuple[InvoiceParty, InvoiceParty]:
    """Return supplier and customer, or say which of their details are missing."""
    if not (invoice.supplier and invoice.customer and invoice.treatment):
        raise EInvoiceImpossible(
            "The invoice names no supplier and no tax.",
            fix="The operator of this installation states the supplier (GPUBROKER_SUPPLIER_…) before a month closes.",
        )
    supplier, customer = InvoiceParty(**invoice.supplier), InvoiceParty(**invoice.customer)
    wanted = ["country", *(["street", "postcode", "city", "email"] if profile == XRECHNUNG else [])]
    for who, party, fix in (
        (
            "supplier",
            supplier,
            "The operator of the installation sets it (GPUBROKER_SUPPLIER_…), for later months.",
        ),
        ("customer", customer, "Enter it in the billing details; it applies to months that close later."),
    ):
        if missing := [name for name in wanted if not getattr(party, name)]:
            raise EInvoiceImpossible(f"The {who} of this invoice has no {' and no '.join(missing)}.", fix=fix)
    if profile == XRECHNUNG and not supplier.phone:
        raise EInvoiceImpossible(
            "The supplier of this invoice has no phone number.",
            fix="The operator of this installation sets it (GPUBROKER_SUPPLIER_PHONE), for months that close later.",
        )
    return supplier, customer


def seller_terms(party: InvoiceParty, *, taxed_here: bool) -> Terms:
    """Return the seller; outside the VAT area its VAT number is only an identifier."""
    contact = {"name": party.name, "phone": party.phone, "email": party.email}
    numbers = {"vat_identifier": party.vat_id} if taxed_here else {"identifiers": {"": party.vat_id or party.name}}
    return {**_party(party), **numbers, "contacts": [contact] if party.email and party.phone else []}


def buyer_terms(party: InvoiceParty, invoice: Invoice) -> Terms:
    """Return the buyer, with the tenant as identifier."""
    taxed_here = invoice.treatment != TaxTreatment.OUTSIDE
    number = {"vat_identifier": party.vat_id} if party.vat_id and taxed_here else {}
    return {**_party(party), **number, "identifiers": {"": invoice.tenant_id}}


def _party(party: InvoiceParty) -> Terms:
    return {
        "name": party.name,
        "addr_l1": party.street,
        "addr_l2": party.address_line_2,
        "postcode": party.postcode,
        "city": party.city,
        "country_code": party.country,
        **({"einvoicing_addr": party.email, "einvoicing_addr_schemeid": EMAIL_SCHEME} if party.email else {}),
    }
