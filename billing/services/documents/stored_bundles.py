"""Bundles of cancelled invoices, kept as they were when the invoice was cancelled."""

import hashlib
import zlib
from datetime import datetime

from billing.models import Invoice, StoredBundle
from billing.services.documents import invoice_bundles
from tenants.services.errors import ProblemError

MAX_BUNDLE_BYTES = 200_000_000


class BundleTooLarge(ProblemError):
    code, status, title = "bundle-too-large", 409, "The invoice is too large to be cancelled and issued again"


def store_bundle(invoice: Invoice, *, credits_again: bool, now: datetime) -> None:
    """Keep an invoice's bundle; in the tenant's RLS scope. Raises BundleTooLarge."""
    content = invoice_bundles.build_bundle(invoice).whole(most=MAX_BUNDLE_BYTES)
    if content is None:
        raise BundleTooLarge(
            f"The bundle of invoice {invoice} is larger than {MAX_BUNDLE_BYTES // 10**6} MB.",
            fix="Credit the wrong lines with a credit note instead.",
        )
    StoredBundle.objects.create(
        tenant_id=invoice.tenant_id,
        invoice=invoice,
        content=zlib.compress(content, 9),
        sha256=hashlib.sha256(content).hexdigest(),
        made_at=now,
        credits_again=credits_again,
    )


def read_stored_bundle(invoice: Invoice) -> bytes | None:
    """Return the stored bundle of a cancelled invoice, or None if there is none."""
    content = StoredBundle.objects.filter(invoice=invoice).values_list("content", flat=True).first()
    return zlib.decompress(content) if content is not None else None
