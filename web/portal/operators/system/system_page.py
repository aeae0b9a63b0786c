"""System page: integrity checks, queues, stuck payments, and the operators' audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.models import Payment, Refund, TopUp
from billing.services.ledger import invariant_checks
from billing.services.reports import pending_collections, stripe_status, undelivered_emails
from broker.services.reports import queue_health
from broker.services.reports.invariant_checks import InvariantResult
from tenants.models import AuditEvent
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.audit import audit_filters
from web.portal.audit.audit_log import describe_events
from web.portal.layout.operator_figures import format_checks_passed
from web.portal.operators.operator_lists import FilteredList, PageLists, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.portal.operators.system.system_lists import (
    AUDIT_LIST,
    EMAIL_LIST,
    PAYMENT_LIST,
    REFUND_LIST,
    TOPUP_LIST,
)

MAX_AUDIT_EVENTS, MAX_ROWS = 30, 20
OPERATORS_TIME_ZONE = "UTC"  # for operators, whatever time zone the tenants have


@operator_page("system")
def show_system(request: OperatorRequest) -> Any:
    """Show integrity checks, the outbox and the operators' audit log."""
    if wants_csv(request):
        return _read_lists(request).csv(
            (AUDIT_LIST, lambda: audit_filters.filter_events(_trail(request), request.GET, OPERATORS_TIME_ZONE)[0]),
            (PAYMENT_LIST, pending_collections.stuck_payments),
            (TOPUP_LIST, pending_collections.stuck_topups),
            (REFUND_LIST, pending_collections.stuck_refunds),
            (EMAIL_LIST, undelivered_emails.undelivered_emails),
        )
    return render(request, "operators/system/system.html", {"page": build_system_page(request)})


@dataclass(frozen=True, slots=True)
class SystemPage:
    """Integrity checks, queues, stuck money and e-mails, and the operators' audit log."""

    integrity_checks: Sequence[InvariantResult]
    upkeep: queue_health.QueueHealth
    money: pending_collections.PendingCollections
    payments: FilteredList
    topups: FilteredList
    refunds: FilteredList
    emails: FilteredList
    stripe_waits: int
    visits: bool  # the audit log shows visited pages, not changes
    trail: FilteredList
    filters: list[dict[str, Any]]
    chosen_filters: dict[str, str]  # the filters as the API's parameters

    @property
    def failed(self) -> list[InvariantResult]:
        return [check for check in self.integrity_checks if not check.holds]

    @property
    def database(self) -> str:
        version: int = connection.pg_version  # type: ignore[attr-defined]
        return f"{version // 10000}.{version % 10000}"

    @property
    def trails(self) -> list[dict[str, Any]]:
        return [
            {"url": "?trail=changes#trail", "label": _("Changes"), "current": not self.visits},
            {"url": "?trail=visits#trail", "label": _("Access"), "current": self.visits},
        ]

    @property
    def calls(self) -> list[dict[str, str]]:
        return _api_calls(
            visits=self.visits, money=self.money, emails=self.emails.count, chosen_filters=self.chosen_filters
        )


def build_system_page(request: OperatorRequest) -> SystemPage:
    """Read the newest integrity checks, what is stuck and what operators did."""
    request.integrity_checks = invariant_checks.latest_checks(now=request.now)
    lists, visits, rows = _read_lists(request), _shows_visits(request), _trail(request)
    chosen, chosen_filters = audit_filters.filter_events(rows, request.GET, OPERATORS_TIME_ZONE)
    trail = lists.read(AUDIT_LIST, chosen, most=MAX_AUDIT_EVENTS)
    events = describe_events(trail.rows)
    typed = {name: text for name, text in lists.filter.typed.items() if text}
    tab = {"trail": "visits" if visits else "changes", **typed}

    def to(chosen_filters: audit_filters.AuditFilters) -> str:
        return f"?{urlencode({**tab, **chosen_filters})}#trail"

    today = request.now.astimezone(ZoneInfo(OPERATORS_TIME_ZONE)).date()
    chips = audit_filters.filter_chips(rows, chosen_filters, events, to, today=today, also=tab)
    money = pending_collections.read_pending_collections(now=request.now)
    stuck_payments = pending_collections.stuck_payments() if money.stuck else Payment.objects.none()
    stuck_topups = pending_collections.stuck_topups() if money.topups else TopUp.objects.none()
    stuck_refunds = pending_collections.stuck_refunds() if money.refunds else Refund.objects.none()
    return SystemPage(
        integrity_checks=request.integrity_checks,
        upkeep=queue_health.measure_queue_health(now=request.now),
        money=money,
        payments=lists.read(PAYMENT_LIST, stuck_payments, most=MAX_ROWS),
        topups=lists.read(TOPUP_LIST, stuck_topups, most=MAX_ROWS),
        refunds=lists.read(REFUND_LIST, stuck_refunds, most=MAX_ROWS),
        emails=lists.read(EMAIL_LIST, undelivered_emails.undelivered_emails(), most=MAX_ROWS),
        stripe_waits=stripe_status.count_open_items(now=request.now),
        visits=visits,
        trail=trail.with_rows(events),
        filters=[chip for chip in chips if chip["name"] != "day" or chip["value"]],  # the list has a filter of days
        chosen_filters=audit_filters.api_parameters(chosen_filters, OPERATORS_TIME_ZONE),
    )


def _read_lists(request: OperatorRequest) -> PageLists:
    return read_lists(request, AUDIT_LIST, PAYMENT_LIST, TOPUP_LIST, REFUND_LIST, EMAIL_LIST)


def _shows_visits(request: OperatorRequest) -> bool:
    return request.GET.get("trail") == "visits"


def _trail(request: OperatorRequest) -> QuerySet[AuditEvent]:
    return operator_events(visits=_shows_visits(request))


def _api_calls(
    *,
    visits: bool,
    money: pending_collections.PendingCollections,
    emails: int,
    chosen_filters: audit_filters.AuditFilters,
) -> list[dict[str, str]]:
    """Return the API call behind each table of the page."""
    flag = str(visits).lower()
    calls = [
        operator_api_call(_("Integrity checks, the newest run"), "ops/integrity-checks"),
        operator_api_call(
            _("Operator audit log"),
            "ops/audit-events",
            actor_kind="staff",
            visits=flag,
            **chosen_filters,
            limit=MAX_AUDIT_EVENTS,
        ),
    ]
    if emails:
        calls.insert(
            1,
            operator_api_call(
                _("E-mails that failed"), "ops/notifications", undelivered_reason="given_up", limit=API_PAGE_SIZE
            ),
        )
        calls.insert(
            1,
            operator_api_call(
                _("E-mails without a recipient"),
                "ops/notifications",
                undelivered_reason="no_recipient",
                limit=API_PAGE_SIZE,
            ),
        )
    if money.refunds:
        calls.insert(
            1, operator_api_call(_("Refunds that need attention"), "ops/refunds", status="stuck", limit=API_PAGE_SIZE)
        )
    if money.topups:
        calls.insert(
            1, operator_api_call(_("Top-ups that need attention"), "ops/topups", status="stuck", limit=API_PAGE_SIZE)
        )
    if money.stuck:
        calls.insert(
            1, operator_api_call(_("Payments that need attention"), "ops/payments", status="stuck", limit=API_PAGE_SIZE)
        )
    return calls


def operator_events(*, visits: bool) -> QuerySet[AuditEvent]:
    """Return what operators changed, or which pages they visited."""
    rows = AuditEvent.objects.filter(actor_kind="staff")
    is_visit = {"action__startswith": "ops."}
    return rows.filter(**is_visit) if visits else rows.exclude(**is_visit)


@operator_page("integrity_checks", repeats=True)
def show_integrity_checks(request: OperatorRequest) -> HttpResponse:
    """Return the integrity checks as one line, and as the meter of every page.

    The control room shows the line at its foot.
    """
    found = invariant_checks.latest_checks(now=request.now)
    shown = {
        "integrity_checks": found,
        "meter": format_checks_passed(found),
        "alone": request.headers.get("HX-Target") == "integrity-count",
    }
    return render(request, "operators/system/_integrity_checks.html", shown)
