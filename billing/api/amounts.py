"""Amounts on the wire: decimal strings beside their currency, never binary fractions."""

from typing import Any

from rest_framework import serializers

from billing.domain.money import EXACT_PER_UNIT, decimal_string, fixed_point, to_minor

NANO_PLACES = 9
EXACT_PLACES = 12  # of one exact unit no more can be told apart by eye
MONEY_PLACES = 6  # of every amount that is not exact


class MoneyOut(serializers.Serializer[Any]):
    """An amount of a currency: `{"amount": "12.340000", "currency": "EUR"}`."""

    amount = serializers.CharField()
    currency = serializers.CharField()


def money(minor: int, currency: str) -> dict[str, str]:
    """Write minor units."""
    return {"amount": decimal_string(minor, currency), "currency": currency}


def running(exact_num: int, currency: str) -> dict[str, str]:
    """Write what still grows: finer than a cent, so that it moves every second; no invoice rounds so."""
    return {
        "amount": fixed_point(to_minor(exact_num, MONEY_PLACES), MONEY_PLACES),
        "currency": currency,
    }


def hourly(nano_per_hour: int, currency: str) -> dict[str, str]:
    """Write a price of an hour, with all its nine decimals."""
    return {"amount": fixed_point(nano_per_hour, NANO_PLACES), "currency": currency}


def exact(exact_num: int, currency: str) -> dict[str, str]:
    """Write an amount that is not rounded yet; what never ends is cut after twelve decimals."""
    return {
        "amount": fixed_point(exact_num * 10**EXACT_PLACES // EXACT_PER_UNIT, EXACT_PLACES),
        "currency": currency,
    }
