"""Formatting of money, durations and moments, the same on every page."""

from datetime import UTC, datetime, timedelta, tzinfo

from django.utils.translation import gettext as _

from billing.domain.money import MINUS, SYMBOLS, exponent_of, format_fixed_point, format_minor, half_up
from broker.domain.geometry.cpu_blocks import CPU_PROFILES, VCPU_SUFFIX
from broker.domain.geometry.host_resources import HostResources, format_cpus, format_size
from broker.domain.geometry.profiles import WHOLE_GPU

NANO = 1_000_000_000
UNKNOWN = "—"


def format_profile(profile: str) -> str:
    """Name a profile for people: whole GPU, 4 vCPU; a slice keeps its name."""
    if profile.endswith(VCPU_SUFFIX):
        return f"{profile.removesuffix(VCPU_SUFFIX)} vCPU"
    return _("whole GPU") if profile == WHOLE_GPU else profile


def short_profile(profile: str) -> str:
    """Return a profile's short name, as it fits on a slice: 3g, GPU, 4 vCPU."""
    if profile.endswith(VCPU_SUFFIX):
        return profile.removesuffix(VCPU_SUFFIX) if profile == CPU_PROFILES[0].name else format_profile(profile)
    return "GPU" if profile == WHOLE_GPU else profile.partition(".")[0]


def format_gpu_memory(memory_gb: int) -> str:
    """Format the memory of a GPU or slice: 80 GB; no GPU for zero."""
    return _("{memory_gb} GB").format(memory_gb=memory_gb) if memory_gb else _("no GPU")


def format_resources(amounts: HostResources) -> str:
    """Format what a slice brings: 12 CPUs, 96 GiB memory, 200 GiB scratch."""
    cpus = format_cpus(amounts.cpu_milli)
    known = [
        amounts.cpu_milli and (_("1 CPU") if cpus == "1" else _("{cpus} CPUs").format(cpus=cpus)),
        amounts.memory_mib and _("{size} memory").format(size=format_size(amounts.memory_mib)),
        amounts.scratch_mib and _("{size} scratch").format(size=format_size(amounts.scratch_mib)),
    ]
    return ", ".join(text for text in known if text)


def currency_symbol(currency: str) -> str:
    """Return a currency's symbol; its code if it has none."""
    return SYMBOLS.get(currency, f"{currency}\N{NO-BREAK SPACE}")


def format_money(minor: int, currency: str, decimals: int | None = None) -> str:
    """Format minor units as €1,642.18.

    Fewer decimals round half up, for axes and forecasts only.
    """
    places = exponent_of(currency)
    if decimals is None or decimals >= places:
        return format_minor(minor, currency)
    return format_amount(half_up(minor, 10 ** (places - decimals)), currency, decimals)


def format_price(nano: int, currency: str) -> str:
    """Format a price in 10⁻⁹ units; one below a cent gets two more decimals."""
    places = exponent_of(currency)
    amount = half_up(nano * 10**places, NANO)
    if amount == 0 and nano:
        places += 2
        amount = half_up(nano * 10**places, NANO)
    return format_amount(amount, currency, places)


def format_amount(amount: int, currency: str, places: int) -> str:
    """Format an amount counted in 10⁻places, with a real minus before the symbol."""
    digits = format_fixed_point(abs(amount), places, thousands=",")
    return f"{MINUS if amount < 0 else ''}{currency_symbol(currency)}{digits}"


def format_duration(length: timedelta | int | float, *, tight: bool = False) -> str:
    """Format a duration in two units, or in one if `tight`."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86_400, whole // 3600, whole // 60
    if whole < 60:
        return f"{seconds:.1f} s" if isinstance(seconds, float) and seconds % 1 and whole < 10 else f"{whole} s"
    if hours < 1:
        return _("{minutes} min").format(minutes=minutes)
    if hours < 48:
        return f"{hours} h" if tight else _("{hours} h {minutes:02d} min").format(hours=hours, minutes=minutes % 60)
    return f"{days} d" if tight else f"{days} d {hours % 24} h"


def format_moment(at: datetime, *, now: datetime | None, zone: tzinfo = UTC, seconds: bool = False) -> str:
    """Format a moment relative to today: 17:41, 14 Oct 03:12, 14 Oct 2025 03:12."""
    local = at.astimezone(zone)
    clock = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    today = now.astimezone(zone) if now else None
    if today and local.date() == today.date():
        return clock
    year = "" if today and local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {clock}"


def format_day(at: datetime, *, zone: tzinfo = UTC) -> str:
    """Format a date as 14 Oct 2026."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b} {local.year}"


def format_relative(at: datetime, now: datetime) -> str:
    """Format the distance to a moment: in 3 h 09 min, 2 d ago."""
    away = at - now
    return (
        _("in {away}").format(away=format_duration(away))
        if away >= timedelta(0)
        else _("{away} ago").format(away=format_duration(-away))
    )
