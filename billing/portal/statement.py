"""The account statement: what was owed, paid, given back and drawn between two days, as a page, CSV and PDF."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_safe

from billing.domain.money import decimal_string
from billing.domain.periods import midnight
from billing.portal import calls, downloads
from billing.portal.addresses import varied
from billing.portal.pages import PageRequest, page
from billing.services.ledger import accounts
from billing.services.ledger.accounts import Account
from billing.services.papers import keeping
from tenants.services.permissions import require

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
HEADS = ["at", "kind", "ref", "what", "owed", "on_balance", "owed_after", "on_balance_after", "currency"]


@require_GET
@page("billing.read")
def statement(request: PageRequest) -> HttpResponse:
    """Show the account between two days of the tenant's time zone, both included; this year unless asked otherwise."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    first, last, wrong = asked(request)
    told = of(request, first, last)
    if request.GET.get("format") == "csv":
        return downloads.table(f"statement-{first}-{last}", HEADS, cells(told))
    context = {
        "account": told,
        "first": first,
        "last": last,
        "wrong": wrong,
        "tenant": request.tenant,
        "csv": varied(request, format="csv"),
        "pdf": f"{request.path}pdf/?from={first}&through={last}",
        "now": request.now,
        "call": calls.get(f"/statement?from={first}&to={last + DAY}"),
        "call_pdf": calls.get(f"/statement/pdf?from={first}&to={last + DAY}"),
    }
    return render(request, "billing/statement.html", context)


@require_safe
@page("billing.read")
def paper(request: PageRequest) -> HttpResponse:
    """Hand the same out as PDF."""
    require(request.roles, "billing.read")
    first, last, _ = asked(request)
    return downloads.paper(request, keeping.account_paper(request.tenant, of(request, first, last)))


def asked(request: PageRequest) -> tuple[date, date, str]:
    """Return the days that the address asks for, and what was wrong with them if something was."""
    today = request.now.astimezone(ZoneInfo(request.tenant.time_zone)).date()
    usual = today.replace(month=1, day=1), today
    try:
        first = date.fromisoformat(request.GET.get("from", "") or str(usual[0]))
        last = date.fromisoformat(request.GET.get("through", "") or str(usual[1]))
    except ValueError:
        return *usual, "Days are written as 2026-11-21."
    if not date(2000, 1, 1) <= first <= last <= today:
        return *usual, "The first day comes before the last, and the last is today or before."
    return first, last, ""


def of(request: PageRequest, first: date, last: date) -> Account:
    zone = ZoneInfo(request.tenant.time_zone)
    until = min(midnight(last + DAY, zone), request.now.replace(microsecond=0) + SECOND)
    tenant = request.tenant
    return accounts.account(tenant.pk, tenant.currency, since=midnight(first, zone), until=until)


def cells(told: Account) -> list[list[str]]:
    """Return the rows of the file, as HEADS names them: what there was before, and what happened."""

    def written(minor: int) -> str:
        return decimal_string(minor, told.currency)

    before = ["opening", "", "Before", "", "", written(told.opening_owed), written(told.opening_kept)]
    changes = [(entry.owed, entry.kept, entry.owed_after, entry.kept_after) for entry in told.entries]
    return [
        [told.since.isoformat(), *before, told.currency],
        *(
            [entry.at.isoformat(), entry.kind, entry.ref, entry.words, *map(written, minors), told.currency]
            for entry, minors in zip(told.entries, changes, strict=True)
        ),
    ]
