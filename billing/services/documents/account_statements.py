"""Account statements as documents."""

from typing import Literal
from zoneinfo import ZoneInfo

from billing.domain.document_formats import DocumentFormat, document_format
from billing.domain.documents import (
    SECOND,
    ColumnKind,
    Document,
    DocumentColumn,
    DocumentGroup,
    DocumentHeadline,
    DocumentNote,
    DocumentTotal,
)
from billing.services.documents.document_parties import current_supplier, document_party, layout_labels
from billing.services.ledger.account_entries import AccountEntry, TenantAccount
from billing.services.tax import tax_determination
from tenants.models import Tenant

COLUMNS: tuple[tuple[str, ColumnKind], ...] = (
    ("Day", "when"),
    ("Description", "what"),
    ("Amount due", "num"),
    ("Balance", "num"),
    ("Total due", "num"),
    ("New balance", "num"),
)
SOURCE_NOTE = (
    "Every row comes from the ledger, a double-entry record that never changes."
    " Amounts paid by credits are no longer due. Credits themselves are not included; the wallet shows them."
)
NO_CHANGE = "—"


def account_statement_document(tenant: Tenant, account: TenantAccount) -> Document:
    """Return the statement of an account for a period, in the tenant's time zone."""
    zone, currency = ZoneInfo(tenant.time_zone), account.currency
    customer = tax_determination.get_customer(tenant)
    words = document_format(customer.language)
    days = words.day_range(account.since, account.until, zone)
    rows = tuple(
        (
            words.short_day(entry.at, zone),
            _entry_text(entry, words),
            _signed_amount(entry.owed, currency, words),
            _signed_amount(entry.kept, currency, words),
            words.amount(entry.owed_after, currency),
            words.amount(entry.kept_after, currency),
        )
        for entry in account.entries
    )
    sums: tuple[tuple[str, int, Literal["plain", "strong"]], ...] = (
        ("Opening amount due", account.opening_owed, "plain"),
        ("Closing amount due", account.closing_owed, "strong"),
        ("Opening balance", account.opening_kept, "plain"),
        ("Closing balance", account.closing_kept, "strong"),
    )
    facts = (
        ("From", words.day(account.since, zone)),
        ("Through", words.day(account.until - SECOND, zone)),
        ("Time zone", tenant.time_zone),
        ("Currency", currency),
    )
    return Document(
        title=words.text("Account statement"),
        number=days,
        supplier=current_supplier(words),
        to=words.text("For"),
        customer=document_party(customer, words),
        facts=tuple((words.text(name), value) for name, value in facts),
        headline=_headline(account, zone, words),
        columns=tuple(DocumentColumn(words.text(head), kind) for head, kind in COLUMNS),
        groups=(DocumentGroup("", "", rows),),
        sums=tuple(
            DocumentTotal(words.text(label), words.amount(minor, currency), kind) for label, minor, kind in sums
        ),
        notes=(DocumentNote(words.text("Source"), words.text(SOURCE_NOTE)),),
        foot=words.text("Account statement, {days} · {tenant}", days=days, tenant=tenant.pk),
        language=words.language,
        labels=layout_labels(words),
    )


def _entry_text(entry: AccountEntry, words: DocumentFormat) -> str:
    """Return an entry's text in a language; one without a template stays as it is."""
    return words.text(entry.template).format(entry.name) if entry.template else entry.text


def _headline(account: TenantAccount, zone: ZoneInfo, words: DocumentFormat) -> DocumentHeadline:
    owed, kept = account.closing_owed, account.closing_kept
    last = words.day(account.until - SECOND, zone)
    if not owed and kept:
        shown = words.amount(kept, account.currency)
        return DocumentHeadline(shown, words.text("balance on {day}", day=last), words.text("No amount is due."))
    more = words.text("Your balance is {amount}.", amount=words.amount(kept, account.currency)) if kept else ""
    return DocumentHeadline(words.amount(owed, account.currency), words.text("due on {day}", day=last), more)


def _signed_amount(minor: int, currency: str, words: DocumentFormat) -> str:
    """Write a change of an amount, with a plus sign for an increase."""
    if not minor:
        return NO_CHANGE
    return f"+{words.amount(minor, currency)}" if minor > 0 else words.amount(minor, currency)
