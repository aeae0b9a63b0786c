"""Amounts of the API have six decimals; prices per hour nine, and only what is named exact has more."""

import json
import re

from tests.architecture.test_house_rules import ROOT
from web.api import amounts
from web.http.openapi import openapi_document

ALLOWED = {"exact", "adjustment"}  # of an invoice line and a charge: what rounds to the amount


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


def test_every_amount_has_the_decimals_of_its_kind() -> None:
    """The description states them as a pattern, which every response is compared with."""
    schemas = json.loads(openapi_document())["components"]["schemas"]
    prices = {"price_per_hour", "total_price_per_hour", "package_price"}
    for schema, described in schemas.items():
        for name, each in described.get("properties", {}).items():
            if used := re.search(r"schemas/(MoneyOut|PriceOut|ExactAmountOut)\"", json.dumps(each)):
                kind = "PriceOut" if name in prices else "ExactAmountOut" if name in ALLOWED else "MoneyOut"
                assert used[1] == kind, (schema, name)
    decimals = {name: schemas[name]["properties"]["amount"]["pattern"] for name in ("MoneyOut", "PriceOut")}
    assert decimals == {"MoneyOut": r"^-?\d+\.\d{6}$", "PriceOut": r"^-?\d+\.\d{9}$"}
