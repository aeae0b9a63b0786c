"""Booking batches in DATEV's format: EXTF, header 700, Buchungsstapel, version 13.

A batch has a header of 31 fields, the headings of 125 columns, and a row for each booking: semicolons,
CRLF, Windows-1252, decimal commas, days without their year. It lies within one fiscal year.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from billing.domain.money import exponent_of, format_fixed_point, half_up

HEADER_VERSION, CATEGORY, FORMAT_NAME, FORMAT_VERSION = 700, 21, "Buchungsstapel", 13
MAX_TEXT, MAX_DOCUMENT, MAX_NAME = 60, 36, 30
DOCUMENT_CHARACTERS = re.compile(r"[^A-Za-z0-9$&%*+\-/]")
COLUMNS = (
    "Umsatz (ohne Soll/Haben-Kz)", "Soll/Haben-Kennzeichen", "WKZ Umsatz", "Kurs", "Basisumsatz",
    "WKZ Basisumsatz", "Konto", "Gegenkonto (ohne BU-Schlüssel)", "BU-Schlüssel", "Belegdatum", "Belegfeld 1",
    "Belegfeld 2", "Skonto", "Buchungstext", "Postensperre", "Diverse Adressnummer", "Geschäftspartnerbank",
    "Sachverhalt", "Zinssperre", "Beleglink",
    *(f"Beleginfo – {what} {n}" for n in range(1, 9) for what in ("Art", "Inhalt")),
    "KOST1 – Kostenstelle", "KOST2 – Kostenstelle", "Kost Menge", "EU-Land u. USt-IdNr.", "EU-Steuersatz",
    "Abw. Versteuerungsart", "Sachverhalt L+L", "Funktionsergänzung L+L", "BU 49 Hauptfunktionstyp",
    "BU 49 Hauptfunktionsnummer", "BU 49 Funktionsergänzung",
    *(f"Zusatzinformation – {what} {n}" for n in range(1, 21) for what in ("Art", "Inhalt")),
    "Stück", "Gewicht", "Zahlweise", "Forderungsart", "Veranlagungsjahr", "Zugeordnete Fälligkeit", "Skontotyp",
    "Auftragsnummer", "Buchungstyp", "USt-Schlüssel (Anzahlungen)", "EU-Mitgliedstaat (Anzahlungen)",
    "Sachverhalt L+L (Anzahlungen)", "EU-Steuersatz (Anzahlungen)", "Erlöskonto (Anzahlungen)", "Herkunft-Kz",
    "Leerfeld", "KOST-Datum", "SEPA-Mandatsreferenz", "Skontosperre", "Gesellschaftername", "Beteiligtennummer",
    "Identifikationsnummer", "Zeichnernummer", "Postensperre bis", "Bezeichnung", "Kennzeichen", "Festschreibung",
    "Leistungsdatum", "Datum Zuord.", "Fälligkeit", "Generalumkehr", "Steuersatz", "Land", "Abrechnungsreferent",
    "BVV-Position", "EU-Mitgliedstaat u. UStID (Ursprung)", "EU-Steuersatz (Ursprung)", "Abw. Skontokonto",
)  # fmt: skip
BASE_PLACES = 2


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Whose bookings they are, and of which days."""

    advisor: int  # Beraternummer
    client: int  # Mandantennummer
    fiscal_year: date
    account_length: int
    first: date
    last: date
    name: str
    currency: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking on an account and its contra account.

    `rate` is the base currency for one unit, in 10⁻⁶. The key belongs to the contra account, so that is
    the one of income or tax.
    """

    minor: int
    currency: str
    account: str
    contra: str
    is_debit: bool  # of the account
    key: str
    day: date
    document: str
    reference: str
    text: str
    cost_centre: str
    rate: int | None = None


def write_batch(header: BatchHeader, bookings: Iterable[Booking]) -> Iterator[bytes]:
    """Yield the lines of a batch; characters outside Windows-1252 become question marks."""
    for line in (_header_line(header), ";".join(COLUMNS), *(_booking_line(each, header) for each in bookings)):
        yield f"{line}\r\n".encode("cp1252", errors="replace")


def base_minor(minor: int, currency: str, rate: int | None) -> int:
    """Return an amount in cents of the base currency; no rate means the same currency."""
    scale = 10 ** exponent_of(currency)
    return half_up(minor * 10**BASE_PLACES * (rate or 10**6), scale * 10**6)


def _header_line(header: BatchHeader) -> str:
    fields = [
        _text("EXTF"),
        str(HEADER_VERSION),
        str(CATEGORY),
        _text(FORMAT_NAME),
        str(FORMAT_VERSION),
        f"{header.made_at:%Y%m%d%H%M%S}000",
        "",  # imported: set by DATEV
        _text("RE"),
        _text("gpubroker"),
        _text(""),
        str(header.advisor),
        str(header.client),
        f"{header.fiscal_year:%Y%m%d}",
        str(header.account_length),
        f"{header.first:%Y%m%d}",
        f"{header.last:%Y%m%d}",
        _text(header.name, MAX_NAME),
        _text(""),
        "1",  # financial accounting
        "0",
        "0",  # not fixed: the accountant fixes a batch
        _text(header.currency),
        *[""] * 9,
    ]
    return ";".join(fields)


def _booking_line(each: Booking, header: BatchHeader) -> str:
    values = {
        "Umsatz (ohne Soll/Haben-Kz)": _amount(base_minor(each.minor, each.currency, None)),
        "Soll/Haben-Kennzeichen": _text("S" if each.is_debit else "H"),
        "WKZ Umsatz": _text(each.currency),
        "Konto": each.account,
        "Gegenkonto (ohne BU-Schlüssel)": each.contra,
        "BU-Schlüssel": _text(each.key) if each.key else "",
        "Belegdatum": f"{each.day:%d%m}",
        "Belegfeld 1": _text(DOCUMENT_CHARACTERS.sub("", each.document), MAX_DOCUMENT),
        "Belegfeld 2": _text(DOCUMENT_CHARACTERS.sub("", each.reference), MAX_DOCUMENT),
        "Buchungstext": _text(each.text, MAX_TEXT),
        "KOST1 – Kostenstelle": _text(each.cost_centre, MAX_DOCUMENT),
        "Festschreibung": "0",
    }
    if each.rate is not None and each.currency != header.currency:
        values |= {
            "Kurs": _foreign_rate(each.rate),
            "Basisumsatz": _amount(base_minor(each.minor, each.currency, each.rate)),
            "WKZ Basisumsatz": _text(header.currency),
        }
    return ";".join(values.get(name, "") for name in COLUMNS)


def _foreign_rate(rate: int) -> str:
    """Write foreign units per base unit; the format has no rates below one."""
    per_unit = half_up(10**12, rate)
    return format_fixed_point(per_unit, 6).replace(".", ",") if per_unit >= 10**6 else ""


def _amount(minor: int) -> str:
    return format_fixed_point(minor, BASE_PLACES).replace(".", ",")


def _text(words: str, most: int = MAX_TEXT) -> str:
    clean = " ".join(words.split())[:most].replace('"', '""')
    return f'"{clean}"'
