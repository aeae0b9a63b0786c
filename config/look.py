"""The frame around every page: what the navigation, the top bar and the menus show.

Where one is comes from `tenants.portal.shell.places`, what it costs from `billing.portal.shell.figures`,
which returns plain values, any of: counts {address name: number}, meters [{label, value, unit, sub, href,
mini_percent, kind, phone, id, source}], alerts, alerts_url, note, search_url, search_hint.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from config.promise import promise
from ports import clock
from tenants.portal.doors import SESSION_NO_TENANT, enter
from tenants.portal.shell import Place, places


@dataclass(frozen=True)
class Link:
    """One entry of the navigation or of a menu; `key` is the letter that opens it."""

    url: str
    label: str
    icon: str = ""
    count: int | None = None
    current: bool = False
    key: str = ""
    name: str = ""  # of the address; where a page that follows what happens finds the count


@dataclass(frozen=True)
class Group:
    """Entries that belong together; the label is for people who cannot see the gap."""

    label: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Meter:
    """One figure of the top bar. `unit` and `sub` are quieter; `phone` keeps it on a small screen.

    A value that takes long comes by itself from `source`, whose answer holds an element with the meter's `id`.
    """

    label: str
    value: str
    unit: str = ""
    sub: str = ""
    href: str = ""
    mini_percent: float | None = None
    kind: str = ""
    phone: bool = True
    id: str = ""
    source: str = ""


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
    project: Place | None = None
    others: tuple[Place, ...] = ()
    switch_url: str = ""
    meters: tuple[Meter, ...] = ()
    user: Visitor | None = None
    sign_out_url: str = ""
    search_url: str = ""
    search_hint: str = "Search leases"
    alerts: int = 0
    alerts_url: str = ""
    note: dict[str, str] | None = None  # what every page says first: kind, head, text
    now: datetime | None = None


# Who opens these needs it everywhere.
OF_THE_WHOLE = {"wallet": "billing.read", "invoices": "billing.read", "audit": "audit.read"}
BELONGS = (  # pages that open from an entry whose address is another's
    ("/ops/nodes/", "/ops/clusters/"),
    ("/ops/stripe/", "/ops/system/"),
    ("/payment/", "/invoices/"),
)
Entry = tuple[str, str, str]  # the name of the address, the label, the icon
Plan = tuple[tuple[str, tuple[Entry, ...]], ...]
TENANT_NAV: Plan = (
    (
        "Main",
        (
            ("home", "Home", "home"),
            ("launch", "Launch", "rocket"),
            ("catalogue", "Catalogue", "layout-grid"),
        ),
    ),
    (
        "Capacity",
        (("leases", "Leases", "cpu"), ("queue", "Queue", "hourglass"), ("volumes", "Volumes", "database")),
    ),
    (
        "Money and people",
        (
            ("spend", "Spend", "chart-bar"),
            ("budgets", "Budgets", "target"),
            ("wallet", "Wallet", "wallet"),
            ("invoices", "Invoices", "receipt"),
            ("projects", "Projects", "sitemap"),
            ("team", "Team", "users"),
            ("tokens", "Tokens", "key"),
            ("audit", "Audit", "history"),
        ),
    ),
)
OPS_NAV: Plan = (
    (
        "Fleet",
        (
            ("control-room", "Control room", "map-2"),
            ("ops-clusters", "Clusters and nodes", "server-2"),
            ("ops-cards", "Cards", "cpu"),
            ("ops-plans", "Plans", "arrows-split-2"),
            ("ops-offerings", "Offerings", "tag"),
        ),
    ),
    (
        "Tenants and the house",
        (
            ("tenants", "Tenants", "building"),
            ("ops-queue", "Queue", "hourglass"),
            ("ops-invoices", "Invoices", "receipt"),
            ("ops-disputes", "Disputes", "help"),
            ("ops-corrections", "Corrections", "edit"),
            ("ops-grants", "Credit", "gift"),
            ("ops-discounts", "Discounts", "scissors"),
            ("ops-commitments", "Commitments", "lock"),
            ("ops-month-close", "Month close", "calendar"),
            ("ops-ledger", "Ledger", "scale"),
            ("ops-taxes", "Taxes", "report-money"),
            ("ops-system", "System", "settings"),
        ),
    ),
)
STYLE: Entry = ("style", "Style page", "palette")
TO_OPS: Entry = ("control-room", "Operations", "map-2")
TO_TENANT: Entry = ("home", "Tenant pages", "home")
ACCOUNT: tuple[Entry, ...] = (
    ("account", "Profile", "user"),
    ("account_email", "E-mail addresses", "mail"),
    ("account_change_password", "Password", "lock"),
    ("mfa_index", "Two-factor and passkeys", "fingerprint"),
)
ACCOUNT_PAGES = "/account/"
FIGURES = "billing.portal.shell.figures"
OPS_FIGURES = "billing.portal.ops.frame.figures"


def address(name: str) -> str:
    """Return the address of a named page, or nothing while this installation has no such page."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def opened(path: str, urls: Iterable[str]) -> str | None:
    """Return the address whose page is open: the longest that the path begins with."""
    inside = [url for url in urls if url and (path == url or (url != "/" and path.startswith(url)))]
    return max(inside, key=len, default=None)


def links(
    entries: Iterable[Entry], path: str, counts: dict[str, int] | None = None, current: str | None = None
) -> tuple[Link, ...]:
    """Turn entries into links, and leave out pages that do not exist."""
    found = [(name, address(name), label, icon) for name, label, icon in entries]
    current = current or opened(path, (url for _, url, _, _ in found))
    return tuple(
        Link(
            url, label, icon, (counts or {}).get(name), url == current, "n" if name == "launch" else "", name
        )
        for name, url, label, icon in found
        if url
    )


def closed(request: HttpRequest) -> frozenset[str]:
    """Return the names of the pages that would only say no to this visitor."""
    roles = getattr(request, "roles", None)
    if roles is None:
        return frozenset()
    return frozenset(name for name, action in OF_THE_WHOLE.items() if not roles.may(action))


def navigation(
    path: str,
    plan: Plan = TENANT_NAV,
    counts: dict[str, int] | None = None,
    without: frozenset[str] = frozenset(),
) -> tuple[Group, ...]:
    """Return the groups of the side navigation for a page at `path`; one link at most is current."""
    path = next((path.replace(below, above, 1) for below, above in BELONGS if path.startswith(below)), path)
    current = opened(path, (address(name) for _, entries in plan for name, _, _ in entries)) or "-"
    groups = (
        Group(label, links((entry for entry in entries if entry[0] not in without), path, counts, current))
        for label, entries in plan
    )
    return tuple(group for group in groups if group.links)


def visitor(request: HttpRequest) -> Visitor | None:
    """Return who is signed in, with the menu of the account."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    email = str(user.email)
    name = user.get_short_name()
    return Visitor(name, email, name[:1].upper(), links(ACCOUNT, request.path))


def foot(*, ops: bool, staff: bool, only_ops: bool) -> tuple[Entry, ...]:
    """Return the way from the operations to the pages of tenants and back, for who has both."""
    if not staff or only_ops:
        return ()
    return (TO_TENANT,) if ops else (TO_OPS,)


def figures(request: HttpRequest, source: str) -> dict[str, Any]:
    """Return what billing tells about money and counts, or nothing while it has no such room."""
    room, _, _ = source.rpartition(".")
    if find_spec(room) is None:
        return {}
    told: dict[str, Any] = import_string(source)(request)
    return told


def assemble(request: HttpRequest) -> Shell:
    """Put the frame together for one request."""
    now = getattr(request, "now", None) or clock.now()
    signed_in = visitor(request)
    if signed_in is None:
        return Shell(now=now)
    staff = getattr(request.user, "is_staff", False)
    ops = staff and request.path.startswith("/ops/")
    if request.path.startswith(ACCOUNT_PAGES) and not hasattr(request, "visitor"):
        enter(request)  # the views of accounts know of no tenant; their frame is everybody's
    # An operator of no tenant has nothing but the operations, and a way to nowhere else.
    only_ops = staff and SESSION_NO_TENANT in getattr(request, "session", {})
    told = figures(request, OPS_FIGURES if ops else FIGURES)
    here, others = (Place("", "Operations", told["fleet"]), ()) if ops else places(request)
    return Shell(
        nav=navigation(
            request.path, OPS_NAV if ops or only_ops else TENANT_NAV, told.get("counts"), closed(request)
        ),
        foot=links((*foot(ops=ops, staff=staff, only_ops=only_ops), STYLE), request.path),
        project=here,
        others=others,
        switch_url=address("switch"),
        meters=tuple(Meter(**meter) for meter in told.get("meters", ())),
        user=signed_in,
        sign_out_url=address("account_logout"),
        search_url=told.get("search_url", ""),
        search_hint=told.get("search_hint", "Search leases"),
        alerts=told.get("alerts", 0),
        alerts_url=told.get("alerts_url", ""),
        note=told.get("note"),
        now=now,
    )


def shell(request: HttpRequest) -> dict[str, Any]:
    """Give templates `shell` and `promise`; each is put together only when a page reads it."""
    return {"shell": SimpleLazyObject(lambda: assemble(request)), "promise": SimpleLazyObject(promise)}
