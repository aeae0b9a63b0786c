"""The two parties of an invoice, supplier and customer, with addresses and VAT numbers."""

import string
from dataclasses import asdict, dataclass

from stdnum import bic as bic_rules
from stdnum import get_cc_module
from stdnum import iban as iban_rules
from stdnum.eu import vat as of_the_union
from stdnum.exceptions import ValidationError

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.tax import EU_MEMBERS

MAX_VAT_NUMBER_LENGTH = 20
VAT_NUMBER_CHARACTERS = frozenset(string.ascii_uppercase + string.digits)


class InvalidVatNumber(ValueError):
    """The text cannot be a VAT number of that country.

    Only its form is checked, not whether it is registered.
    """


@dataclass(frozen=True, slots=True)
class InvoiceParty:
    """A party of an invoice; fields are empty where unknown."""

    name: str
    street: str = ""
    address_line_2: str = ""
    postcode: str = ""
    city: str = ""
    country: str = ""  # ISO 3166
    vat_id: str = ""
    email: str = ""
    phone: str = ""  # of the supplier, on electronic invoices
    language: str = "en"  # of its documents

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    @property
    def address(self) -> list[str]:
        """Return the address lines as they are printed on an envelope."""
        city = " ".join(part for part in (self.postcode, self.city) if part)
        lines = (self.street, self.address_line_2, city, COUNTRY_NAMES.get(self.country, self.country))
        return [line for line in lines if line]


class InvalidBankAccount(ValueError):
    """The text is no IBAN or BIC: its form or its check digits are wrong."""


@dataclass(frozen=True, slots=True)
class BankAccount:
    """An account to which invoices are paid by transfer."""

    holder: str
    iban: str
    bic: str = ""
    bank: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    @property
    def iban_in_groups(self) -> str:
        """The IBAN in groups of four, as it is printed."""
        return " ".join(self.iban[at : at + 4] for at in range(0, len(self.iban), 4))


def parse_bank_account(*, holder: str, iban: str, bic: str, bank: str) -> BankAccount:
    """Return a bank account with its IBAN and BIC checked, or raise InvalidBankAccount."""
    try:
        number = iban_rules.validate(iban)
    except ValidationError:
        raise InvalidBankAccount(f"{iban!r} is not an IBAN: its form or its check digits are wrong.") from None
    try:
        code = bic_rules.validate(bic) if bic else ""
    except ValidationError:
        raise InvalidBankAccount(f"{bic!r} is not a BIC of 8 or 11 characters.") from None
    return BankAccount(holder=holder, iban=number, bic=code, bank=bank)


def normalize_vat_number(text: str, country: str) -> str:
    """Return a VAT number without blanks and in capitals, or raise InvalidVatNumber.

    Its form and check digits are those of the country; in the European Union it begins with the
    country's prefix.
    """
    name = COUNTRY_NAMES.get(country, country)
    compact = text.upper().translate(str.maketrans("", "", " .-/\u00a0"))
    if not 4 <= len(compact) <= MAX_VAT_NUMBER_LENGTH or not VAT_NUMBER_CHARACTERS.issuperset(compact):
        raise InvalidVatNumber("The VAT number must have 4 to 20 letters and digits.")
    if country in EU_MEMBERS:
        prefix = "EL" if country == "GR" else country
        if not compact.startswith(prefix):
            raise InvalidVatNumber(f"A VAT number of {name} begins with {prefix}.")
        if not of_the_union.is_valid(compact):
            raise InvalidVatNumber(
                f"{compact} is not a valid VAT number for {name}: its length or its check digits are wrong."
            )
        return compact
    rules = get_cc_module(country.lower(), "vat")
    try:
        return compact if rules is None else _keep_country_prefix(compact, country, str(rules.validate(compact)))
    except ValidationError:
        raise InvalidVatNumber(
            f"{compact} is not a valid tax number for {name}: its form or its check digits are wrong."
        ) from None


def _keep_country_prefix(compact: str, country: str, bare: str) -> str:
    """Keep the country prefix if it was typed."""
    return compact if compact.startswith(country) else bare
