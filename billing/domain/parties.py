"""The two parties of an invoice: who supplies and who pays, with their addresses and VAT numbers."""

import string
from dataclasses import asdict, dataclass

from stdnum import get_cc_module
from stdnum.eu import vat as of_the_union
from stdnum.exceptions import ValidationError

from billing.domain.countries import NAMES
from billing.domain.tax import UNION

LONGEST_NUMBER = 20
WRITTEN = frozenset(string.ascii_uppercase + string.digits)


class NotAVatNumber(ValueError):
    """What was typed cannot be a VAT number of that country. Whether it is given to anybody, nobody asked."""


@dataclass(frozen=True, slots=True)
class Party:
    """Who stands on an invoice; texts, empty where there is nothing to say."""

    name: str
    street: str = ""
    extra: str = ""
    postcode: str = ""
    city: str = ""
    country: str = ""  # ISO 3166
    vat_id: str = ""
    email: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    @property
    def address(self) -> list[str]:
        """Return its lines as an envelope has them."""
        city = " ".join(part for part in (self.postcode, self.city) if part)
        lines = (self.street, self.extra, city, NAMES.get(self.country, self.country))
        return [line for line in lines if line]


def vat_number(text: str, country: str) -> str:
    """Return a VAT number as it is kept, without blanks and in capitals, or raise NotAVatNumber.

    Its form and check digits are those of the country; in the European Union it begins with the country's prefix.
    """
    name = NAMES.get(country, country)
    compact = text.upper().translate(str.maketrans("", "", " .-/\u00a0"))
    if not 4 <= len(compact) <= LONGEST_NUMBER or not WRITTEN.issuperset(compact):
        raise NotAVatNumber("A VAT number has 4 to 20 letters and digits.")
    if country in UNION:
        prefix = "EL" if country == "GR" else country
        if not compact.startswith(prefix):
            raise NotAVatNumber(f"A VAT number of {name} begins with {prefix}.")
        if not of_the_union.is_valid(compact):
            raise NotAVatNumber(
                f"{compact} is no VAT number of {name}: its length or its check digits are wrong."
            )
        return compact
    rules = get_cc_module(country.lower(), "vat")
    try:
        return compact if rules is None else _prefixed(compact, country, str(rules.validate(compact)))
    except ValidationError:
        raise NotAVatNumber(
            f"{compact} is no tax number of {name}: its form or its check digits are wrong."
        ) from None


def _prefixed(compact: str, country: str, bare: str) -> str:
    """Keep the country in front where whoever typed it did."""
    return compact if compact.startswith(country) else bare
