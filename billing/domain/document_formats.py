"""Words, dates and numbers of documents in the customer's language: English or German."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from billing.domain import documents
from billing.domain.document_texts_de import GERMAN_MONTHS, GERMAN_TEXTS
from billing.domain.money import MINUS, SYMBOLS, exponent_of, format_fixed_point, format_minor, half_up

HOUR = 3600
HOUR_PLACES = 4


class Language(StrEnum):
    ENGLISH = "en"
    GERMAN = "de"


LANGUAGE_NAMES = {Language.ENGLISH: "English", Language.GERMAN: "Deutsch"}


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """Writes texts, days and amounts in one language."""

    language: Language = Language.ENGLISH

    @property
    def german(self) -> bool:
        return self.language == Language.GERMAN

    def text(self, english: str, **values: object) -> str:
        """Return a text with its values; one without a translation stays English."""
        words = GERMAN_TEXTS.get(english, english) if self.german else english
        return words.format(**values) if values else words

    def amount(self, minor: int, currency: str) -> str:
        """Write an amount: €1,642.18 or 1.642,18 €."""
        if not self.german:
            return format_minor(minor, currency)
        digits = _german_digits(format_fixed_point(abs(minor), exponent_of(currency), thousands=","))
        return f"{MINUS if minor < 0 else ''}{digits}\u00a0{SYMBOLS.get(currency, currency)}"

    def rate(self, nano_per_hour: int, currency: str) -> str:
        """Write a price with every significant digit: €1.34 or 1,34 €."""
        if not self.german:
            return documents.format_rate(nano_per_hour, currency)
        digits = documents.format_rate(nano_per_hour, currency).removeprefix(SYMBOLS.get(currency, f"{currency}\u00a0"))
        return f"{_german_digits(digits)}\u00a0{SYMBOLS.get(currency, currency)}"

    def percent(self, basis_points: int) -> str:
        """Write a tax rate: 19 %, 5.5 % or 5,5 %."""
        shown = documents.format_percent(basis_points)
        return _german_digits(shown) if self.german else shown

    def decimal(self, value: int, places: int) -> str:
        """Write an integer that counts 10**-places, without trailing zeros."""
        digits = format_fixed_point(value, places).rstrip("0").rstrip(".")
        return _german_digits(digits) if self.german else digits

    def number(self, value: int) -> str:
        """Write a whole number with thousands grouped."""
        return _german_digits(f"{value:,}") if self.german else f"{value:,}"

    def hours(self, seconds: int) -> str:
        """Write seconds as hours, with up to four decimals."""
        digits = format_fixed_point(half_up(seconds * 10**HOUR_PLACES, HOUR), HOUR_PLACES, thousands=",")
        digits = digits.rstrip("0").rstrip(".")
        return _german_digits(digits) if self.german else digits

    def day(self, at: datetime, zone: ZoneInfo) -> str:
        """Write the local day of a time: 1 November 2026 or 1. November 2026."""
        if not self.german:
            return documents.format_day(at, zone)
        return self.calendar_day(at.astimezone(zone).date())

    def calendar_day(self, day: date) -> str:
        """Write a day: 01 November 2026 or 1. November 2026."""
        return f"{day.day}. {GERMAN_MONTHS[day.month - 1]} {day.year}" if self.german else f"{day:%d %B %Y}"

    def short_day(self, at: datetime, zone: ZoneInfo) -> str:
        """Write the local day of a time in short form: 1 Nov 2026 or 01.11.2026."""
        return f"{at.astimezone(zone):%d.%m.%Y}" if self.german else documents.format_short_day(at, zone)

    def day_of_year(self, at: datetime, zone: ZoneInfo) -> str:
        """Write the local day of a time without its year: 1 Nov or 01.11."""
        here = at.astimezone(zone)
        return f"{here:%d.%m.}" if self.german else f"{here.day} {here:%b}"

    def day_range(self, start: datetime, end: datetime, zone: ZoneInfo) -> str:
        """Write the days of [start, end): 1 – 31 October 2026 or 01.10.2026 – 31.10.2026."""
        if not self.german:
            return documents.format_day_range(start, end, zone)
        first, last = (f"{at.astimezone(zone):%d.%m.%Y}" for at in (start, end - documents.SECOND))
        return first if first == last else f"{first} – {last}"


ENGLISH = DocumentFormat()


def document_format(language: str) -> DocumentFormat:
    """Return the format of a language; English if it is unknown."""
    return DocumentFormat(Language(language)) if language in set(Language) else ENGLISH


def _german_digits(english: str) -> str:
    return english.translate(str.maketrans(",.", ".,"))
