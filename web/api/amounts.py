"""Format of amounts in the API: decimal strings with their currency."""

from operator import attrgetter
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.domain.money import (
    EXACT_PER_UNIT,
    EXPONENTS,
    InvalidAmount,
    decimal_string,
    format_fixed_point,
    parse_amount,
    to_minor,
)
from tenants.services.errors import InvalidValue

NANO_PLACES = 9
EXACT_PLACES = 12  # more decimals are of no use to readers
MONEY_PLACES = 6  # of running totals


@extend_schema_field({"type": "string", "pattern": r"^-?\d+\.\d{6}$"})
class SixDecimals(serializers.CharField):
    """Decimal of an amount."""


@extend_schema_field({"type": "string", "pattern": r"^-?\d+\.\d{9}$"})
class NineDecimals(serializers.CharField):
    """Decimal of a price per hour."""


@extend_schema_field({"type": "string", "pattern": r"^-?\d+\.\d{12}$"})
class TwelveDecimals(serializers.CharField):
    """Decimal of an amount that is not rounded."""


class MoneyOut(serializers.Serializer[Any]):
    """An amount of a currency: `{"amount": "12.340000", "currency": "EUR"}`."""

    amount = SixDecimals()
    currency = serializers.CharField()


class PriceOut(serializers.Serializer[Any]):
    """A price, which is finer than an amount: `{"amount": "1.340000000", "currency": "EUR"}`."""

    amount = NineDecimals()
    currency = serializers.CharField()


class ExactAmountOut(serializers.Serializer[Any]):
    """An amount before it is rounded: `{"amount": "1.340000000000", "currency": "EUR"}`."""

    amount = TwelveDecimals()
    currency = serializers.CharField()


def money_out(minor: int, currency: str) -> dict[str, str]:
    """Format minor units."""
    return {"amount": decimal_string(minor, currency), "currency": currency}


def running_total_out(exact_num: int, currency: str) -> dict[str, str]:
    """Format a running total with six decimals.

    That is finer than a cent, so that it changes every second; no invoice rounds so.
    """
    return {"amount": format_fixed_point(to_minor(exact_num, MONEY_PLACES), MONEY_PLACES), "currency": currency}


def hourly_price_out(nano_per_hour: int, currency: str) -> dict[str, str]:
    """Format a price per hour with all its nine decimals."""
    return {"amount": format_fixed_point(nano_per_hour, NANO_PLACES), "currency": currency}


def exact_amount_out(exact_num: int, currency: str) -> dict[str, str]:
    """Format an unrounded amount, truncated after twelve decimals."""
    return {
        "amount": format_fixed_point(exact_num * 10**EXACT_PLACES // EXACT_PER_UNIT, EXACT_PLACES),
        "currency": currency,
    }


def require_amount(field: str, text: str, currency: str, *, example: str = "12.50") -> int:
    """Parse an amount of a request body, or raise InvalidValue, which names the field."""
    if currency not in EXPONENTS:
        raise InvalidValue("currency", f"{currency[:8]!a} is not a supported currency.", fix="Use EUR, for example.")
    try:
        return parse_amount(text, currency)
    except InvalidAmount as error:
        raise InvalidValue(field, str(error), fix=f"Send an amount such as {example}.") from error


@extend_schema_field(MoneyOut)
class AmountField(serializers.Field[Any, Any, Any, Any]):
    """Amount of a row, in minor units of its currency.

    `number` and `of` are dotted attributes: the integer, and the row with the currency if it is another one.
    """

    def __init__(self, number: str = "minor", *, of: str = "", **options: Any) -> None:
        super().__init__(source="*", read_only=True, **options)
        self.number_of = attrgetter(number)
        self.currency_of = attrgetter(f"{of}.currency" if of else "currency")

    def to_representation(self, row: Any) -> dict[str, str] | None:
        number = self.number_of(row)
        return None if number is None else self.format(int(number), self.currency_of(row))

    def format(self, number: int, currency: str) -> dict[str, str]:
        return money_out(number, currency)


@extend_schema_field(ExactAmountOut)
class ExactAmountField(AmountField):
    """Unrounded amount of a row."""

    def format(self, number: int, currency: str) -> dict[str, str]:
        return exact_amount_out(number, currency)


class RunningTotalField(AmountField):
    """Running total of a row."""

    def format(self, number: int, currency: str) -> dict[str, str]:
        return running_total_out(number, currency)


@extend_schema_field(PriceOut)
class HourlyPriceField(AmountField):
    """Price per hour of a row."""

    def __init__(self, number: str = "nano_per_hour", **options: Any) -> None:
        super().__init__(number, **options)

    def format(self, number: int, currency: str) -> dict[str, str]:
        return hourly_price_out(number, currency)
