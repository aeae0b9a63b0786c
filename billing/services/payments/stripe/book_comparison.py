"""Our, Stripe's and the ledger's view of the same charges."""

from collections import defaultdict

from django.db.models import Q, Sum

from billing.domain.stripe_reconciliation import OurCharge, StripeInvoiceRecord
from billing.gateways.stripe.lookups import StripeInvoice
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
from tenants.services.rls import staff_scope


def our_charges(charges: list[StripeCharge]) -> list[OurCharge]:
    """Return each charge with its ledger amount and returned amount; seven queries.

    If operators marked the payment as failed it counts as declined, whatever was last heard of its
    charge.
    """
    ids = [each.pk for each in charges]
    back = returned_amounts(ids)
    with staff_scope():
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
        OurCharge(
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


def stripe_record(each: StripeInvoice) -> StripeInvoiceRecord:
    return StripeInvoiceRecord(each.id, each.payment, each.status, each.total, each.amount_paid)


def returned_amounts(payments: list[str]) -> defaultdict[str, int]:
    """Return by payment what Stripe reports as refunded or lost in a dispute; two queries."""
    back: defaultdict[str, int] = defaultdict(int)
    with staff_scope():
        for rows, status in ((PaymentRefund.objects, "succeeded"), (PaymentDispute.objects, "lost")):
            for payment, minor in rows.filter(payment__in=payments, status=status).values_list("payment", "minor"):
                back[payment] += minor
    return back


def _key(kind: str, ref: str, idem: str) -> str:
    """Return the payment or top-up of a transfer.

    A payment's transfer is keyed by its invoice and its own id.
    """
    return ref if kind == TransferKind.TOPUP else idem.rpartition(":")[2]
