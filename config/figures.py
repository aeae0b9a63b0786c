"""How money, durations and moments are written: one rule each, the same on every page."""

from datetime import UTC, datetime, timedelta, tzinfo

SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
EXPONENTS = {"JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0, "BHD": 3, "KWD": 3, "TND": 3, "JOD": 3, "OMR": 3}
NANO = 1_000_000_000
MINUS = "\N{MINUS SIGN}"
UNKNOWN = "—"


def symbol(currency: str) -> str:
    """Return the sign that stands before an amount; a currency without one shows its code."""
    return SYMBOLS.get(currency, f"{currency}\N{NO-BREAK SPACE}")


def exponent(currency: str) -> int:
    """Return the number of decimals of a currency's smallest unit."""
    return EXPONENTS.get(currency, 2)


def money(minor: int, currency: str, decimals: int | None = None) -> str:
    """Write minor units as €1,642.18; fewer decimals round half up, for axes and forecasts only."""
    places = exponent(currency)
    if decimals is None or decimals >= places:
        return written(minor, currency, places)
    return written(half_up(minor, 10 ** (places - decimals)), currency, decimals)


def price(nano: int, currency: str) -> str:
    """Write a price of 10⁻⁹ units; one below a cent keeps four decimals instead of reading as nothing."""
    places = exponent(currency)
    shown = half_up(nano, NANO // 10**places)
    if shown == 0 and nano:
        places += 2
        shown = half_up(nano, NANO // 10**places)
    return written(shown, currency, places)


def written(scaled: int, currency: str, places: int) -> str:
    """Write an amount counted in 10⁻places; a negative one has a real minus before the sign."""
    digits = f"{abs(scaled):0{places + 1}d}"
    whole, rest = (digits[:-places], f".{digits[-places:]}") if places else (digits, "")
    return f"{MINUS if scaled < 0 else ''}{symbol(currency)}{int(whole):,}{rest}"


def half_up(number: int, step: int) -> int:
    """Divide to the nearest integer, halves away from zero."""
    return (abs(number) * 2 + step) // (2 * step) * (-1 if number < 0 else 1)


def duration(length: timedelta | int | float, *, tight: bool = False) -> str:
    """Write a length of time in two units, or in one where it is tight."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86_400, whole // 3600, whole // 60
    if whole < 60:
        return (
            f"{seconds:.1f} s" if isinstance(seconds, float) and seconds % 1 and whole < 10 else f"{whole} s"
        )
    if hours < 1:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h" if tight else f"{hours} h {minutes % 60:02d} min"
    return f"{days} d" if tight else f"{days} d {hours % 24} h"


def moment(at: datetime, *, now: datetime | None, zone: tzinfo = UTC, seconds: bool = False) -> str:
    """Write a moment as briefly as today allows: 17:41, 14 Oct 03:12, 14 Oct 2025 03:12."""
    local = at.astimezone(zone)
    clock = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    today = now.astimezone(zone) if now else None
    if today and local.date() == today.date():
        return clock
    year = "" if today and local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {clock}"


def day(at: datetime, *, zone: tzinfo = UTC) -> str:
    """Write a date as 14 Oct 2026."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b} {local.year}"


def relative(at: datetime, now: datetime) -> str:
    """Say how far away a moment is: in 3 h 09 min, 2 d ago."""
    away = at - now
    return f"in {duration(away)}" if away >= timedelta(0) else f"{duration(-away)} ago"
