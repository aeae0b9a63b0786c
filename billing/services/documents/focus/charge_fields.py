"""Columns of FOCUS 1.2, and the fields of each kind of row."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from billing.domain.money import exponent_of, format_fixed_point, half_up
from billing.models import Commitment, Invoice, InvoiceAdjustment, InvoiceLine, RatedCharge
from billing.models.charges import GIB_SECONDS, ChargeKind
from billing.services.documents.charge_exports import RequestedResource
from billing.services.documents.focus.charge_costs import BILLED_DECIMALS, CostPiece, Cover
from broker.domain.geometry.cpu_blocks import VCPUS_PER_UNIT
from broker.models import Offering
from broker.services.inventory.gpu_catalogue import profile_of

COLUMNS = (
    "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType",
    "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId",
    "CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountQuantity", "CommitmentDiscountStatus", "CommitmentDiscountType",
    "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice",
    "EffectiveCost", "InvoiceId", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory",
    "PricingCurrency", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName",
    "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId",
    "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags",
)  # fmt: skip
Fields = dict[str, str]
HOUR = 3600
NANO_PLACES = 9
DYNAMIC_CLASS = "spot"
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
COMPUTE = {"ServiceCategory": "Compute", "ServiceSubcategory": "Other (Compute)"}
STORAGE = {"ServiceCategory": "Storage", "ServiceSubcategory": "Block Storage", "ServiceName": "Volumes"}
ACCOUNT = {"ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)", "ServiceName": "Account"}


def focus_row(*fields: Mapping[str, str]) -> tuple[str, ...]:
    """Return the row with these fields, the later ones first; a missing one is null."""
    values = {name: value for each in fields for name, value in each.items()}
    return tuple(values.get(name, "") for name in COLUMNS)


def invoice_fields(invoice: Invoice, issuer: str) -> Fields:
    """Return the fields that all rows of an invoice share."""
    return {
        "BillingAccountId": invoice.tenant_id,
        "BillingAccountName": invoice.tenant.name,
        "BillingAccountType": "Tenant",
        "BillingCurrency": invoice.currency,
        **period_fields("BillingPeriod", invoice.period.span.lower, invoice.period.span.upper),
        "InvoiceId": str(invoice) if invoice.number else "",
        "InvoiceIssuerName": issuer,
        "PricingCurrency": invoice.currency,
        "ProviderName": issuer,
        "PublisherName": issuer,
    }


def project_fields(project_id: str, names: Mapping[str, str]) -> Fields:
    """Return the project as sub-account; none for rows of the whole tenant."""
    if not project_id:
        return {}
    return {
        "SubAccountId": project_id,
        "SubAccountName": names.get(project_id, project_id),
        "SubAccountType": "Project",
    }


def charge_fields(charge: RatedCharge, piece: CostPiece, offering: Offering, listed: int) -> Fields:
    """Return what and how much was used, its price and its cost."""
    nano = int(charge.exact_num) // charge.unit_seconds
    cost = format_pico(piece.pico)
    return {
        "BilledCost": cost if piece.cover is None or piece.cover.late else format_pico(0),
        "EffectiveCost": cost,
        "ListCost": format_exact(piece.unit_seconds * listed),
        "ListUnitPrice": format_fixed_point(listed, NANO_PLACES),
        "ContractedCost": format_exact(piece.unit_seconds * nano),
        "ContractedUnitPrice": format_fixed_point(nano, NANO_PLACES),
        "PricingQuantity": format_hours(piece.unit_seconds),
        "PricingUnit": pricing_unit(offering),
        "PricingCategory": "Dynamic" if offering.price_class == DYNAMIC_CLASS else "Standard",
        **_consumption_fields(charge, piece.unit_seconds),
        "ChargeClass": "Correction" if charge.period_id != charge.billed_period_id else "",
        "ChargeFrequency": "Usage-Based",
        **period_fields("ChargePeriod", charge.s, charge.e),
        **service_fields(offering),
        **_sku_fields(offering, charge.meter, str(charge.price_version_id)),
        **(_cover_fields(piece.cover, offering) if piece.cover else {}),
    }


def resource_fields(lease_id: str, resource: RequestedResource, offering: Offering) -> Fields:
    """Return the lease or volume, and its tags."""
    return {
        "ChargeDescription": f"{describe_offering(offering)}: {resource.name}",
        "ResourceId": lease_id,
        "ResourceName": resource.name,
        "ResourceType": "Volume" if offering.is_storage else "Lease",
        "Tags": _json(resource.tags | {"gpubroker/requested_by": resource.by_label or resource.by}),
    }


def purchase_fields(invoice: Invoice, commitment: Commitment, seconds: int, *, pico: int) -> Fields:
    """Return the fields of a commitment's month, bought as a whole."""
    offering, price = commitment.offering, format_fixed_point(commitment.nano_per_hour, NANO_PLACES)
    cost = format_exact(seconds * commitment.nano_per_hour)
    return {
        "BilledCost": format_pico(pico),
        "EffectiveCost": format_pico(0),
        "ListCost": cost,
        "ListUnitPrice": price,
        "ContractedCost": cost,
        "ContractedUnitPrice": price,
        "PricingQuantity": format_hours(seconds),
        "PricingUnit": pricing_unit(offering),
        "PricingCategory": "Standard",
        "ChargeCategory": "Purchase",
        "ChargeDescription": f"Commitment to {commitment.units} × {offering.label}",
        "ChargeFrequency": "Recurring",
        **period_fields("ChargePeriod", invoice.period.span.lower, invoice.period.span.upper),
        **service_fields(offering),
        **_sku_fields(offering, "slice_seconds", commitment.pk),
        **commitment_fields(commitment, offering, seconds),
    }


def unused_fields(invoice: Invoice, commitment: Commitment, seconds: int, *, pico: int) -> Fields:
    """Return the fields of what a commitment was not used for in a month."""
    cost = format_exact(seconds * commitment.nano_per_hour)
    return purchase_fields(invoice, commitment, seconds, pico=0) | {
        "EffectiveCost": format_pico(pico),
        "ListCost": cost,
        "ContractedCost": cost,
        "PricingCategory": "Committed",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"Unused commitment to {commitment.units} × {commitment.offering.label}",
        "ChargeFrequency": "Usage-Based",
        "CommitmentDiscountStatus": "Unused",
    }


def added_fields(invoice: Invoice, charge: InvoiceAdjustment, *, pico: int) -> Fields:
    """Return the fields of an amount for the month without usage, such as a minimum."""
    return {
        **dict.fromkeys(COSTS, format_pico(pico)),
        "ChargeCategory": "Adjustment",
        "ChargeDescription": charge.label,
        "ChargeFrequency": "Recurring",
        **period_fields("ChargePeriod", invoice.period.span.lower, invoice.period.span.upper),
        **ACCOUNT,
    }


def tax_fields(invoice: Invoice, line: InvoiceLine, offering: Offering | None, *, minor: int) -> Fields:
    """Return the fields of the tax on a line, for the whole month."""
    return {
        **dict.fromkeys(COSTS, format_pico(minor_to_pico(minor, invoice.currency))),
        "ChargeCategory": "Tax",
        "ChargeDescription": f"VAT on line {line.n}, {offering.label if offering else line.get_kind_display()}",
        "ChargeFrequency": "Recurring",
        **period_fields("ChargePeriod", invoice.period.span.lower, invoice.period.span.upper),
        **service_fields(offering),
    }


def service_fields(offering: Offering | None) -> Fields:
    """Return service and region; without an offering it is the account itself."""
    if offering is None:
        return ACCOUNT
    where = {"RegionId": offering.region, "RegionName": offering.region}
    if offering.is_storage:
        return where | STORAGE
    name = "CPU" if offering.is_cpu_only else f"{offering.gpu_model_id}, {offering.isolation}"
    return {"ServiceName": name, **where, **COMPUTE}


def commitment_fields(commitment: Commitment, offering: Offering, seconds: int) -> Fields:
    """Return which commitment it is, and how much of it."""
    return {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": commitment.pk,
        "CommitmentDiscountName": f"{commitment.units} × {offering.label}",
        "CommitmentDiscountQuantity": format_hours(seconds),
        "CommitmentDiscountType": "Commitment",
        "CommitmentDiscountUnit": pricing_unit(offering),
    }


def _cover_fields(cover: Cover, offering: Offering) -> Fields:
    return {
        "PricingCategory": "Committed",
        "CommitmentDiscountStatus": "Used",
        **commitment_fields(cover.commitment, offering, cover.unit_seconds),
    }


def _consumption_fields(charge: RatedCharge, unit_seconds: int) -> Fields:
    """Return the category and consumed quantity; credited seconds are not consumption."""
    if charge.kind == ChargeKind.ADJUST:
        return {"ChargeCategory": "Adjustment"}
    return {
        "ChargeCategory": "Usage",
        "ConsumedQuantity": str(unit_seconds),
        "ConsumedUnit": "GiB-Seconds" if charge.meter == GIB_SECONDS else "Seconds",
    }


def _sku_fields(offering: Offering, meter: str, price: str) -> Fields:
    return {
        "SkuId": offering.pk,
        "SkuMeter": meter,
        "SkuPriceId": price,
        "SkuPriceDetails": _json(_price_details(offering)),
    }


def _price_details(offering: Offering) -> dict[str, Any]:
    """Return what of an offering decides its price; names without x_ are FOCUS's own."""
    if offering.is_storage:
        return {"DiskSpace": 1}
    if offering.is_cpu_only:
        return {"InstanceType": offering.profile, "CoreCount": profile_of(offering).compute * VCPUS_PER_UNIT}
    return {
        "InstanceType": offering.profile,
        "InstanceSeries": offering.gpu_model_id,
        "x_Isolation": offering.isolation,
    }


def describe_offering(offering: Offering) -> str:
    """Return the offering's label with its price class."""
    terms = "" if offering.is_storage else f", {offering.price_class.replace('_', '-')}"
    return offering.label + terms


def pricing_unit(offering: Offering) -> str:
    """Return the unit that prices are for."""
    return "GiB-Hours" if offering.is_storage else "Hours"


def period_fields(name: str, start: datetime, end: datetime) -> Fields:
    """Return the start and end of a period column."""
    return {f"{name}Start": format_utc(start), f"{name}End": format_utc(end)}


def minor_to_pico(minor: int, currency: str) -> int:
    """Return minor units in 10⁻¹² of the currency unit."""
    pico: int = minor * 10 ** (BILLED_DECIMALS - exponent_of(currency))
    return pico


def format_pico(pico: int) -> str:
    """Write 10⁻¹² currency units as a decimal number."""
    return format_fixed_point(pico, BILLED_DECIMALS)


def format_exact(exact_num: int) -> str:
    """Write an amount over 3600·10⁹ with twelve decimals; the last one is rounded."""
    return format_pico(half_up(exact_num * 10 ** (BILLED_DECIMALS - NANO_PLACES), HOUR))


def format_hours(unit_seconds: int) -> str:
    """Write seconds as hours with twelve decimals; the last one is rounded."""
    return format_pico(half_up(unit_seconds * 10**BILLED_DECIMALS, HOUR))


def format_utc(at: datetime) -> str:
    """Write a time to the second, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, sort_keys=True, ensure_ascii=False)
