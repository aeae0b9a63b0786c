"""What our books, Stripe's and the ledger each say of the same charges."""

from collections import defaultdict

from django.db.models import Q, Sum

from billing.domain.stripe_compare import Ours, Theirs
from billing.gateways.stripe.looking import InvoiceThere
from billing.models import (
    LedgerTransfer,
    Payment,
    PaymentDispute,
    PaymentRefund,
    PaymentStatus,
    Refund,
    StripeCharge,
    StripeOutcome,
    TopUp,
    TransferKind,
)
from tenants.services.walls import as_staff


def ours(charges: list[StripeCharge]) -> list[Ours]:
    """Put beside each charge what the ledger has of it, and what of it went back; seven queries.

    Where operators found that nothing was taken, the payment is declined, whatever was last heard of its charge.
    """
    ids = [each.pk for each in charges]
    back = gone_back(ids)
    with as_staff():
        refunds = Refund.objects.filter(payment__in=ids, status=PaymentStatus.SUCCEEDED, returned_at=None)
        sent = dict(refunds.values_list("payment").annotate(back=Sum("minor")).order_by())
        of_invoices = Payment.objects.filter(pk__in=ids).values_list("invoice_id", flat=True)
        transfers = LedgerTransfer.objects.filter(
            Q(kind=TransferKind.PAYMENT, ref__in=list(of_invoices)) | Q(kind=TransferKind.TOPUP, ref__in=ids)
        )
        booked = {_key(*row): minor for *row, minor in transfers.values_list("kind", "ref", "idem", "minor")}
        declined = {
            pk
            for rows in (Payment.objects, TopUp.objects)
            for pk in rows.filter(pk__in=ids, status=PaymentStatus.DECLINED).values_list("pk", flat=True)
        }
    return [
        Ours(
            each.pk,
            each.stripe_id,
            StripeOutcome.DECLINED if each.pk in declined else each.outcome,
            each.minor,
            each.sent_minor,
            booked.get(each.pk),
            each.currency,
            back[each.pk],
            sent.get(each.pk, 0),
        )
        for each in charges
    ]


def theirs(each: InvoiceThere) -> Theirs:
    return Theirs(each.id, each.payment, each.status, each.total, each.amount_paid)


def gone_back(payments: list[str]) -> defaultdict[str, int]:
    """Return what of each payment Stripe says went back, by a refund or a lost dispute; two queries."""
    back: defaultdict[str, int] = defaultdict(int)
    with as_staff():
        for rows, status in ((PaymentRefund.objects, "succeeded"), (PaymentDispute.objects, "lost")):
            for payment, minor in rows.filter(payment__in=payments, status=status).values_list(
                "payment", "minor"
            ):
                back[payment] += minor
    return back


def _key(kind: str, ref: str, idem: str) -> str:
    """Return whose transfer it is: a payment's is called by its invoice and its own id."""
    return ref if kind == TransferKind.TOPUP else idem.rpartition(":")[2]
