"""Stored PDF documents: a final document is the same bytes every time. Append-only."""

from django.db import models
from django.db.models import Q

from billing.models.credit_notes import CreditNote
from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned

SHA256_LENGTH = 64  # hexadecimal digits


class StoredDocument(TenantOwned):
    """The PDF of a final invoice or credit note, with the hash of its content."""

    id = models.BigAutoField(primary_key=True)
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, related_name="+", null=True)
    credit_note = models.OneToOneField(CreditNote, on_delete=models.PROTECT, related_name="+", null=True)
    content_sha256 = models.CharField(max_length=SHA256_LENGTH)
    pdf = models.BinaryField()
    pdf_sha256 = models.CharField(max_length=SHA256_LENGTH)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(invoice__isnull=False, credit_note__isnull=True)
                | Q(invoice__isnull=True, credit_note__isnull=False),
                name="paper_of_one_thing",
            )
        ]

    def __str__(self) -> str:
        return self.pdf_sha256


class StoredBundle(TenantOwned):
    """The bundle of an invoice that was cancelled: its month's charges may change afterwards. Append-only."""

    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, primary_key=True, related_name="+")
    content = models.BinaryField()  # zlib
    sha256 = models.CharField(max_length=SHA256_LENGTH)
    made_at = models.DateTimeField()  # when it was cancelled
    # What earlier credit notes credited of it is credited on the invoice that replaces it.
    credits_again = models.BooleanField(default=True, db_default=True)

    def __str__(self) -> str:
        return self.sha256
