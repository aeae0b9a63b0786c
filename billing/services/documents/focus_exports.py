"""Invoice charges as FOCUS 1.2 rows (FinOps Open Cost and Usage Specification).

One row for each charge, and one for the tax on each line. BilledCost is what the invoice bills for it
and adds up to the invoice's total; ListCost and ContractedCost are quantity times price, without the
line's rounding. What grants and the balance settle is payment, not cost, and is not included. Columns
that do not apply stay empty.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from billing.domain.money import exponent_of, format_fixed_point, half_up
from billing.models import Invoice, InvoiceLine, PriceVersion, RatedCharge
from billing.models.adjustments import REDUCTION_KINDS
from billing.models.charges import GIB_SECONDS, ChargeKind
from billing.services.documents.charge_exports import BILLED_DECIMALS, BilledAdjustment, BilledCharge, billed_charges
from broker.domain.geometry.cpu_blocks import VCPUS_PER_UNIT
from broker.models import Offering
from broker.services.inventory.gpu_catalogue import profile_of
from tenants.models import Project
from tenants.services.rls import tenant_scope

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
PROVIDER = "gpubroker"
HOUR = 3600
NANO_PLACES = 9
DYNAMIC_CLASS = "spot"
STORAGE = {"ServiceCategory": "Storage", "ServiceSubcategory": "Block Storage", "ServiceName": "Volumes"}


def focus_rows(invoice: Invoice) -> Iterator[tuple[str, ...]]:
    """Yield the rows of an invoice whose period and tenant are prefetched."""
    with tenant_scope(invoice.tenant_id):
        projects = dict(Project.objects.filter(tenant=invoice.tenant).values_list("pk", "name"))
        offerings = {each.pk: each for each in Offering.objects.select_related("gpu_model")}
        lines = list(invoice.lines.order_by("n"))
        prices = _list_prices(invoice, lines)
    whole = _invoice_fields(invoice)
    for each in billed_charges(invoice):
        if isinstance(each, BilledAdjustment):
            of = each.charge.project_id
            account = {"SubAccountId": of, "SubAccountName": projects.get(of, "")}
            yield _row(whole | account | _adjustment_fields(invoice, each, offerings.get(each.charge.offering_id)))
            continue
        charge = each.charge
        price = _list_price_at(prices.get(charge.offering_id, []), charge.s, otherwise=each.nano_per_hour)
        account = {"SubAccountId": charge.project_id, "SubAccountName": projects.get(charge.project_id, "")}
        yield _row(whole | account | _charge_fields(each, offerings[charge.offering_id], price))
    for line in lines:
        if line.tax_minor:
            account = {"SubAccountId": line.project_id, "SubAccountName": projects.get(line.project_id, "")}
            yield _row(whole | account | _tax_fields(invoice, line, offerings.get(line.offering_id)))


def _list_prices(invoice: Invoice, lines: list[InvoiceLine]) -> dict[str, list[PriceVersion]]:
    """Return the list prices of everything on an invoice, by offering."""
    sold = {line.offering_id for line in lines}
    found: dict[str, list[PriceVersion]] = {offering: [] for offering in sold}
    for version in PriceVersion.objects.listed().filter(offering__in=sold, currency=invoice.currency):
        found[version.offering_id].append(version)
    return found


def _list_price_at(prices: list[PriceVersion], at: datetime, *, otherwise: int) -> int:
    """Return the list price at a time, or `otherwise` if there was none."""
    of = (each.nano_per_hour for each in prices if at in each.valid)
    return next(of, otherwise)


def _row(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(values.get(name, "") for name in COLUMNS)


def _invoice_fields(invoice: Invoice) -> dict[str, str]:
    return {
        "BillingAccountId": invoice.tenant_id,
        "BillingAccountName": invoice.tenant.name,
        "BillingAccountType": "Tenant",
        "BillingCurrency": invoice.currency,
        "BillingPeriodStart": format_utc(invoice.period.span.lower),
        "BillingPeriodEnd": format_utc(invoice.period.span.upper),
        "InvoiceId": str(invoice) if invoice.number else "",
        "InvoiceIssuerName": PROVIDER,
        "PricingCurrency": invoice.currency,
        "ProviderName": PROVIDER,
        "PublisherName": PROVIDER,
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Other (Compute)",
        "SubAccountType": "Project",
    }


def _charge_fields(each: BilledCharge, offering: Offering, listed: int) -> dict[str, str]:
    charge = each.charge
    cost = format_fixed_point(each.pico, BILLED_DECIMALS)
    return {
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ListCost": _cost(charge.unit_seconds * listed),
        "ListUnitPrice": format_fixed_point(listed, NANO_PLACES),
        "ContractedCost": _cost(int(charge.exact_num)),
        "ContractedUnitPrice": format_fixed_point(each.nano_per_hour, NANO_PLACES),
        "PricingQuantity": format_fixed_point(
            half_up(charge.unit_seconds * 10**BILLED_DECIMALS, HOUR), BILLED_DECIMALS
        ),
        "PricingUnit": "GiB-Hours" if offering.is_storage else "Hours",
        "PricingCategory": "Dynamic" if offering.price_class == DYNAMIC_CLASS else "Standard",
        **_consumption_fields(charge),
        "ChargeClass": "Correction" if each.late else "",
        "ChargeDescription": f"{_charge_description(offering)}: {each.lease.name}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": format_utc(charge.s),
        "ChargePeriodEnd": format_utc(charge.e),
        "ResourceId": charge.lease_id,
        "ResourceName": each.lease.name,
        "ResourceType": "Volume" if offering.is_storage else "Lease",
        **_service_fields(offering),
        "SkuId": offering.pk,
        "SkuMeter": charge.meter,
        "SkuPriceId": str(charge.price_version_id),
        "SkuPriceDetails": _json(_price_details(offering)),
        "Tags": _json(each.lease.tags | {"gpubroker/requested_by": each.lease.by_label or each.lease.by}),
    }


def _charge_description(offering: Offering) -> str:
    terms = "" if offering.is_storage else f", {offering.price_class.replace('_', '-')}"
    return offering.label + terms


def _consumption_fields(charge: RatedCharge) -> dict[str, str]:
    """Return the category and consumed quantity; credited seconds are not consumption."""
    if charge.kind == ChargeKind.ADJUST:
        return {"ChargeCategory": "Adjustment"}
    return {
        "ChargeCategory": "Usage",
        "ConsumedQuantity": str(charge.unit_seconds),
        "ConsumedUnit": "GiB-Seconds" if charge.meter == GIB_SECONDS else "Seconds",
    }


def _adjustment_fields(invoice: Invoice, each: BilledAdjustment, offering: Offering | None) -> dict[str, str]:
    """Return the fields of an adjustment: a credit or a purchase for the whole month."""
    charge = each.charge
    billed_for = format_fixed_point(each.pico, BILLED_DECIMALS)
    cost = _cost(int(charge.exact_num))
    return {
        "BilledCost": billed_for,
        "EffectiveCost": billed_for,
        "ListCost": cost,
        "ContractedCost": cost,
        "ChargeCategory": "Credit" if charge.kind in REDUCTION_KINDS else "Purchase",
        "ChargeDescription": f"{charge.label}, {offering.label}" if offering else charge.label,
        "ChargeFrequency": "Recurring",
        "ChargePeriodStart": format_utc(invoice.period.span.lower),
        "ChargePeriodEnd": format_utc(invoice.period.span.upper),
        **_service_fields(offering),
    }


def _service_fields(offering: Offering | None) -> dict[str, str]:
    """Return the service fields; without an offering it is the provider's own service."""
    if offering is None:
        return {"ServiceName": PROVIDER}
    where = {"RegionId": offering.region, "RegionName": offering.region}
    if offering.is_storage:
        return where | STORAGE
    return {"ServiceName": _service_name(offering), **where}


def _tax_fields(invoice: Invoice, line: InvoiceLine, offering: Offering | None) -> dict[str, str]:
    """Return the fields of the tax on a line, for the whole month."""
    cost = format_fixed_point(line.tax_minor * 10 ** (BILLED_DECIMALS - exponent_of(invoice.currency)), BILLED_DECIMALS)
    return {
        **dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost),
        "ChargeCategory": "Tax",
        "ChargeDescription": f"VAT on line {line.n}, {offering.label if offering else line.get_kind_display()}",
        "ChargeFrequency": "Recurring",
        "ChargePeriodStart": format_utc(invoice.period.span.lower),
        "ChargePeriodEnd": format_utc(invoice.period.span.upper),
        **_service_fields(offering),
    }


def _price_details(offering: Offering) -> dict[str, Any]:
    """Return what of an offering decides its price; CoreCount is FOCUS's own name."""
    if offering.is_cpu_only:
        return {"profile": offering.profile, "CoreCount": profile_of(offering).compute * VCPUS_PER_UNIT}
    return {"profile": offering.profile, "isolation": offering.isolation}


def _service_name(offering: Offering) -> str:
    if offering.is_cpu_only:
        return "CPU"
    return f"{offering.gpu_model_id}, {offering.isolation}"


def _cost(exact_num: int) -> str:
    """Write an amount over 3600·10⁹ with twelve decimals; the last one is rounded."""
    return format_fixed_point(half_up(exact_num * 10 ** (BILLED_DECIMALS - NANO_PLACES), HOUR), BILLED_DECIMALS)


def format_utc(at: datetime) -> str:
    """Write a time to the second, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, sort_keys=True, ensure_ascii=False)
