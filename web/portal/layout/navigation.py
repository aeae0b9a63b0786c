"""Page layout: navigation, top bar and menus of every page.

The open project comes from `project_switcher.places`, figures from `tenant_figures.figures`, which
returns plain values, any of: counts {URL name: number}, meters [{label, value, unit, sub, href,
mini_percent, kind, phone, id, source}], alerts, alerts_url, alerts_source, note, search_url, search_hint.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ports import clock
from web.portal.account.sign_in_teaser import sign_in_teaser
from web.portal.authentication import SESSION_NO_TENANT, enter_tenant_of_session
from web.portal.kept_forms import take_kept_form
from web.portal.layout.project_switcher import SwitcherEntry, switcher_entries


@dataclass(frozen=True)
class NavLink:
    """One entry of the navigation or of a menu; `key` is its keyboard shortcut."""

    url: str
    label: str
    icon: str = ""
    count: int | None = None
    current: bool = False
    key: str = ""
    name: str = ""  # the URL's name; live updates find the count by it


@dataclass(frozen=True)
class NavGroup:
    """A group of entries; its label is for screen readers."""

    label: str
    links: tuple[NavLink, ...]


@dataclass(frozen=True)
class TopBarMeter:
    """One figure of the top bar.

    `unit` and `sub` are less prominent; `phone` keeps it on a small screen. A slow value is loaded from
    `source`, whose response has an element with the meter's `id`.
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
class SignedInUser:
    """The signed-in user."""

    name: str
    email: str
    initial: str
    links: tuple[NavLink, ...] = ()


@dataclass(frozen=True)
class PageLayout:
    """Everything `base.html` reads; defaults suit a visitor who is not signed in."""

    nav: tuple[NavGroup, ...] = ()
    foot: tuple[NavLink, ...] = ()
    project: SwitcherEntry | None = None
    others: tuple[SwitcherEntry, ...] = ()
    switch_url: str = ""
    meters: tuple[TopBarMeter, ...] = ()
    user: SignedInUser | None = None
    sign_out_url: str = ""
    search_url: str = ""
    search_hint: str = ""
    alerts: int | None = 0  # None: not known yet, `alerts_source` tells
    alerts_url: str = ""
    alerts_source: str = ""  # answers the bell anew, with the lists that belong to it
    note: dict[str, str] | None = None  # notice above every page: kind, head, text
    now: datetime | None = None
    kept_form: dict[str, Any] | None = None  # values of a refused form of this page


# These pages take the permission on the whole tenant.
TENANT_WIDE_PAGES = {"wallet": "billing.read", "invoices": "billing.read", "audit": "audit.read"}
NAV_ALIASES = (  # page prefix -> prefix of the navigation entry it belongs to
    ("/ops/nodes/", "/ops/clusters/"),
    ("/ops/image-prepulls/", "/ops/clusters/"),
    ("/ops/stripe/", "/ops/system/"),
    ("/ops/bank-entries/", "/ops/bank-receipts/"),
    ("/ops/month-reviews/", "/ops/month-close/"),
    ("/ops/layout-changes/", "/ops/gpus/"),
    ("/ops/price-versions/", "/ops/offerings/"),
    ("/ops/tenant-prices/", "/ops/offerings/"),
    ("/ops/payments/", "/ops/invoices/"),
    ("/ops/topups/", "/ops/system/"),
    ("/lease-arrays/", "/leases/"),
    ("/statement/", "/invoices/"),
    ("/payment-method/", "/invoices/"),
    ("/billing-details/", "/invoices/"),
    ("/commitments/", "/invoices/"),
    ("/discounts/", "/invoices/"),
)
NavEntry = tuple[str, str, str]  # URL name, label, icon
NavPlan = tuple[tuple[str, tuple[NavEntry, ...]], ...]
TENANT_NAV: NavPlan = (
    (
        gettext_noop("Main"),
        (
            ("home", gettext_noop("Home"), "home"),
            ("launch", gettext_noop("Launch"), "rocket"),
            ("catalogue", gettext_noop("Catalogue"), "layout-grid"),
        ),
    ),
    (
        gettext_noop("Capacity"),
        (
            ("leases", gettext_noop("Leases"), "cpu"),
            ("queue", gettext_noop("Queue"), "hourglass"),
            ("approvals", gettext_noop("Approvals"), "circle-check"),
            ("schedules", gettext_noop("Schedules"), "calendar"),
            ("volumes", gettext_noop("Volumes"), "database"),
            ("secrets", gettext_noop("Secrets"), "lock"),
            ("templates", gettext_noop("Templates"), "stack-2"),
        ),
    ),
    (
        gettext_noop("Billing and team"),
        (
            ("spend", gettext_noop("Spend"), "chart-bar"),
            ("budgets", gettext_noop("Budgets"), "target"),
            ("wallet", gettext_noop("Wallet"), "wallet"),
            ("invoices", gettext_noop("Invoices"), "receipt"),
            ("projects", gettext_noop("Projects"), "sitemap"),
            ("team", gettext_noop("Team"), "users"),
            ("tokens", gettext_noop("Tokens"), "key"),
            ("audit", gettext_noop("Audit"), "history"),
        ),
    ),
)
OPS_NAV: NavPlan = (
    (
        gettext_noop("Fleet"),
        (
            ("control-room", gettext_noop("Control room"), "map-2"),
            ("ops-clusters", gettext_noop("Clusters and nodes"), "server-2"),
            ("ops-gpus", gettext_noop("GPUs"), "cpu"),
            ("ops-relocation-plans", gettext_noop("Defragmentation"), "arrows-split-2"),
            ("ops-offerings", gettext_noop("Offerings"), "tag"),
            ("ops-templates", gettext_noop("Templates"), "stack-2"),
        ),
    ),
    (
        gettext_noop("Tenants and system"),
        (
            ("ops-tenants", gettext_noop("Tenants"), "building"),
            ("ops-leases", gettext_noop("Leases"), "cpu"),
            ("ops-queue", gettext_noop("Queue"), "hourglass"),
            ("ops-approvals", gettext_noop("Approvals"), "circle-check"),
            ("ops-invoices", gettext_noop("Invoices"), "receipt"),
            ("ops-credit-notes", gettext_noop("Credit notes"), "receipt"),
            ("ops-bank-receipts", gettext_noop("Bank transfers"), "coin-euro"),
            ("ops-disputes", gettext_noop("Disputes"), "help"),
            ("ops-corrections", gettext_noop("Corrections"), "edit"),
            ("ops-grants", gettext_noop("Credit"), "gift"),
            ("ops-discounts", gettext_noop("Discounts"), "scissors"),
            ("ops-commitments", gettext_noop("Commitments"), "lock"),
            ("ops-month-close", gettext_noop("Month close"), "calendar"),
            ("ops-ledger", gettext_noop("Ledger"), "scale"),
            ("ops-accounting", gettext_noop("Accounting"), "report-money"),
            ("ops-tax-rates", gettext_noop("Taxes"), "report-money"),
            ("ops-tokens", gettext_noop("Tokens"), "key"),
            ("ops-system", gettext_noop("System"), "settings"),
        ),
    ),
)
STYLE_ENTRY: NavEntry = ("styleguide", gettext_noop("Style guide"), "palette")  # for operators in development
HELP_ENTRIES: tuple[NavEntry, ...] = (
    ("help", gettext_noop("Help"), "lifebuoy"),
    ("api-reference", gettext_noop("API reference"), "api"),
)
TO_OPS: NavEntry = ("control-room", gettext_noop("Operations"), "map-2")
TO_TENANT: NavEntry = ("home", gettext_noop("Tenant pages"), "home")
ACCOUNT_MENU: tuple[NavEntry, ...] = (
    ("account", gettext_noop("Profile"), "user"),
    ("account_email", gettext_noop("E-mail addresses"), "mail"),
    ("account_change_password", gettext_noop("Password"), "lock"),
    ("ssh-keys", gettext_noop("SSH keys"), "key"),
    ("mfa_index", gettext_noop("Two-factor and passkeys"), "fingerprint"),
)
ALONE_PREFIXES = ("/account/", "/help/", "/api-reference/")  # pages that enter no tenant
TENANT_FIGURES = "web.portal.layout.tenant_figures.tenant_figures"
OPERATOR_FIGURES = "web.portal.layout.operator_figures.top_bar_context"


def open_page_url(path: str, urls: Iterable[str]) -> str | None:
    """Return the open page's URL: the longest one that the path begins with."""
    inside = [url for url in urls if path == url or (url != "/" and path.startswith(url))]
    return max(inside, key=len, default=None)


def nav_links(
    entries: Iterable[NavEntry], path: str, counts: dict[str, int] | None = None, current: str | None = None
) -> tuple[NavLink, ...]:
    """Return entries as links."""
    found = [(name, reverse(name), label, icon) for name, label, icon in entries]
    current = current or open_page_url(path, (url for _, url, _, _ in found))
    return tuple(
        NavLink(url, _(label), icon, (counts or {}).get(name), url == current, "n" if name == "launch" else "", name)
        for name, url, label, icon in found
    )


def forbidden_pages(request: HttpRequest) -> frozenset[str]:
    """Return the names of pages that this visitor may not open."""
    roles = getattr(request, "roles", None)
    if roles is None:
        return frozenset()
    return frozenset(name for name, action in TENANT_WIDE_PAGES.items() if not roles.may(action))


def side_navigation(
    path: str, plan: NavPlan = TENANT_NAV, counts: dict[str, int] | None = None, without: frozenset[str] = frozenset()
) -> tuple[NavGroup, ...]:
    """Return the side navigation for a page at `path`; at most one link is current."""
    path = next((path.replace(below, above, 1) for below, above in NAV_ALIASES if path.startswith(below)), path)
    current = open_page_url(path, (reverse(name) for _, entries in plan for name, _, _ in entries)) or "-"
    groups = (
        NavGroup(_(label), nav_links((entry for entry in entries if entry[0] not in without), path, counts, current))
        for label, entries in plan
    )
    return tuple(group for group in groups if group.links)


def signed_in_user(request: HttpRequest) -> SignedInUser | None:
    """Return the signed-in user with the account menu."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    email = str(user.email)
    name = user.get_short_name()
    return SignedInUser(name, email, name[:1].upper(), nav_links(ACCOUNT_MENU, request.path))


def foot_entries(*, ops: bool, staff: bool, only_ops: bool) -> tuple[NavEntry, ...]:
    """Return help, and the link between operations and tenant pages, for those who have both."""
    style = (STYLE_ENTRY,) if staff and settings.STYLE_GUIDE else ()
    if not staff or only_ops:
        return (*HELP_ENTRIES, *style)
    return (TO_TENANT if ops else TO_OPS, *HELP_ENTRIES, *style)


def load_figures(request: HttpRequest, source: str) -> dict[str, Any]:
    """Return counts and meters from a dotted path; empty if its module is missing."""
    room, _, _ = source.rpartition(".")
    if find_spec(room) is None:
        return {}
    figures: dict[str, Any] = import_string(source)(request)
    return figures


def page_layout(request: HttpRequest) -> PageLayout:
    """Return the layout of one request."""
    now = getattr(request, "now", None) or clock.now()
    signed_in = signed_in_user(request)
    if signed_in is None:
        return PageLayout(now=now)
    staff = getattr(request.user, "is_staff", False)
    ops = staff and request.path.startswith("/ops/")
    alone = request.path.startswith(ALONE_PREFIXES) or getattr(request, "is_error_page", False)
    if alone and not ops and not hasattr(request, "visitor"):
        enter_tenant_of_session(request)  # its view enters no tenant, but the layout shows one
    # An operator without a tenant sees only the operations.
    only_ops = staff and SESSION_NO_TENANT in getattr(request, "session", {})
    figures = load_figures(request, OPERATOR_FIGURES if ops else TENANT_FIGURES)
    here, others = (SwitcherEntry("", _("Operations"), figures["fleet"]), ()) if ops else switcher_entries(request)
    return PageLayout(
        nav=side_navigation(
            request.path, OPS_NAV if ops or only_ops else TENANT_NAV, figures.get("counts"), forbidden_pages(request)
        ),
        foot=nav_links(foot_entries(ops=ops, staff=staff, only_ops=only_ops), request.path),
        project=here,
        others=others,
        switch_url=reverse("switch-project"),
        meters=tuple(TopBarMeter(**meter) for meter in figures.get("meters", ())),
        user=signed_in,
        sign_out_url=reverse("account_logout"),
        search_url=figures.get("search_url", ""),
        search_hint=figures.get("search_hint", "Search leases"),
        alerts=figures.get("alerts", 0),
        alerts_url=figures.get("alerts_url", ""),
        alerts_source=figures.get("alerts_source", ""),
        note=figures.get("note"),
        now=now,
        kept_form=take_kept_form(request),
    )


def layout_context(request: HttpRequest) -> dict[str, Any]:
    """Provide `layout_context` and `sign_in_teaser` to templates; each is computed only when used."""
    return {"shell": SimpleLazyObject(lambda: page_layout(request)), "promise": SimpleLazyObject(sign_in_teaser)}
