"""What a discount is of, judged before anything is written."""

import re
from dataclasses import dataclass
from typing import Any

from billing.domain.discounting import WHOLE
from billing.domain.money import EXPONENTS, HIGHEST, NotAnAmount, fixed_point, minor_of
from billing.models.discounts import LONGEST_NAME
from broker.domain.states import PriceClass
from broker.models import Offering
from tenants.services.refusals import Invalid

PERCENT = re.compile(r"(?P<whole>[0-9]{1,3})(?:\.(?P<parts>[0-9]{1,2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """Either hundredths of a per cent or an amount of a currency; empty scopes are everything."""

    name: str
    percent_bp: int | None = None
    minor: int | None = None
    currency: str = ""
    offerings: tuple[str, ...] = ()
    price_classes: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return them as rows have them, or raise Invalid for what cannot be meant."""
        name = self.name.strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise Invalid(
                "name",
                f"It has a name of at most {LONGEST_NAME} letters: invoices say it.",
                fix="Type one, such as Autumn 2026.",
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
            raise Invalid(
                "percent", "It is either a part of the price or an amount.", fix="Give one of them."
            )
        if self.percent_bp is not None and not 0 < self.percent_bp <= WHOLE:
            raise Invalid(
                "percent", "It takes more than nothing off, and no more than 100 %.", fix="Give another."
            )
        if self.minor is not None and not 0 < self.minor <= HIGHEST:
            raise Invalid(
                "amount", "It takes more than nothing off, and no more than there is.", fix="Give another."
            )
        if self.minor is not None and self.currency not in EXPONENTS:
            raise Invalid(
                "currency", f"{self.currency!a} is no currency we know.", fix="Send a code such as EUR."
            )

    def _check_scope(self) -> None:
        known = dict(Offering.objects.filter(pk__in=self.offerings).values_list("pk", "price_class"))
        if odd := set(self.offerings) - set(known):
            raise Invalid(
                "offerings", f"There is no offering {min(odd)!a}.", fix="Choose those that are sold."
            )
        if odd := set(self.price_classes) - set(PriceClass):
            raise Invalid(
                "price_classes", f"There is no class {min(odd)!a}.", fix=f"Known: {', '.join(PriceClass)}."
            )
        if known and self.price_classes and not set(known.values()) & set(self.price_classes):
            raise Invalid(
                "price_classes",
                "None of these offerings is sold so: nothing would be cheaper.",
                fix="Choose other offerings, or leave one of both empty.",
            )


def percent_of(text: str) -> int:
    """Read a percentage as it is typed, such as `12.5`, in hundredths of a per cent, or raise Invalid."""
    found = PERCENT.fullmatch(text.strip().removesuffix("%").strip())
    if found is None:
        raise Invalid(
            "percent",
            "A percentage is a number such as 12.5, with at most two decimals.",
            fix="Type it anew.",
        )
    return int(found["whole"]) * 100 + int((found["parts"] or "").ljust(2, "0"))


def amount_of(text: str, currency: str) -> int:
    """Read an amount as it is typed, in minor units, or raise Invalid."""
    if currency not in EXPONENTS:
        raise Invalid("currency", f"{currency[:3]!a} is no currency we know.", fix="Send a code such as EUR.")
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        such = fixed_point(100 * 10 ** EXPONENTS[currency], EXPONENTS[currency])
        raise Invalid("amount", str(odd), fix=f"Type an amount such as {such}.") from odd
