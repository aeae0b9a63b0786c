"""What electronic invoices there are of a final invoice, and why one is not."""

from dataclasses import dataclass

from django.db import connection

from billing.models import Invoice, InvoiceStatus
from billing.services.documents.e_invoices.e_invoice_files import FACTUR_X
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG, EInvoiceImpossible, invoice_parties

# Of the stored PDF, whether it has an embedded file; None if no PDF is stored yet.
EMBEDS_SQL = """
SELECT position('/EmbeddedFile'::bytea in pdf) > 0 FROM billing_storeddocument WHERE invoice_id = %s
"""


@dataclass(frozen=True, slots=True)
class EInvoiceOffer:
    """Which electronic invoices can be downloaded; `why` and `fix` explain what is missing."""

    factur_x: bool
    xrechnung: bool
    embedded: bool  # in the PDF, which never changes once it is stored
    why: str = ""
    fix: str = ""


def offered_e_invoices(invoice: Invoice) -> EInvoiceOffer | None:
    """Return what a final invoice offers; None of a draft or report.

    Call in the tenant's RLS scope.
    """
    if not invoice.number or invoice.status == InvoiceStatus.REPORTED:
        return None
    missing: EInvoiceImpossible | None = None
    possible = dict[str, bool]()
    for profile in (XRECHNUNG, FACTUR_X):
        try:
            invoice_parties(invoice, profile)
        except EInvoiceImpossible as problem:
            missing, possible[profile] = problem, False
        else:
            possible[profile] = True
    with connection.cursor() as cursor:
        cursor.execute(EMBEDS_SQL, [invoice.pk])
        stored = cursor.fetchone()
    return EInvoiceOffer(
        factur_x=possible[FACTUR_X],
        xrechnung=possible[XRECHNUNG],
        embedded=bool(stored[0]) if stored else possible[FACTUR_X],
        why=missing.detail if missing else "",
        fix=missing.fix.text if missing and missing.fix else "",
    )
