"""Terms of discounts, validated before anything is written."""

import re
from dataclasses import dataclass
from typing import Any

from billing.domain.discounts import FULL_BP
from billing.domain.money import EXPONENTS, MAX_MINOR, InvalidAmount, format_fixed_point, parse_amount
from billing.models.discounts import MAX_NAME_LENGTH
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering
from tenants.services.errors import InvalidValue

PERCENT_FORMAT = re.compile(r"(?P<whole>[0-9]{1,3})(?:\.(?P<parts>[0-9]{1,2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DiscountTerms:
    """A percentage (in hundredths of a per cent) or an amount; empty scopes mean everything."""

    name: str
    percent_bp: int | None = None
    minor: int | None = None
    currency: str = ""
    offerings: tuple[str, ...] = ()
    price_classes: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the values as model fields, or raise InvalidValue."""
        name = self.name.strip()
        if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidValue(
                "name",
                f"The name must have at most {MAX_NAME_LENGTH} characters. It is shown on invoices.",
                fix="Enter a name such as Autumn 2026.",
            )
        self._check_size()
        self._check_scope()
        return {
            "name": name,
            "percent_bp": self.percent_bp,
            "minor": self.minor,
            "currency": self.currency if self.minor is not None else "",
            "offerings": sorted(set(self.offerings)),
            "price_classes": sorted(set(self.price_classes)),
        }

    def _check_size(self) -> None:
        if (self.percent_bp is None) == (self.minor is None):
            raise InvalidValue("percent", "Enter either a percentage or an amount.", fix="Enter one of them.")
        if self.percent_bp is not None and not 0 < self.percent_bp <= FULL_BP:
            raise InvalidValue("percent", "The percentage must be above 0 and at most 100.", fix="Enter another value.")
        if self.minor is not None and not 0 < self.minor <= MAX_MINOR:
            raise InvalidValue(
                "amount", "The amount must be above 0 and below the maximum.", fix="Enter another value."
            )
        if self.minor is not None and self.currency not in EXPONENTS:
            raise InvalidValue(
                "currency", f"{self.currency!a} is not a supported currency.", fix="Send a code such as EUR."
            )

    def _check_scope(self) -> None:
        known = dict(Offering.objects.filter(pk__in=self.offerings).values_list("pk", "price_class"))
        if error := set(self.offerings) - set(known):
            raise InvalidValue(
                "offerings", f"Offering {min(error)!a} was not found.", fix="Select published offerings."
            )
        if error := set(self.price_classes) - set(PriceClass):
            raise InvalidValue(
                "price_classes", f"Price class {min(error)!a} does not exist.", fix=f"Known: {', '.join(PriceClass)}."
            )
        if known and self.price_classes and not set(known.values()) & set(self.price_classes):
            raise InvalidValue(
                "price_classes",
                "None of these offerings has this price class, so the discount would have no effect.",
                fix="Select other offerings, or leave one of the two fields empty.",
            )


def parse_percent_bp(text: str) -> int:
    """Parse a percentage such as `12.5` into hundredths of a per cent, or raise InvalidValue."""
    found = PERCENT_FORMAT.fullmatch(text.strip().removesuffix("%").strip())
    if found is None:
        raise InvalidValue(
            "percent", "The percentage is not a number such as 12.5 with at most two decimals.", fix="Enter it again."
        )
    return int(found["whole"]) * 100 + int((found["parts"] or "").ljust(2, "0"))


def parse_discount_amount(text: str, currency: str) -> int:
    """Parse an amount into minor units, or raise InvalidValue."""
    if currency not in EXPONENTS:
        raise InvalidValue("currency", f"{currency[:3]!a} is not a supported currency.", fix="Send a code such as EUR.")
    try:
        return parse_amount(text, currency)
    except InvalidAmount as error:
        such = format_fixed_point(100 * 10 ** EXPONENTS[currency], EXPONENTS[currency])
        raise InvalidValue("amount", str(error), fix=f"Enter an amount such as {such}.") from error
