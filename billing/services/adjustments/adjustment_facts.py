"""Agreements and adjustments of a month, as facts for the invoice bundle."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django.db.models import Exists, OuterRef, Q

from billing.models import (
    BillingPeriod,
    Commitment,
    Discount,
    Invoice,
    InvoiceAdjustment,
    InvoiceLine,
    Minimum,
    PriceVersion,
)
from billing.services.adjustments import commitment_adjustments, discount_adjustments, minimum_adjustments
from billing.services.adjustments.month_amounts import RULES

Facts = dict[str, Any]
# Whether anything was ever agreed with the row's tenant; annotated to the query of the row.
HAS_AGREEMENTS = Q(
    *(Exists(each.objects.filter(tenant=OuterRef("tenant"))) for each in (Discount, Minimum, Commitment)),
    _connector=Q.OR,
)


def price_model_json(version: PriceVersion) -> Facts:
    """Describe the price model; a package has one tier, its size and cost."""
    starts, prices = version.tier_from_s or [], version.tier_nano or []
    return {
        "model": version.model,
        "tiers": [{"from_s": start, "nano_per_hour": str(nano)} for start, nano in zip(starts, prices, strict=True)],
    }


def line_adjustment_json(line: InvoiceLine) -> Facts:
    """Describe the kind of a line and its adjustments."""
    return {"kind": line.kind, "month": str(int(line.month_num))}


def store_agreements(invoice: Invoice) -> None:
    """Store with a closing invoice what was agreed for its month.

    What is agreed later concerns later months.
    """
    agreed = agreements_json(invoice, list(invoice.lines.order_by("n")))
    invoice.agreed = json.dumps({**agreed, "rules": RULES}, separators=(",", ":"))


def agreements_json(invoice: Invoice, lines: list[InvoiceLine]) -> dict[str, list[Facts]]:
    """Describe the month's discounts and minimums, in the order of application."""
    keys = [(each.project_id, each.offering_id, each.price_version_id) for each in lines]
    classes = discount_adjustments.price_classes(keys)
    held = discount_adjustments.discounts_in_force(invoice.tenant_id, invoice.period.label, invoice.currency)
    return {
        "discounts": [
            _discount_json(each, sorted({key[1] for key in discount_adjustments.discounted_lines(each, keys, classes)}))
            for each in held
        ],
        "minimums": [
            _minimum_json(each, invoice.period.span.upper)
            for each, _ in minimum_adjustments.minimums_in_force(invoice.tenant_id, invoice.period, invoice.currency)
        ],
    }


def month_json(invoice: Invoice, lines: list[InvoiceLine], carried: list[InvoiceAdjustment]) -> dict[str, list[Facts]]:
    """Describe the month's agreements and adjustments.

    A final invoice's agreements are read as they were stored.
    """
    agreed = agreements_json(invoice, lines) if invoice.agreed is None else json.loads(invoice.agreed)
    return {
        "discounts": agreed["discounts"],
        "minimums": agreed["minimums"],
        "carried": [
            {
                "kind": each.kind,
                "source": each.source,
                "project": each.project_id,
                "offering": each.offering_id,
                "price": each.price_version_id,
                "base": str(int(each.base_num)),
                "exact": str(int(each.exact_num)),
            }
            for each in carried
        ],
    }


def commitments_json(invoice: Invoice, months: Sequence[BillingPeriod] = ()) -> list[Facts]:
    """Describe the commitments of the month, or of several, by offering."""
    held = {
        each
        for month in months or (invoice.period,)
        for each in commitment_adjustments.commitments_in_force(invoice.tenant_id, month, invoice.currency)
    }
    end = max(month.span.upper for month in months or (invoice.period,))
    return [_commitment_json(each, end) for each in sorted(held, key=commitment_adjustments.commitment_order)]


def have_overlaps(commitments: list[Facts]) -> bool:
    """Return whether two commitments, as facts, hold for one offering at one time."""
    return any(
        a["offering"] == b["offering"] and (a["until"] is None or a["until"] > b["since"])
        for a, b in pairwise(commitments)
    )


def _commitment_json(agreed: Commitment, end: datetime) -> Facts:
    return {
        "id": agreed.pk,
        "offering": agreed.offering_id,
        "units": agreed.units,
        "nano_per_hour": str(agreed.nano_per_hour),
        "since": _format_utc(agreed.valid.lower),
        "until": _end_within(end, agreed.valid.upper),
    }


def _discount_json(discount: Discount, offerings: list[str]) -> Facts:
    return {"id": discount.pk, "percent_bp": discount.percent_bp, "minor": discount.minor, "offerings": offerings}


def _minimum_json(agreed: Minimum, end: datetime) -> Facts:
    return {
        "id": agreed.pk,
        "minor": agreed.minor,
        "since": _format_utc(agreed.valid.lower),
        "until": _end_within(end, agreed.valid.upper),
    }


def _end_within(end: datetime, until: datetime | None) -> str | None:
    """Format an end within the month; None if later, because it may still change."""
    return _format_utc(until) if until and until < end else None


def _format_utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"
