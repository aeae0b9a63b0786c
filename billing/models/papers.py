"""Papers as they were handed out: whoever asks for a final one again gets the same bytes. Append-only."""

from django.db import models
from django.db.models import Q

from billing.models.credits import CreditNote
from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned

SHA256 = 64  # hexadecimal digits


class KeptPaper(TenantOwned):
    """The PDF of one final invoice or of one credit note, and of which words it was laid out."""

    id = models.BigAutoField(primary_key=True)
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, related_name="+", null=True)
    credit_note = models.OneToOneField(CreditNote, on_delete=models.PROTECT, related_name="+", null=True)
    content_sha256 = models.CharField(max_length=SHA256)
    pdf = models.BinaryField()
    pdf_sha256 = models.CharField(max_length=SHA256)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(invoice__isnull=False, credit_note__isnull=True)
                | Q(invoice__isnull=True, credit_note__isnull=False),
                name="paper_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return self.pdf_sha256
