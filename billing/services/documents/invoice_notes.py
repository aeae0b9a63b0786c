"""Notes on an invoice: bank account, later charges, replaced invoice."""

from billing.domain.document_formats import DocumentFormat
from billing.domain.documents import DocumentNote
from billing.domain.parties import BankAccount
from billing.models import Invoice

LATER_TEXT = (
    "These leases could not be observed at the end of the month. Their usage that is not listed above is charged with"
    " a later invoice: {leases}."
)
REPLACED_TEXT = "This invoice replaces invoice {number}, which credit note {notes} cancelled."


def state_notes(invoice: Invoice, words: DocumentFormat) -> list[DocumentNote]:
    """Return the notes that follow from how and when an invoice was issued."""
    return [*_transfer_notes(invoice, words), *_later_usage_notes(invoice, words), *_replaced_notes(invoice, words)]


def _transfer_notes(invoice: Invoice, words: DocumentFormat) -> list[DocumentNote]:
    """Return the account and the reference for a bank transfer."""
    if not invoice.bank_account or not invoice.number:
        return []
    account = BankAccount(**invoice.bank_account)
    parts = [words.text("Account holder {name}", name=account.holder), f"IBAN {account.iban_in_groups}"]
    parts += [f"BIC {account.bic}"] if account.bic else []
    parts += [account.bank] if account.bank else []
    text = words.text("{account}. Reference:", account=", ".join(parts))
    return [DocumentNote(words.text("Bank transfer"), text, invoice.payment_reference)]


def _later_usage_notes(invoice: Invoice, words: DocumentFormat) -> list[DocumentNote]:
    """Return the leases whose last seconds of the month are charged with a later invoice."""
    if not invoice.unobserved_leases:
        return []
    leases = ", ".join(invoice.unobserved_leases)
    return [DocumentNote(words.text("Charged later"), words.text(LATER_TEXT, leases=leases))]


def _replaced_notes(invoice: Invoice, words: DocumentFormat) -> list[DocumentNote]:
    """Return the cancelled invoice that this one replaces."""
    if not invoice.rebills:
        return []
    old = Invoice.objects.select_related("period").get(pk=invoice.rebills)
    notes = ", ".join(str(each) for each in old.credit_notes.all())
    return [DocumentNote(words.text("Replaces"), words.text(REPLACED_TEXT, number=old, notes=notes))]
