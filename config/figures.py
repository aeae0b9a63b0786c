"""How money, durations and moments are written: one rule each, the same on every page."""

from datetime import UTC, datetime, timedelta, tzinfo

from billing.domain.money import MINUS, SYMBOLS, exponent_of, fixed_point, half_up, shown

NANO = 1_000_000_000
UNKNOWN = "—"


def symbol(currency: str) -> str:
    """Return what stands before an amount; a currency without a sign shows its code."""
    return SYMBOLS.get(currency, f"{currency}\N{NO-BREAK SPACE}")


def money(minor: int, currency: str, decimals: int | None = None) -> str:
    """Write minor units as €1,642.18; fewer decimals round half up, for axes and forecasts only."""
    places = exponent_of(currency)
    if decimals is None or decimals >= places:
        return shown(minor, currency)
    return written(half_up(minor, 10 ** (places - decimals)), currency, decimals)


def price(nano: int, currency: str) -> str:
    """Write a price of 10⁻⁹ units; one below a cent keeps two more decimals instead of reading as nothing."""
    places = exponent_of(currency)
    amount = half_up(nano * 10**places, NANO)
    if amount == 0 and nano:
        places += 2
        amount = half_up(nano * 10**places, NANO)
    return written(amount, currency, places)


def written(amount: int, currency: str, places: int) -> str:
    """Write an amount counted in 10⁻places; a negative one has a real minus before the sign."""
    digits = fixed_point(abs(amount), places, thousands=",")
    return f"{MINUS if amount < 0 else ''}{symbol(currency)}{digits}"


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
