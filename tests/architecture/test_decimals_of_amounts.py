"""Amounts of the API have six decimals; prices per hour nine, and only what is named exact has more."""

import re

from tests.architecture.test_house_rules import ROOT
from web.api import amounts
from web.http.openapi import openapi_document

ALLOWED = {"exact", "month"}  # of an invoice line and a charge: what rounds to the amount


def test_amounts_and_totals_have_six_decimals() -> None:
    assert amounts.money_out(1234, "EUR")["amount"] == "12.340000"
    assert amounts.money_out(1234, "JPY")["amount"] == "1234.000000"
    assert amounts.running_total_out(0, "EUR")["amount"] == "0.000000"


def test_only_exact_amounts_have_twelve_decimals() -> None:
    found = set()
    for file in (ROOT / "web/api").rglob("*.py"):
        for match in re.finditer(r"(\w+) = ExactAmountField\(|\"(\w+)\": exact_amount_out\(", file.read_text()):
            found.add(match[1] or match[2])
    assert found == ALLOWED


def test_no_percentage_is_named_like_a_moment() -> None:
    text = openapi_document().decode()
    assert not re.findall(r'"(stop_\w+_at|\w*percent_at)"', text)
