"""Account statements as documents."""

from zoneinfo import ZoneInfo

from billing.domain.documents import (
    SECOND,
    Document,
    DocumentColumn,
    DocumentGroup,
    DocumentHeadline,
    DocumentNote,
    DocumentTotal,
    format_day,
    format_day_range,
    format_short_day,
)
from billing.domain.money import format_minor
from billing.services.documents.document_parties import current_supplier, document_party
from billing.services.ledger.account_entries import TenantAccount
from billing.services.tax import tax_determination
from tenants.models import Tenant

COLUMNS = (
    DocumentColumn("Day", "when"),
    DocumentColumn("Description", "what"),
    DocumentColumn("Amount due", "num"),
    DocumentColumn("Balance", "num"),
    DocumentColumn("Total due", "num"),
    DocumentColumn("New balance", "num"),
)
SOURCE_NOTE = (
    "Every row comes from the ledger, a double-entry record that never changes."
    " Amounts paid by credits are no longer due. Credits themselves are not included; the wallet shows them."
)
NO_CHANGE = "—"


def account_statement_document(tenant: Tenant, account: TenantAccount) -> Document:
    """Return the statement of an account for a period, in the tenant's time zone."""
    zone, currency = ZoneInfo(tenant.time_zone), account.currency
    days = format_day_range(account.since, account.until, zone)
    rows = tuple(
        (
            format_short_day(entry.at, zone),
            entry.text,
            _signed_amount(entry.owed, currency),
            _signed_amount(entry.kept, currency),
            format_minor(entry.owed_after, currency),
            format_minor(entry.kept_after, currency),
        )
        for entry in account.entries
    )
    return Document(
        title="Account statement",
        number=days,
        supplier=current_supplier(),
        to="For",
        customer=document_party(tax_determination.get_customer(tenant)),
        facts=(
            ("From", format_day(account.since, zone)),
            ("Through", format_day(account.until - SECOND, zone)),
            ("Time zone", tenant.time_zone),
            ("Currency", currency),
        ),
        headline=_headline(account, zone),
        columns=COLUMNS,
        groups=(DocumentGroup("", "", rows),),
        sums=(
            DocumentTotal("Opening amount due", format_minor(account.opening_owed, currency)),
            DocumentTotal("Closing amount due", format_minor(account.closing_owed, currency), "strong"),
            DocumentTotal("Opening balance", format_minor(account.opening_kept, currency)),
            DocumentTotal("Closing balance", format_minor(account.closing_kept, currency), "strong"),
        ),
        notes=(DocumentNote("Source", SOURCE_NOTE),),
        foot=f"Account statement, {days} · {tenant.pk}",
    )


def _headline(account: TenantAccount, zone: ZoneInfo) -> DocumentHeadline:
    owed, kept = account.closing_owed, account.closing_kept
    last = format_day(account.until - SECOND, zone)
    if not owed and kept:
        return DocumentHeadline(format_minor(kept, account.currency), f"balance on {last}", "No amount is due.")
    more = f"Your balance is {format_minor(kept, account.currency)}." if kept else ""
    return DocumentHeadline(format_minor(owed, account.currency), f"due on {last}", more)


def _signed_amount(minor: int, currency: str) -> str:
    """Write a change of an amount, with a plus sign for an increase."""
    if not minor:
        return NO_CHANGE
    return f"+{format_minor(minor, currency)}" if minor > 0 else format_minor(minor, currency)
