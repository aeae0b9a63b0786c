"""Value added tax: who owes it where, how much of a category, and how a category's tax falls on its lines.

Rates are basis points (1900 is 19 %), amounts minor units. A category is rounded once, half up; its lines share exactly
that by largest remainder, so that lines, categories and the invoice never disagree (EN 16931, BR-CO-14 and BR-CO-17).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from billing.domain.money import half_up

WHOLE = 10_000  # basis points
STANDARD = "standard"
_MEMBERS = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
UNION = frozenset(_MEMBERS.split())  # what is called a member state in Directive 2006/112/EC


class Treatment(StrEnum):
    UNSAID = ""  # nobody says who supplies: nothing is said about tax either
    DOMESTIC = "domestic"
    DESTINATION = (
        "destination"  # nobody's business in another member state: its own rate, by the One Stop Shop
    )
    REVERSE_CHARGE = "reverse_charge"
    OUTSIDE = "outside"


TAXED = (Treatment.DOMESTIC, Treatment.DESTINATION)
IN_WORDS = {
    Treatment.UNSAID: "",
    Treatment.DOMESTIC: "",
    Treatment.DESTINATION: "",
    Treatment.REVERSE_CHARGE: "Reverse charge: the customer owes the VAT (Article 196 of Directive 2006/112/EC).",
    Treatment.OUTSIDE: "Not subject to VAT here: the customer is established outside of where we owe it.",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a customer is taxed, and by which country's rates; none where nothing is owed."""

    treatment: Treatment
    jurisdiction: str = ""


def standing(supplier: str, customer: str, *, vat_id: str) -> Standing:
    """Judge by the countries (ISO 3166, or nothing where unknown) and by whether the customer has a VAT number.

    A service is taxed where its customer is; who does not say where that is, is taxed as at home, which is never
    too little.
    """
    if not supplier:
        return Standing(Treatment.UNSAID)
    if not customer or customer == supplier:
        return Standing(Treatment.DOMESTIC, supplier)
    if supplier in UNION and customer in UNION:
        if vat_id:
            return Standing(Treatment.REVERSE_CHARGE)
        return Standing(Treatment.DESTINATION, customer)
    return Standing(Treatment.OUTSIDE)


def tax_of(net: int, rate_bp: int) -> int:
    """Return the tax on all that was charged of a category, rounded once."""
    return half_up(net * rate_bp, WHOLE)


def per_cent(rate_bp: int) -> str:
    """Write a rate for people and for programs: 19, 7.7, 0.05."""
    whole, part = divmod(rate_bp, 100)
    return f"{whole}.{part:02}".rstrip("0").rstrip(".")


def shares(amounts: Iterable[int], rate_bp: int) -> list[int]:
    """Return each line's part of its category's tax: rounded down, and one more where most was cut off, first lines
    first, until they come to the tax of the category.
    """
    lines = list(amounts)
    cut = [minor * rate_bp % WHOLE for minor in lines]
    parts = [minor * rate_bp // WHOLE for minor in lines]
    missing = tax_of(sum(lines), rate_bp) - sum(parts)
    for at in sorted(range(len(lines)), key=lambda at: (-cut[at], at))[:missing]:
        parts[at] += 1
    return parts


def given_back(tax: int, *, of: int, credited: int) -> int:
    """Return how much of a line's tax is back when so much of its amount is; all of it when all of it is."""
    return half_up(tax * credited, of) if of else 0
