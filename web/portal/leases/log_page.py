"""Log of a lease: its newest lines, a search, live updates, and the download."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.lifecycle.states import LeaseState
from broker.domain.logs.log_lines import LineSource, LogLevel, NumberedLine
from broker.models import Lease
from broker.services.logs import log_pages
from broker.services.logs.log_pages import LineFilter, LogState
from web.http.downloads import log_response
from web.http.query_strings import LinkOption, chosen_value, link_options, page_url
from web.portal.leases.lease_pages import find_lease_row
from web.portal.leases.lease_tabs import lease_tabs
from web.portal.page_context import PageRequest, tenant_page

LINES_PER_PAGE = 250  # the page stays well below 100 kB
MAX_SEARCH = 200
SOURCE_CHOICES = [
    ("", gettext_noop("All")),
    (LineSource.PROGRAM.value, gettext_noop("Application")),
    (LineSource.PLATFORM.value, gettext_noop("Platform")),
]
LEVEL_CHOICES = [
    ("", gettext_noop("All levels")),
    (LogLevel.ERROR.value, gettext_noop("Errors")),
    (LogLevel.WARNING.value, gettext_noop("Warnings")),
    (LogLevel.INFO.value, gettext_noop("Info")),
]
LINE_LABELS = {"platform": "SYS", "error": "ERROR", "warning": "WARN", "info": "INFO", "": ""}


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One line as the page shows it."""

    number: int
    at: datetime
    time: str  # of day
    day: str  # shown before the first line of a day; else empty
    label: str
    kind: str  # class of its row
    parts: Sequence[tuple[str, bool]]  # its text in parts; True: matches the search


@dataclass(frozen=True, slots=True)
class LeaseLogPage:
    """The log of one lease as its page shows it."""

    lease: Lease
    tabs: Sequence[LinkOption]
    lines: Sequence[ShownLine]
    log: LogState
    search: str
    sources: Sequence[LinkOption]
    levels: Sequence[LinkOption]
    kept: Sequence[tuple[str, str]]  # other parameters that the search form keeps
    earlier: str  # URL of the lines before these
    newest: str  # URL of the newest lines, where these are others
    stream: str  # URL of the live lines; empty where these are not the newest
    retention_days: int

    @property
    def is_over(self) -> bool:
        return self.lease.state == LeaseState.RELEASED

    @property
    def is_filtered(self) -> bool:
        return bool(self.search or self.kept)

    @property
    def is_expired(self) -> bool:
        """Return whether the lease is over and nothing is kept of its log."""
        return self.is_over and self.log.next_line == 1


@tenant_page("leases.read")
def show_log(request: PageRequest, pk: str) -> HttpResponse:
    page = build_log_page(request, find_lease_row(request, pk).lease)
    return render(request, "leases/log.html", {"page": page})


@tenant_page("leases.read")
def download_log(request: PageRequest, pk: str) -> HttpResponse:
    return log_response(find_lease_row(request, pk).lease)


def build_log_page(request: PageRequest, lease: Lease) -> LeaseLogPage:
    """Read the lines that the query string asks for."""
    search = request.GET.get("q", "").strip()[:MAX_SEARCH]
    source = chosen_value(request, "source", dict(SOURCE_CHOICES))
    level = chosen_value(request, "level", dict(LEVEL_CHOICES))
    before = _line_number(request.GET.get("before", ""))
    wanted = LineFilter(search, source, level)
    found = log_pages.read_last_lines(lease, limit=LINES_PER_PAGE, wanted=wanted, before=before)
    log = log_pages.read_log_state(lease)
    here = page_url(request, before="")
    joint = "&" if "?" in here else "?"
    follows = not before and not (lease.state == LeaseState.RELEASED and log.completed_at)
    return LeaseLogPage(
        lease=lease,
        tabs=lease_tabs(lease, "lease-log"),
        lines=shown_lines(found.lines, search),
        log=log,
        search=search,
        sources=link_options(request, "source", [(value, _(label)) for value, label in SOURCE_CHOICES], source),
        levels=link_options(request, "level", [(value, _(label)) for value, label in LEVEL_CHOICES], level),
        kept=[(name, value) for name, value in (("source", source), ("level", level)) if value],
        earlier=f"{here}{joint}before={found.lines[0].number}" if found.has_more else "",
        newest=here if before else "",
        stream=f"{settings.EVENTS_URL}/api/v1/events/logs/{lease.pk}?cursor={found.next_after}" if follows else "",
        retention_days=settings.LOG_RETENTION_DAYS,
    )


def shown_lines(lines: Sequence[NumberedLine], search: str) -> list[ShownLine]:
    """Return lines as the page shows them, in the tenant's time zone."""
    shown, day = [], ""
    for each in lines:
        local = timezone.localtime(each.line.at)
        today = f"{local:%Y-%m-%d}"
        is_platform = each.line.source is LineSource.PLATFORM
        kind = LineSource.PLATFORM.value if is_platform else each.line.level.value
        shown.append(
            ShownLine(
                number=each.number,
                at=each.line.at,
                time=f"{local:%H:%M:%S}",
                day=today if today != day else "",
                label=LINE_LABELS[kind],
                kind=kind,
                parts=split_by_match(each.line.text, search),
            )
        )
        day = today
    return shown


def split_by_match(text: str, search: str) -> list[tuple[str, bool]]:
    """Split a text into parts that match a search and parts that do not."""
    folded, wanted = text.casefold(), search.casefold()
    if not wanted or len(folded) != len(text):  # some letters fold into two: then nothing is marked
        return [(text, False)]
    parts, start = [], 0
    while (found := folded.find(wanted, start)) >= 0:
        if found > start:
            parts.append((text[start:found], False))
        start = found + len(wanted)
        parts.append((text[found:start], True))
    if start < len(text) or not parts:
        parts.append((text[start:], False))
    return parts


def _line_number(text: str) -> int:
    """Return the number in a query string; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
