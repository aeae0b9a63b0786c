"""Rules of FOCUS 1.2 as predicates, each named after the column and the sentence it checks.

Written from the specification, version 1.2 (focus.finops.org). A null is an empty cell.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

Row = dict[str, str]
RowRule = Callable[[Row], bool]
UTC_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
NUMBER = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")
NUMERIC = (
    "BilledCost", "CommitmentDiscountQuantity", "ConsumedQuantity", "ContractedCost", "ContractedUnitPrice",
    "EffectiveCost", "ListCost", "ListUnitPrice", "PricingQuantity",
)  # fmt: skip
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
NEVER_NULL = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency",
    "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeDescription", "ChargeFrequency",
    "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost",
    "PricingCurrency", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName", "ServiceSubcategory",
)  # fmt: skip
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "CommitmentDiscountCategory": {"", "Spend", "Usage"},
    "CommitmentDiscountStatus": {"", "Used", "Unused"},
    "CapacityReservationStatus": {"", "Used", "Unused"},
}
SUBCATEGORIES = {
    "Compute": {"Containers", "Serverless Compute", "Virtual Machines", "Other (Compute)"},
    "Storage": {"Block Storage", "Object Storage", "Other (Storage)"},
    "Other": {"Other (Other)"},
}
PRICED = ("ListUnitPrice", "ContractedUnitPrice", "PricingQuantity", "PricingCategory", "SkuId", "SkuPriceId")
SKU_PROPERTIES = {
    "CoreCount", "DiskMaxIops", "DiskSpace", "DiskType", "GpuCount", "InstanceType", "InstanceSeries", "MemorySize",
    "NetworkMaxIops", "NetworkMaxThroughput", "OperatingSystem", "Redundancy", "StorageClass",
}  # fmt: skip
LAST_DIGIT = Decimal("1e-9")  # quantities have twelve decimals, prices nine


def number(row: Row, name: str) -> Decimal:
    return Decimal(row[name] or 0)


def _both_or_none(name: str, of: str) -> RowRule:
    return lambda row: bool(row[name]) == bool(row[of])


def _product(price: str, cost: str) -> RowRule:
    def rule(row: Row) -> bool:
        if row["ChargeClass"] == "Correction" or not row[price] or not row["PricingQuantity"]:
            return True
        exact = number(row, price) * number(row, "PricingQuantity")
        return abs(exact - number(row, cost)) <= LAST_DIGIT * max(1, number(row, price))

    return rule


def _matches_billed(cost: str, price: str) -> RowRule:
    return lambda row: bool(row[price]) or number(row, cost) == number(row, "BilledCost")


def _time(row: Row, name: str) -> datetime:
    return datetime.fromisoformat(row[name])


def _is_priced(row: Row) -> bool:
    return row["ChargeCategory"] in ("Usage", "Purchase") and row["ChargeClass"] != "Correction"


def _flat_object(text: str) -> bool:
    found = json.loads(text)
    return isinstance(found, dict) and not any(isinstance(value, dict | list) for value in found.values())


ROW_RULES: dict[str, RowRule] = {
    **{f"{name} MUST NOT be null": lambda row, n=name: bool(row[n].strip()) for name in NEVER_NULL},  # type: ignore[misc]
    **{
        f"{name} MUST be one of the allowed values": lambda row, n=name, v=values: row[n] in v  # type: ignore[misc]
        for name, values in ALLOWED.items()
    },
    **{
        f"{name} MUST conform to NumericFormat": lambda row, n=name: not row[n] or bool(NUMBER.fullmatch(row[n]))  # type: ignore[misc]
        for name in NUMERIC
    },
    **{
        f"{name} MUST conform to DateTimeFormat": lambda row, n=name: bool(UTC_TIME.fullmatch(row[n]))  # type: ignore[misc]
        for name in TIMES
    },
    **{
        f"{name} MUST NOT be null when Usage or Purchase and not Correction": lambda row, n=name: (  # type: ignore[misc]
            not _is_priced(row) or bool(row[n])
        )
        for name in PRICED
    },
    **{
        f"{name} MUST be null when Tax": lambda row, n=name: row["ChargeCategory"] != "Tax" or not row[n]  # type: ignore[misc]
        for name in PRICED
    },
    "BillingCurrency MUST be an ISO 4217 code": lambda row: bool(re.fullmatch("[A-Z]{3}", row["BillingCurrency"])),
    "BillingPeriodEnd is the exclusive end": lambda row: (
        _time(row, "BillingPeriodEnd") > _time(row, "BillingPeriodStart")
    ),
    "ChargePeriodEnd is the exclusive end": lambda row: _time(row, "ChargePeriodEnd") > _time(row, "ChargePeriodStart"),
    "ChargeClass MUST be Correction for a previously invoiced period": lambda row: (
        row["ChargeClass"] == "Correction" or _time(row, "ChargePeriodStart") >= _time(row, "BillingPeriodStart")
    ),
    "ChargeFrequency MUST NOT be Usage-Based when Purchase": lambda row: (
        row["ChargeCategory"] != "Purchase" or row["ChargeFrequency"] != "Usage-Based"
    ),
    "EffectiveCost MUST be 0 for a purchase of future charges": lambda row: (
        row["ChargeCategory"] != "Purchase" or not row["CommitmentDiscountId"] or number(row, "EffectiveCost") == 0
    ),
    "EffectiveCost MUST match BilledCost when Credit or Adjustment": lambda row: (
        row["ChargeCategory"] not in ("Credit", "Adjustment")
        or number(row, "EffectiveCost") == number(row, "BilledCost")
    ),
    "ListCost MUST match BilledCost without ListUnitPrice": _matches_billed("ListCost", "ListUnitPrice"),
    "ContractedCost MUST match BilledCost without its price": _matches_billed("ContractedCost", "ContractedUnitPrice"),
    "ListUnitPrice times PricingQuantity MUST match ListCost": _product("ListUnitPrice", "ListCost"),
    "ContractedUnitPrice times PricingQuantity MUST match": _product("ContractedUnitPrice", "ContractedCost"),
    "ListUnitPrice MUST be non-negative": lambda row: number(row, "ListUnitPrice") >= 0,
    "ContractedUnitPrice MUST be non-negative": lambda row: number(row, "ContractedUnitPrice") >= 0,
    "PricingUnit MUST be null exactly when PricingQuantity is": _both_or_none("PricingUnit", "PricingQuantity"),
    "PricingCategory MUST be Committed under a commitment": lambda row: (
        row["ChargeCategory"] == "Purchase"
        or bool(row["CommitmentDiscountId"]) == (row["PricingCategory"] == "Committed")
    ),
    "ConsumedQuantity MUST be null unless Usage and not Unused": lambda row: (
        not row["ConsumedQuantity"]
        or (row["ChargeCategory"] == "Usage" and row["CommitmentDiscountStatus"] != "Unused")
    ),
    "ConsumedQuantity MUST NOT be null for usage": lambda row: (
        row["ChargeCategory"] != "Usage"
        or row["CommitmentDiscountStatus"] == "Unused"
        or row["ChargeClass"] == "Correction"
        or bool(row["ConsumedQuantity"])
    ),
    "ConsumedUnit MUST be null exactly when ConsumedQuantity is": _both_or_none("ConsumedUnit", "ConsumedQuantity"),
    "CommitmentDiscountCategory MUST be there with the id": _both_or_none(
        "CommitmentDiscountCategory", "CommitmentDiscountId"
    ),
    "CommitmentDiscountName MUST be there with the id": _both_or_none("CommitmentDiscountName", "CommitmentDiscountId"),
    "CommitmentDiscountType MUST be there with the id": _both_or_none("CommitmentDiscountType", "CommitmentDiscountId"),
    "CommitmentDiscountStatus MUST be there for usage only": lambda row: (
        bool(row["CommitmentDiscountStatus"])
        == (bool(row["CommitmentDiscountId"]) and row["ChargeCategory"] == "Usage")
    ),
    "CommitmentDiscountQuantity MUST be there for usage and purchases": _both_or_none(
        "CommitmentDiscountQuantity", "CommitmentDiscountId"
    ),
    "CommitmentDiscountUnit MUST be there with the quantity": _both_or_none(
        "CommitmentDiscountUnit", "CommitmentDiscountQuantity"
    ),
    "CapacityReservationStatus MUST be there with the id": _both_or_none(
        "CapacityReservationStatus", "CapacityReservationId"
    ),
    "RegionName MUST be there with RegionId": _both_or_none("RegionName", "RegionId"),
    "ResourceType MUST be there with ResourceId": _both_or_none("ResourceType", "ResourceId"),
    "ResourceName MUST be null when ResourceId is": lambda row: bool(row["ResourceId"]) or not row["ResourceName"],
    "ServiceSubcategory MUST have one parent": lambda row: (
        row["ServiceSubcategory"] in SUBCATEGORIES.get(row["ServiceCategory"], set())
    ),
    "SkuMeter MUST be null when SkuId is": lambda row: bool(row["SkuId"]) or not row["SkuMeter"],
    "SkuPriceDetails MUST be null when SkuPriceId is": lambda row: (
        bool(row["SkuPriceId"]) or not row["SkuPriceDetails"]
    ),
    "SkuPriceDetails keys MUST be of FOCUS or begin with x_": lambda row: all(
        key in SKU_PROPERTIES or key.startswith("x_") for key in json.loads(row["SkuPriceDetails"] or "{}")
    ),
    "SkuPriceDetails MUST conform to KeyValueFormat": lambda row: _flat_object(row["SkuPriceDetails"] or "{}"),
    "Tags MUST conform to KeyValueFormat": lambda row: _flat_object(row["Tags"] or "{}"),
    "SubAccountName MUST be there with SubAccountId": _both_or_none("SubAccountName", "SubAccountId"),
    "SubAccountType MUST be there with SubAccountId": _both_or_none("SubAccountType", "SubAccountId"),
}


def broken_rules(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rules that rows break, each with those rows."""
    found = {name: [row for row in rows if not rule(row)] for name, rule in ROW_RULES.items()}
    for name, bad in (
        ("SkuPriceId MUST have one parent SkuId", _several_parents(rows, "SkuPriceId", "SkuId")),
        ("ServiceName MUST have one ServiceCategory", _several_parents(rows, "ServiceName", "ServiceCategory")),
        ("CommitmentDiscountUnit MUST remain consistent", _several_units(rows)),
        ("EffectiveCost of usage MUST equal BilledCost of purchases", _unamortized(rows)),
    ):
        found[name] = bad
    return {name: bad for name, bad in found.items() if bad}


def _several_parents(rows: list[Row], name: str, parent: str) -> list[Row]:
    parents: dict[str, set[str]] = {}
    for row in rows:
        if row[name] and row[parent]:
            parents.setdefault(row[name], set()).add(row[parent])
    return [row for row in rows if len(parents.get(row[name], ())) > 1]


def _several_units(rows: list[Row]) -> list[Row]:
    committed = [row for row in rows if row["CommitmentDiscountId"]]
    return _several_parents(committed, "CommitmentDiscountId", "CommitmentDiscountUnit")


def _unamortized(rows: list[Row]) -> list[Row]:
    """Return the rows of commitments whose purchase and usage differ in cost."""
    bad = []
    for commitment in {row["CommitmentDiscountId"] for row in rows} - {""}:
        own = [row for row in rows if row["CommitmentDiscountId"] == commitment]
        bought = sum(number(row, "BilledCost") for row in own if row["ChargeCategory"] == "Purchase")
        used = sum(number(row, "EffectiveCost") for row in own if row["ChargeCategory"] == "Usage")
        bad += own if bought != used else []
    return bad
