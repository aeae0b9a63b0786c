"""Import bank statements: new entries wait for an operator; entries seen before change nothing."""

import hashlib
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction

from billing.domain.bank.camt053 import parse_camt053
from billing.domain.bank.csv_statements import parse_csv_statement
from billing.domain.bank.entries import InvalidStatement, StatementEntry
from billing.models import BankEntry, BankEntryStatus, BankStatement
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue

MAX_BYTES = 2_000_000
MAX_ENTRIES = 10_000
CAMT, CSV = "camt053", "csv"
IMPORT_LOCK_SQL = "SELECT pg_advisory_xact_lock(8, 0)"


@transaction.atomic
def import_statement(
    content: bytes, *, file_name: str, account: str = "", currency: str = "", actor: Actor, now: datetime
) -> BankStatement:
    """Import a CAMT.053 or CSV file, or return the import of the same file.

    `account` and `currency` are for CSV files that do not name them. Raises InvalidValue for a file that cannot be
    read; nothing of it is taken then.
    """
    seal = hashlib.sha256(content).hexdigest()
    kind, entries = _parse(content, account, currency)
    with connection.cursor() as cursor:
        cursor.execute(IMPORT_LOCK_SQL)  # of two people who import at once, the second finds the first's entries
    if before := BankStatement.objects.filter(sha256=seal).first():
        before.is_repeated = True
        return before
    known = set(BankEntry.objects.filter(key__in=[each.key for each in entries]).values_list("key", flat=True))
    new = [each for each in entries if each.key not in known]
    statement = BankStatement.objects.create(
        file_name=" ".join(file_name.replace("\0", "").split())[:200] or "statement",
        sha256=seal,
        format=kind,
        entries_found=len(entries),
        entries_new=len(new),
        imported_at=now,
        imported_by=actor.label,
    )
    BankEntry.objects.bulk_create(_row(statement, each) for each in new)
    audit.record(
        "bank_statement.import",
        statement,
        statement.file_name,
        actor=actor,
        now=now,
        format=kind,
        entries=len(entries),
        new=len(new),
    )
    return statement


def _parse(content: bytes, account: str, currency: str) -> tuple[str, list[StatementEntry]]:
    if not content.strip():
        raise InvalidValue("content", "The file is empty.", fix="Choose the statement that your bank sent.")
    if len(content) > MAX_BYTES:
        raise InvalidValue(
            "content",
            f"The file is larger than {MAX_BYTES // 1_000_000} MB.",
            fix="Download the statements of fewer days at once, and unpack ZIP files first.",
        )
    is_xml = content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        if is_xml:
            kind, entries = CAMT, parse_camt053(content)
        else:
            own = account or settings.SUPPLIER_BANK["iban"]
            kind, entries = CSV, parse_csv_statement(content, account=own, currency=currency)
    except InvalidStatement as error:
        raise InvalidValue(
            "content", str(error), fix="Export the statement as CAMT.053 or CSV, and try again."
        ) from error
    if len(entries) > MAX_ENTRIES:
        raise InvalidValue("content", f"The file has more than {MAX_ENTRIES:,} entries.", fix="Split it by days.")
    return kind, entries


def _row(statement: BankStatement, entry: StatementEntry) -> BankEntry:
    """Return the row of an entry; our own payments need no decision."""
    ours = not entry.incoming and not entry.returned
    return BankEntry(
        statement=statement,
        key=entry.key,
        account=entry.account,
        booked_on=entry.booked_on,
        minor=entry.minor,
        currency=entry.currency,
        incoming=entry.incoming,
        returned=entry.returned,
        counterparty=entry.counterparty,
        counterparty_account=entry.counterparty_account[:40],
        end_to_end_id=entry.end_to_end_id,
        bank_reference=entry.bank_reference,
        references=list(entry.references),
        remittance=entry.remittance,
        status=BankEntryStatus.OUTGOING if ours else BankEntryStatus.OPEN,
    )
