"""What a gateway is asked for a payment: all that is due on its invoice, line by line, under the payment's own id."""

from collections import defaultdict

from billing.models import InvoiceLine, Payment
from broker.models import Offering
from ports.payments import Charge, ChargePart
from tenants.services.walls import as_tenant

MOST_PARTS = 200  # Stripe takes 250
REST = "Paid from your balance, or given back"
ALSO = "Tax"


def charge_of(payment: Payment) -> Charge:
    """Say what is to be charged for a payment, whose invoice is loaded. The same at every repetition."""
    with as_tenant(payment.tenant_id):
        # None is ever removed, and the one that is asked for is the last: another begins once it is settled.
        nth = Payment.objects.filter(invoice_id=payment.invoice_id).count()
        lines = list(InvoiceLine.objects.filter(invoice_id=payment.invoice_id).order_by("n"))
        labels = dict(
            Offering.objects.filter(pk__in={each.offering_id for each in lines}).values_list("pk", "label")
        )
    number = str(payment.invoice)
    return Charge(
        key=payment.pk,
        minor=payment.minor,
        currency=payment.currency,
        payer=payment.tenant_id,
        text=f"Invoice {number}",
        number=number if nth == 1 else f"{number}-{nth}",
        parts=_parts(lines, labels, payment.minor),
    )


def _parts(lines: list[InvoiceLine], labels: dict[str, str], due: int) -> tuple[ChargePart, ...]:
    """Return the lines, one of each offering where they are too many, and what else makes them come to what is due."""
    named = [(labels.get(line.offering_id, line.offering_id), line.minor) for line in lines if line.minor]
    if len(named) > MOST_PARTS:
        named = _together(named)
    if len(named) > MOST_PARTS:
        return ()
    rest = due - sum(minor for _, minor in named)
    if rest:
        named.append((REST if rest < 0 else ALSO, rest))
    return tuple(ChargePart(text, minor) for text, minor in named)


def _together(named: list[tuple[str, int]]) -> list[tuple[str, int]]:
    sums: defaultdict[str, int] = defaultdict(int)
    for text, minor in named:
        sums[text] += minor
    return sorted(sums.items())
