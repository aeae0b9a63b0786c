"""Value added tax: where it is owed, per category, and its split over lines.

Rates are basis points (1900 is 19 %), amounts minor units. A category is rounded once, half up; its
lines share exactly that by largest remainder, so lines, categories and the invoice always agree (EN
16931, BR-CO-14 and BR-CO-17).
"""

from dataclasses import dataclass
from enum import StrEnum

from billing.domain.money import half_up

FULL_BP = 10_000  # basis points
STANDARD = "standard"
_MEMBERS = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
EU_MEMBERS = frozenset(_MEMBERS.split())  # member states as of Directive 2006/112/EC


class TaxTreatment(StrEnum):
    NOT_CONFIGURED = ""  # no supplier is configured: invoices say nothing about tax
    DOMESTIC = "domestic"
    DESTINATION = "destination"  # a consumer in another member state: that country's rate, by the One Stop Shop
    REVERSE_CHARGE = "reverse_charge"
    OUTSIDE = "outside"


TAXED_TREATMENTS = (TaxTreatment.DOMESTIC, TaxTreatment.DESTINATION)
TREATMENT_TEXTS = {
    TaxTreatment.NOT_CONFIGURED: "",
    TaxTreatment.DOMESTIC: "",
    TaxTreatment.DESTINATION: "",
    TaxTreatment.REVERSE_CHARGE: "Reverse charge: the customer owes the VAT (Article 196 of Directive 2006/112/EC).",
    TaxTreatment.OUTSIDE: "Not subject to VAT here: the customer is established outside of where we owe it.",
}


@dataclass(frozen=True, slots=True)
class TaxStatus:
    """How a customer is taxed, and by which country's rates.

    The jurisdiction is empty where no tax is owed.
    """

    treatment: TaxTreatment
    jurisdiction: str = ""


def tax_status(supplier: str, customer: str, *, vat_id: str) -> TaxStatus:
    """Return how a customer is taxed, from both countries and its VAT number.

    Countries are ISO 3166, empty if unknown. A service is taxed where its customer is. A customer
    without a country is taxed as a domestic one, which is never too little.
    """
    if not supplier:
        return TaxStatus(TaxTreatment.NOT_CONFIGURED)
    if not customer or customer == supplier:
        return TaxStatus(TaxTreatment.DOMESTIC, supplier)
    if supplier in EU_MEMBERS and customer in EU_MEMBERS:
        if vat_id:
            return TaxStatus(TaxTreatment.REVERSE_CHARGE)
        return TaxStatus(TaxTreatment.DESTINATION, customer)
    return TaxStatus(TaxTreatment.OUTSIDE)


def format_rate_percent(rate_bp: int) -> str:
    """Write a rate for people and programs: 19, 7.7, 0.05."""
    whole, part = divmod(rate_bp, 100)
    return f"{whole}.{part:02}".rstrip("0").rstrip(".")


def credited_tax(tax: int, *, of: int, credited: int) -> int:
    """Return the tax credited once this much of a line's amount is credited.

    All of it when the whole line is credited.
    """
    return half_up(tax * credited, of) if of else 0
