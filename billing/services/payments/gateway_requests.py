"""Gateway request of a payment: what is due on its invoice, line by line.

The payment's own id is the idempotency key.
"""

from collections import defaultdict

from billing.domain.money import format_fixed_point
from billing.models import InvoiceLine, InvoiceTax, Payment
from broker.models import Offering
from ports.payments import ChargeLine, GatewayCharge
from tenants.services.rls import tenant_scope

MAX_PARTS = 200  # Stripe takes 250
REDUCTION_TEXT = "Already paid or credited"
ADDITION_TEXT = "Remaining amount due"
TAX_NAME = "VAT"


def charge_request(payment: Payment) -> GatewayCharge:
    """Return the charge request of a payment, whose invoice is loaded.

    It is the same at every repetition.
    """
    with tenant_scope(payment.tenant_id):
        # Payments are never deleted and follow one another, so this payment is the last.
        nth = Payment.objects.filter(invoice_id=payment.invoice_id).count()
        lines = list(InvoiceLine.objects.filter(invoice_id=payment.invoice_id).order_by("n"))
        sold = Offering.objects.filter(pk__in={each.offering_id for each in lines})
        labels = dict(sold.values_list("pk", "label"))
        labels |= {each.offering_id: each.get_kind_display() for each in lines if not each.is_usage}
        taxes = InvoiceTax.objects.filter(invoice_id=payment.invoice_id)
        rates = dict(taxes.values_list("category", "rate_bp"))
    number = str(payment.invoice)
    return GatewayCharge(
        key=payment.pk,
        minor=payment.minor,
        currency=payment.currency,
        payer=payment.tenant_id,
        text=f"Invoice {number}",
        number=number if nth == 1 else f"{number}-{nth}",
        parts=_request_parts(lines, labels, rates, payment.minor),
    )


def _request_parts(
    lines: list[InvoiceLine], labels: dict[str, str], rates: dict[str, int | None], due: int
) -> tuple[ChargeLine, ...]:
    """Return the request's parts, which add up to what is due.

    They are the lines, or one part per offering if there are too many, and a balancing part.
    """
    parts = [
        _request_part(
            labels.get(line.offering_id, line.offering_id), line.minor, line.tax_minor, rates.get(line.tax_category)
        )
        for line in lines
        if line.minor
    ]
    if len(parts) > MAX_PARTS:
        parts = _sum_by_offering(parts)
    if len(parts) > MAX_PARTS:
        return ()
    rest = due - sum(part.minor + part.tax for part in parts)
    if rest:
        parts.append(ChargeLine(REDUCTION_TEXT if rest < 0 else ADDITION_TEXT, rest))
    return tuple(parts)


def _request_part(text: str, minor: int, tax: int, rate_bp: int | None) -> ChargeLine:
    if rate_bp is None:
        return ChargeLine(text, minor, tax)
    return ChargeLine(text, minor, tax, TAX_NAME, format_fixed_point(rate_bp, 2))


def _sum_by_offering(parts: list[ChargeLine]) -> list[ChargeLine]:
    """Sum the lines of each offering that are taxed alike."""
    alike: defaultdict[tuple[str, str, str], list[ChargeLine]] = defaultdict(list)
    for part in parts:
        alike[part.text, part.tax_name, part.tax_percent].append(part)
    return [
        ChargeLine(text, sum(each.minor for each in same), sum(each.tax for each in same), name, percent)
        for (text, name, percent), same in sorted(alike.items())
    ]
