"""Bank statements as CSV: columns are recognised by the names that banks give them.

Understood are a comma, semicolon or tab between fields, UTF-8 or Windows-1252, amounts such as 1.234,56
or 1234.56, and dates such as 2026-11-05, 05.11.2026 or 05.11.26. Lines before the table are skipped.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

from billing.domain.bank.entries import InvalidStatement, StatementEntry, clean_words, number_equal_entries
from billing.domain.money import EXPONENTS, MAX_MINOR

# Each field, and how the heads of its columns begin in lower case, the best first.
HEADS: Mapping[str, tuple[str, ...]] = {
    "date": ("buchungstag", "buchungsdatum", "booking date", "booked", "buchung", "date", "datum", "received_on"),
    "amount": ("betrag", "amount", "umsatz"),
    "currency": ("währung", "waehrung", "currency"),
    "payer": (
        *("zahlungspflichtige", "auftraggeber", "beguenstigter", "begünstigter", "name zahlungsbeteiligter", "payer"),
        *("payee", "counterparty", "name"),
    ),
    "iban": ("iban zahlungsbeteiligter", "kontonummer/iban", "iban", "account number", "counterparty_account"),
    "account": ("auftragskonto", "iban auftragskonto", "own account", "account"),
    "remittance": ("verwendungszweck", "vorgang/verwendungszweck", "payment reference", "remittance", "description"),
    "end_to_end": ("kundenreferenz (end-to-end)", "kundenreferenz", "end-to-end", "end_to_end_id"),
    "bank_reference": ("bank reference", "bank_reference", "transaction id", "id"),
    "state": ("status", "info"),
    "sign": ("soll/haben",),
}
PENDING = ("vorgemerkt", "pending", "pdng")
DELIMITERS = ";,\t"
DAY_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y")
AMOUNT = re.compile(r"(?P<sign>[+-]?)(?P<digits>[0-9][0-9.,' ]*)")
HEAD_CURRENCY = re.compile(r"\((?P<code>[A-Z]{3}|€)\)")
MAX_LINES, MAX_FIELD = 20_000, 2_000


def parse_csv_statement(content: bytes, *, account: str = "", currency: str = "") -> list[StatementEntry]:
    """Return the booked entries of a CSV file, or raise InvalidStatement.

    `account` and `currency` are those of our account, where the file has no column for them.
    """
    rows = _table(content)
    columns, head = _columns(rows)
    if "date" not in columns or "amount" not in columns:
        raise InvalidStatement(
            "The file has no columns for the date and the amount, such as Buchungstag and Betrag, or date and amount."
        )
    written = HEAD_CURRENCY.search(head[columns["amount"]])
    code = ("EUR" if written["code"] == "€" else written["code"]) if written else currency
    return number_equal_entries(_entries(rows, columns, account=account, currency=code))


def _table(content: bytes) -> Iterator[list[str]]:
    """Yield the rows of the file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    if "\0" in text:
        raise InvalidStatement("The file is not text.")
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise InvalidStatement(f"The file has more than {MAX_LINES:,} lines.")
    counts = {each: max((line.count(each) for line in lines[:40]), default=0) for each in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda each: counts[each])
    if not counts[delimiter]:
        raise InvalidStatement("The file is not a table with fields between commas or semicolons.")
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error as error:
        raise InvalidStatement(f"The file is not a CSV table: {error}.") from error


def _columns(rows: Iterator[list[str]]) -> tuple[dict[str, int], list[str]]:
    """Return the position of each known column, reading up to the head of the table."""
    for row in rows:
        heads = [cell.strip().lower() for cell in row]
        found = {
            field: at
            for field, names in HEADS.items()
            if (at := next((heads.index(h) for n in names for h in heads if h.startswith(n)), None)) is not None
        }
        if "date" in found and "amount" in found:
            if "" in heads and heads.index("") == found["amount"] + 1:
                found["sign"] = found["amount"] + 1  # Volksbanken write S or H in a column without a name
            return found, row
    return {}, []


def _entries(
    rows: Iterator[list[str]], columns: Mapping[str, int], *, account: str, currency: str
) -> Iterator[StatementEntry]:
    for number, row in enumerate(rows, 1):
        cell = {field: row[at].strip()[:MAX_FIELD] if at < len(row) else "" for field, at in columns.items()}
        if not cell["date"] and not cell["amount"]:
            continue
        if any(word in cell.get("state", "").lower() for word in PENDING):
            continue
        try:
            code = cell.get("currency") or currency
            minor = _amount(cell["amount"], code) * (-1 if cell.get("sign", "").upper() in ("S", "SOLL", "D") else 1)
            if minor:
                yield _entry(cell, minor, code, account)
        except InvalidStatement as error:
            raise InvalidStatement(f"Row {number}: {error}") from error


def _entry(cell: Mapping[str, str], minor: int, currency: str, account: str) -> StatementEntry:
    return StatementEntry(
        account=clean_words([cell.get("account") or account]),
        booked_on=_day(cell["date"]),
        minor=abs(minor),
        currency=currency,
        incoming=minor > 0,
        counterparty=clean_words([cell.get("payer", "")]),
        counterparty_account=cell.get("iban", "").replace(" ", "")[:40],
        end_to_end_id=cell.get("end_to_end", "")[:140],
        bank_reference=cell.get("bank_reference", "")[:140],
        remittance=clean_words([cell.get("remittance", "")]),
    )


def _day(text: str) -> date:
    for written in DAY_FORMATS:
        try:
            return datetime.strptime(text, written).date()  # noqa: DTZ007  # a day has no time zone
        except ValueError:
            continue
    raise InvalidStatement(f"{text[:40]!r} is not a date such as 2026-11-05 or 05.11.2026.")


def _amount(text: str, currency: str) -> int:
    """Return an amount in minor units; the last comma or point is the decimal sign."""
    if currency not in EXPONENTS:
        raise InvalidStatement(f"{currency[:10]!r} is not a supported currency.")
    compact = text.replace("\u2212", "-").replace("€", "").replace(currency, "").strip()
    trailing = compact.endswith(("-", "+"))
    found = AMOUNT.fullmatch(f"{compact[-1]}{compact[:-1]}" if trailing else compact)
    if found is None:
        raise InvalidStatement(f"{text[:40]!r} is not an amount.")
    digits, places = found["digits"].replace("'", "").replace(" ", ""), EXPONENTS[currency]
    mark = max(digits.rfind(","), digits.rfind("."))
    decimals = len(digits) - mark - 1 if mark >= 0 else 0
    if mark >= 0 and (_is_grouping(digits, digits[mark], decimals) and places != 3):
        whole, parts = re.sub("[.,]", "", digits), ""
    else:
        whole, parts = (
            re.sub("[.,]", "", digits[:mark] if mark >= 0 else digits),
            digits[mark + 1 :] if mark >= 0 else "",
        )
    if len(parts) > places and parts[places:].strip("0"):
        raise InvalidStatement(f"{text[:40]!r} has more decimals than {currency}.")
    minor = int(Decimal(f"{whole or '0'}.{parts or '0'}").scaleb(places))
    if minor > MAX_MINOR:
        raise InvalidStatement(f"{text[:40]!r} is too large.")
    return -minor if found["sign"] == "-" else minor


def _is_grouping(digits: str, mark: str, decimals: int) -> bool:
    """Return whether the last mark separates thousands.

    Three digits follow it, and no other mark precedes it.
    """
    other = "." if mark == "," else ","
    return decimals == 3 and other not in digits
