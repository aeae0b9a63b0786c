"""Electronic invoices of EN 16931: tax category codes, unit codes and exact prices.

Prices have at most four decimals there, ours nine. A price is therefore stated for a base quantity of
so many hours that four decimals are enough, and quantities in whole seconds.
"""

from dataclasses import dataclass

from billing.domain.money import format_fixed_point, half_up
from billing.domain.tax import TAXED_TREATMENTS, TaxTreatment, format_rate_percent

SECONDS_PER_HOUR = 3600
NANO_PLACES = 9
PRICE_PLACES = 4
SECOND_UNIT, ONE_UNIT = "SEC", "C62"  # UN/ECE recommendation 20
INVOICE_CODE, CREDIT_NOTE_CODE = "380", "381"  # UNTDID 1001
CREDIT_TRANSFER_CODE, MUTUAL_CODE, CLEARING_CODE = "58", "ZZZ", "97"  # UNTDID 4461
EMAIL_SCHEME = "EM"
GUIDELINES = {
    "factur-x": "urn:cen.eu:en16931:2017",
    "xrechnung": "urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0",
}
BUSINESS_PROCESS = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0"


@dataclass(frozen=True, slots=True, order=True)
class TaxCode:
    """Tax category of EN 16931 with its rate, and why no tax is owed."""

    code: str
    rate: str
    reason: str = ""
    reason_code: str = ""


@dataclass(frozen=True, slots=True)
class BasePrice:
    """A price with four decimals for a quantity, both as text."""

    price: str
    quantity: str


UNTAXED_CODES = {
    TaxTreatment.REVERSE_CHARGE: TaxCode("AE", "0", "Reverse charge", "VATEX-EU-AE"),
    TaxTreatment.OUTSIDE: TaxCode("O", "", "Not subject to VAT", "VATEX-EU-O"),
}


def tax_code(treatment: TaxTreatment, category: str, rate_bp: int | None) -> TaxCode:
    """Return the code of a line's tax category, under the treatment of its invoice."""
    if treatment not in TAXED_TREATMENTS:
        return UNTAXED_CODES[treatment]
    if category == "exempt":
        return TaxCode("E", "0", "Exempt from VAT")
    if not rate_bp:
        return TaxCode("Z", "0")
    return TaxCode("S", format_rate_percent(rate_bp))


def base_price(nano_per_hour: int) -> BasePrice:
    """Return a price per hour for as many hours as make four decimals exact."""
    hours = 1
    while nano_per_hour * hours % 10 ** (NANO_PLACES - PRICE_PLACES):
        hours *= 10
    whole = nano_per_hour * hours // 10 ** (NANO_PLACES - PRICE_PLACES)
    return BasePrice(format_fixed_point(whole, PRICE_PLACES), str(SECONDS_PER_HOUR * hours))


def usage_minor(unit_seconds: int, nano_per_hour: int, exponent: int) -> int:
    """Return quantity times price, rounded to minor units."""
    return half_up(unit_seconds * nano_per_hour * 10**exponent, SECONDS_PER_HOUR * 10**NANO_PLACES)
