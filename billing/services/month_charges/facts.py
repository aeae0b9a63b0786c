"""What a bundle says of a month beside its seconds: what was agreed, as facts, and what the invoice makes of it."""

import json
from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from billing.models import Commitment, Discount, Invoice, InvoiceLine, Minimum, MonthCharge, PriceVersion
from billing.services.month_charges import committing, discounting, minimums

Told = dict[str, Any]
# Whether anything was ever agreed with the tenant of a row: whoever asks for the row asks so in the same query.
AGREED_ON = Q(
    *(Exists(each.objects.filter(tenant=OuterRef("tenant"))) for each in (Discount, Minimum, Commitment)),
    _connector=Q.OR,
)


def price(version: PriceVersion) -> Told:
    """Tell by which model a price asks; of a package the one tier is its size and what it costs."""
    starts, prices = version.tier_from_s or [], version.tier_nano or []
    return {
        "model": version.model,
        "tiers": [
            {"from_s": start, "nano_per_hour": str(nano)} for start, nano in zip(starts, prices, strict=True)
        ],
    }


def line(line: InvoiceLine) -> Told:
    """Tell what else is known of a line."""
    return {"kind": line.kind, "month": str(int(line.month_num))}


def keep(invoice: Invoice) -> None:
    """Keep with an invoice that becomes final what was agreed of its month: what is agreed later is of later ones."""
    invoice.agreed = json.dumps(agreed(invoice, list(invoice.lines.order_by("n"))), separators=(",", ":"))


def agreed(invoice: Invoice, lines: list[InvoiceLine]) -> dict[str, list[Told]]:
    """Tell the discounts and minimums that hold in the month, in the order of applying them."""
    keys = [(each.project_id, each.offering_id, each.price_version_id) for each in lines]
    classes = discounting.classes_of(keys)
    held = discounting.in_force(invoice.tenant_id, invoice.period.label, invoice.currency)
    return {
        "discounts": [
            _discount(each, sorted({key[1] for key in discounting.lines_of(each, keys, classes)}))
            for each in held
        ],
        "minimums": [
            _minimum(each, invoice.period.span.upper)
            for each, _ in minimums.in_force(invoice.tenant_id, invoice.period, invoice.currency)
        ],
    }


def monthly(invoice: Invoice, lines: list[InvoiceLine], carried: list[MonthCharge]) -> dict[str, list[Told]]:
    """Tell what was agreed of the month, as it was kept where the invoice is final, and what it carries."""
    return {
        **(agreed(invoice, lines) if invoice.agreed is None else json.loads(invoice.agreed)),
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


def commitments(invoice: Invoice) -> list[Told]:
    """Tell the commitments that hold in the month, by offering."""
    held = committing.in_force(invoice.tenant_id, invoice.period, invoice.currency)
    return [_commitment(each, invoice.period.span.upper) for each in held]


def _commitment(agreed: Commitment, end: datetime) -> Told:
    return {
        "id": agreed.pk,
        "offering": agreed.offering_id,
        "units": agreed.units,
        "nano_per_hour": str(agreed.nano_per_hour),
        "since": _moment(agreed.valid.lower),
        "until": _before(end, agreed.valid.upper),
    }


def _discount(discount: Discount, offerings: list[str]) -> Told:
    return {
        "id": discount.pk,
        "percent_bp": discount.percent_bp,
        "minor": discount.minor,
        "offerings": offerings,
    }


def _minimum(agreed: Minimum, end: datetime) -> Told:
    return {
        "id": agreed.pk,
        "minor": agreed.minor,
        "since": _moment(agreed.valid.lower),
        "until": _before(end, agreed.valid.upper),
    }


def _before(end: datetime, until: datetime | None) -> str | None:
    """Tell when something ends; when that is beyond the month is left out, for it may be decided later."""
    return _moment(until) if until and until < end else None


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"
