"""The frame around every page: what the navigation, the top bar and the menus show."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from ports import clock


@dataclass(frozen=True)
class Link:
    """One entry of the navigation or of a menu; `key` is the letter that opens it."""

    url: str
    label: str
    icon: str = ""
    count: int | None = None
    current: bool = False
    key: str = ""


@dataclass(frozen=True)
class Group:
    """Entries that belong together; the label is for people who cannot see the gap."""

    label: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Project:
    """Where the visitor works now, or could."""

    id: str
    name: str
    tenant: str
    initial: str


@dataclass(frozen=True)
class Meter:
    """One figure of the top bar. `unit` and `sub` are quieter; `phone` keeps it on a small screen."""

    label: str
    value: str
    unit: str = ""
    sub: str = ""
    href: str = ""
    mini_percent: float | None = None
    kind: str = ""
    phone: bool = True


@dataclass(frozen=True)
class Visitor:
    """Who is signed in."""

    name: str
    email: str
    initial: str
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Shell:
    """All that `base.html` reads. Every field has a value that suits a visitor who is not signed in."""

    nav: tuple[Group, ...] = ()
    foot: tuple[Link, ...] = ()
    project: Project | None = None
    others: tuple[Project, ...] = ()
    switch_url: str = ""
    meters: tuple[Meter, ...] = ()
    user: Visitor | None = None
    sign_out_url: str = ""
    search_url: str = ""
    search_hint: str = "Search leases"
    alerts: int = 0
    alerts_url: str = ""
    now: datetime | None = None


Entry = tuple[str, str, str]  # the name of the address, the label, the icon
TENANT_NAV: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Main",
        (("home", "Home", "home"), ("launch", "Launch", "rocket"), ("catalogue", "Catalogue", "layout-grid")),
    ),
    ("Capacity", (("leases", "Leases", "cpu"), ("queue", "Queue", "hourglass"))),
    (
        "Money and people",
        (
            ("spend", "Spend", "chart-bar"),
            ("invoices", "Invoices", "receipt"),
            ("team", "Team", "users"),
            ("tokens", "Tokens", "key"),
            ("audit", "Audit", "history"),
        ),
    ),
)
OPS_NAV: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Fleet",
        (
            ("control-room", "Control room", "map-2"),
            ("clusters", "Clusters and nodes", "server-2"),
            ("cards", "Cards", "cpu"),
            ("offerings", "Offerings", "tag"),
        ),
    ),
    ("Tenants", (("tenants", "Tenants", "building"), ("ops-queue", "Queue", "hourglass"))),
)
FOOT: tuple[Entry, ...] = (("style", "Style page", "palette"),)


def address(name: str) -> str:
    """Return the address of a named page, or nothing while this installation has no such page."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def links(entries: tuple[Entry, ...], path: str, counts: dict[str, int]) -> tuple[Link, ...]:
    """Turn entries into links, leave out pages that do not exist, and mark the one that is open."""
    found = [(name, address(name), label, icon) for name, label, icon in entries]
    return tuple(
        Link(
            url=url,
            label=label,
            icon=icon,
            count=counts.get(name),
            current=path == url or (url != "/" and path.startswith(url)),
            key="n" if name == "launch" else "",
        )
        for name, url, label, icon in found
        if url
    )


def navigation(path: str, *, ops: bool = False, counts: dict[str, int] | None = None) -> tuple[Group, ...]:
    """Return the groups of the side navigation for a page at `path`."""
    plan = OPS_NAV if ops else TENANT_NAV
    groups = (Group(label, links(entries, path, counts or {})) for label, entries in plan)
    return tuple(group for group in groups if group.links)


def visitor(request: HttpRequest) -> Visitor | None:
    """Return who is signed in, with the menu of the account."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    email = str(user.email)
    name = user.get_short_name()
    menu = (
        ("account_email", "E-mail addresses", "mail"),
        ("account_change_password", "Password", "lock"),
        ("mfa_index", "Two-factor and passkeys", "fingerprint"),
    )
    return Visitor(name, email, name[:1].upper(), links(menu, request.path, {}))


def assemble(request: HttpRequest) -> Shell:
    """Put the frame together for one request."""
    signed_in = visitor(request)
    if signed_in is None:
        return Shell(now=clock.now())
    return Shell(
        nav=navigation(request.path),
        foot=links(FOOT, request.path, {}),
        user=signed_in,
        sign_out_url=address("account_logout"),
        now=clock.now(),
    )


def shell(request: HttpRequest) -> dict[str, Any]:
    """Give templates `shell`; it is put together only when a page reads it."""
    return {"shell": SimpleLazyObject(lambda: assemble(request))}
