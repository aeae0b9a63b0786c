"""An invoice's charges in the shape of FOCUS 1.2, the FinOps Open Cost and Usage Specification.

One row for each charge, and one for the tax on each line. BilledCost is what the invoice bills for it, and adds up to
the invoice's total; ListCost and ContractedCost are the quantity at the price, which no line's rounding touched. What
grants and the balance settle is payment, not cost, and is not in it. What does not apply here stays empty.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from billing.domain.money import exponent_of, fixed_point, half_up
from billing.models import Invoice, InvoiceLine, PriceVersion, RatedCharge
from billing.models.charges import GIB_SECONDS, ChargeKind
from billing.models.month_charges import OFF
from billing.services.exports.charges import PLACES, Billed, Carried, billed
from broker.models import Offering
from tenants.models import Project
from tenants.services.walls import as_tenant

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
HOUSE = "gpubroker"
HOUR = 3600
NANO_PLACES = 9
DYNAMIC = "spot"
STORAGE = {
    "ServiceCategory": "Storage",
    "ServiceSubcategory": "Block Storage",
    "ServiceName": "Volumes",
}


def rows(invoice: Invoice) -> Iterator[tuple[str, ...]]:
    """Yield the rows of an invoice, which has its period and tenant at hand."""
    with as_tenant(invoice.tenant_id):
        projects = dict(Project.objects.for_tenant(invoice.tenant).values_list("pk", "name"))
        offerings = {each.pk: each for each in Offering.objects.select_related("gpu_model")}
        lines = list(invoice.lines.order_by("n"))
        prices = _list_prices(invoice, lines)
    whole = _of_invoice(invoice)
    for each in billed(invoice):
        if isinstance(each, Carried):
            of = each.charge.project_id
            account = {"SubAccountId": of, "SubAccountName": projects.get(of, "")}
            yield _row(whole | account | _of_month(invoice, each, offerings.get(each.charge.offering_id)))
            continue
        charge = each.charge
        price = _listed(prices.get(charge.offering_id, []), charge.s, otherwise=each.nano_per_hour)
        account = {"SubAccountId": charge.project_id, "SubAccountName": projects.get(charge.project_id, "")}
        yield _row(whole | account | _of_charge(each, offerings[charge.offering_id], price))
    for line in lines:
        if line.tax_minor:
            account = {"SubAccountId": line.project_id, "SubAccountName": projects.get(line.project_id, "")}
            yield _row(whole | account | _of_tax(invoice, line, offerings.get(line.offering_id)))


def _list_prices(invoice: Invoice, lines: list[InvoiceLine]) -> dict[str, list[PriceVersion]]:
    """Return the list's prices of what is on an invoice, by offering."""
    sold = {line.offering_id for line in lines}
    found: dict[str, list[PriceVersion]] = {offering: [] for offering in sold}
    for version in PriceVersion.objects.listed().filter(offering__in=sold, currency=invoice.currency):
        found[version.offering_id].append(version)
    return found


def _listed(prices: list[PriceVersion], at: datetime, *, otherwise: int) -> int:
    """Return what the list asked for then; what was paid, where the list asked for nothing."""
    of = (each.nano_per_hour for each in prices if at in each.valid)
    return next(of, otherwise)


def _row(told: dict[str, str]) -> tuple[str, ...]:
    return tuple(told.get(name, "") for name in COLUMNS)


def _of_invoice(invoice: Invoice) -> dict[str, str]:
    return {
        "BillingAccountId": invoice.tenant_id,
        "BillingAccountName": invoice.tenant.name,
        "BillingAccountType": "Tenant",
        "BillingCurrency": invoice.currency,
        "BillingPeriodStart": moment(invoice.period.span.lower),
        "BillingPeriodEnd": moment(invoice.period.span.upper),
        "InvoiceId": str(invoice) if invoice.number else "",
        "InvoiceIssuerName": HOUSE,
        "PricingCurrency": invoice.currency,
        "ProviderName": HOUSE,
        "PublisherName": HOUSE,
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Other (Compute)",
        "SubAccountType": "Project",
    }


def _of_charge(each: Billed, offering: Offering, listed: int) -> dict[str, str]:
    charge = each.charge
    cost = fixed_point(each.pico, PLACES)
    return {
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ListCost": _cost(charge.unit_seconds * listed),
        "ListUnitPrice": fixed_point(listed, NANO_PLACES),
        "ContractedCost": _cost(int(charge.exact_num)),
        "ContractedUnitPrice": fixed_point(each.nano_per_hour, NANO_PLACES),
        "PricingQuantity": fixed_point(half_up(charge.unit_seconds * 10**PLACES, HOUR), PLACES),
        "PricingUnit": "GiB-Hours" if offering.is_storage else "Hours",
        "PricingCategory": "Dynamic" if offering.price_class == DYNAMIC else "Standard",
        **_consumed(charge),
        "ChargeClass": "Correction" if each.late else "",
        "ChargeDescription": f"{_described(offering)}: {each.lease.name}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": moment(charge.s),
        "ChargePeriodEnd": moment(charge.e),
        "ResourceId": charge.lease_id,
        "ResourceName": each.lease.name,
        "ResourceType": "Volume" if offering.is_storage else "Lease",
        **_sold_as(offering),
        "SkuId": offering.pk,
        "SkuMeter": charge.meter,
        "SkuPriceId": str(charge.price_version_id),
        "SkuPriceDetails": _json({"profile": offering.profile, "isolation": offering.isolation}),
        "Tags": _json(each.lease.tags | {"gpubroker/requested_by": each.lease.by_label or each.lease.by}),
    }


def _described(offering: Offering) -> str:
    terms = "" if offering.is_storage else f", {offering.price_class.replace('_', '-')}"
    return offering.label + terms


def _consumed(charge: RatedCharge) -> dict[str, str]:
    """Tell seconds as used, or as given back: only what was used was consumed."""
    if charge.kind == ChargeKind.ADJUST:
        return {"ChargeCategory": "Adjustment"}
    return {
        "ChargeCategory": "Usage",
        "ConsumedQuantity": str(charge.unit_seconds),
        "ConsumedUnit": "GiB-Seconds" if charge.meter == GIB_SECONDS else "Seconds",
    }


def _of_month(invoice: Invoice, each: Carried, offering: Offering | None) -> dict[str, str]:
    """Tell what the month takes off, as a credit, or adds, as of all of it."""
    charge = each.charge
    billed_for = fixed_point(each.pico, PLACES)
    cost = _cost(int(charge.exact_num))
    return {
        "BilledCost": billed_for,
        "EffectiveCost": billed_for,
        "ListCost": cost,
        "ContractedCost": cost,
        "ChargeCategory": "Credit" if charge.kind in OFF else "Purchase",
        "ChargeDescription": f"{charge.label}, {offering.label}" if offering else charge.label,
        "ChargeFrequency": "Recurring",
        "ChargePeriodStart": moment(invoice.period.span.lower),
        "ChargePeriodEnd": moment(invoice.period.span.upper),
        **_sold_as(offering),
    }


def _sold_as(offering: Offering | None) -> dict[str, str]:
    """Tell what it is of; what is of no offering is the house's own service."""
    if offering is None:
        return {"ServiceName": HOUSE}
    where = {"RegionId": offering.region, "RegionName": offering.region}
    if offering.is_storage:
        return where | STORAGE
    return {"ServiceName": _service(offering), **where}


def _of_tax(invoice: Invoice, line: InvoiceLine, offering: Offering | None) -> dict[str, str]:
    """Tell the tax on a line, as of the whole month."""
    cost = fixed_point(line.tax_minor * 10 ** (PLACES - exponent_of(invoice.currency)), PLACES)
    return {
        **dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost),
        "ChargeCategory": "Tax",
        "ChargeDescription": f"VAT on line {line.n}, {offering.label if offering else line.get_kind_display()}",
        "ChargeFrequency": "Recurring",
        "ChargePeriodStart": moment(invoice.period.span.lower),
        "ChargePeriodEnd": moment(invoice.period.span.upper),
        **_sold_as(offering),
    }


def _service(offering: Offering) -> str:
    return f"{offering.gpu_model_id}, {offering.isolation}"


def _cost(exact_num: int) -> str:
    """Write an amount over 3600·10⁹ with twelve decimals; the last one is rounded."""
    return fixed_point(half_up(exact_num * 10 ** (PLACES - NANO_PLACES), HOUR), PLACES)


def moment(at: datetime) -> str:
    """Write a moment to the second, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, sort_keys=True, ensure_ascii=False)
