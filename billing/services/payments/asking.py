"""What a gateway is asked for a payment: all that is due on its invoice, line by line, under the payment's own id."""

from collections import defaultdict

from billing.domain.money import fixed_point
from billing.models import InvoiceLine, InvoiceTax, Payment
from broker.models import Offering
from ports.payments import Charge, ChargePart
from tenants.services.walls import as_tenant

MOST_PARTS = 200  # Stripe takes 250
REST = "Paid from your balance, or given back"
ALSO = "What else is due"
TAX = "VAT"


def charge_of(payment: Payment) -> Charge:
    """Say what is to be charged for a payment, whose invoice is loaded. The same at every repetition."""
    with as_tenant(payment.tenant_id):
        # None is ever removed, and the one that is asked for is the last: another begins once it is settled.
        nth = Payment.objects.filter(invoice_id=payment.invoice_id).count()
        lines = list(InvoiceLine.objects.filter(invoice_id=payment.invoice_id).order_by("n"))
        sold = Offering.objects.filter(pk__in={each.offering_id for each in lines})
        labels = dict(sold.values_list("pk", "label"))
        labels |= {each.offering_id: each.get_kind_display() for each in lines if not each.is_usage}
        taxes = InvoiceTax.objects.filter(invoice_id=payment.invoice_id)
        rates = dict(taxes.values_list("category", "rate_bp"))
    number = str(payment.invoice)
    return Charge(
        key=payment.pk,
        minor=payment.minor,
        currency=payment.currency,
        payer=payment.tenant_id,
        text=f"Invoice {number}",
        number=number if nth == 1 else f"{number}-{nth}",
        parts=_parts(lines, labels, rates, payment.minor),
    )


def _parts(
    lines: list[InvoiceLine], labels: dict[str, str], rates: dict[str, int | None], due: int
) -> tuple[ChargePart, ...]:
    """Return the lines, one of each offering where they are too many, and what else makes them come to what is due."""
    parts = [
        _part(
            labels.get(line.offering_id, line.offering_id),
            line.minor,
            line.tax_minor,
            rates.get(line.tax_category),
        )
        for line in lines
        if line.minor
    ]
    if len(parts) > MOST_PARTS:
        parts = _together(parts)
    if len(parts) > MOST_PARTS:
        return ()
    rest = due - sum(part.minor + part.tax for part in parts)
    if rest:
        parts.append(ChargePart(REST if rest < 0 else ALSO, rest))
    return tuple(parts)


def _part(text: str, minor: int, tax: int, rate_bp: int | None) -> ChargePart:
    if rate_bp is None:
        return ChargePart(text, minor, tax)
    return ChargePart(text, minor, tax, TAX, fixed_point(rate_bp, 2))


def _together(parts: list[ChargePart]) -> list[ChargePart]:
    """Add up the lines of each offering that are taxed alike."""
    alike: defaultdict[tuple[str, str, str], list[ChargePart]] = defaultdict(list)
    for part in parts:
        alike[part.text, part.tax_name, part.tax_percent].append(part)
    return [
        ChargePart(text, sum(each.minor for each in same), sum(each.tax for each in same), name, percent)
        for (text, name, percent), same in sorted(alike.items())
    ]
