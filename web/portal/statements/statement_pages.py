"""Account statement between two days, as a page, CSV and PDF.

What was owed, paid, given back and drawn.
"""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.domain.money import decimal_string
from billing.domain.periods import midnight
from billing.services.documents import document_store
from billing.services.ledger import account_entries
from billing.services.ledger.account_entries import TenantAccount
from tenants.services.authentication import require
from web.http import downloads
from web.http.query_strings import page_url
from web.portal import api_examples
from web.portal.page_context import SAFE, PageRequest, tenant_page

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
CSV_HEADERS = ["at", "kind", "ref", "what", "owed", "on_balance", "owed_after", "on_balance_after", "currency"]


@tenant_page("billing.read")
def show_statement(request: PageRequest) -> HttpResponse:
    """Show the statement between two days, both included; by default this year.

    Days are in the tenant's time zone.
    """
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    first, last, wrong = requested_days(request)
    account = account_between(request, first, last)
    if request.GET.get("format") == "csv":
        return downloads.csv_response(f"statement-{first}-{last}", CSV_HEADERS, statement_rows(account))
    context = {
        "account": account,
        "first": first,
        "last": last,
        "wrong": wrong,
        "csv": page_url(request, format="csv"),
        "pdf": f"{request.path}pdf/?from={first}&through={last}",
        "call": api_examples.curl_get(f"/account-statement?from={first}&to={last + DAY}"),
        "call_pdf": api_examples.curl_get(f"/account-statement/pdf?from={first}&to={last + DAY}"),
    }
    return render(request, "statements/statement.html", context)


@tenant_page("billing.read", methods=SAFE)
def download_statement_pdf(request: PageRequest) -> HttpResponse:
    """Download the statement as PDF."""
    require(request.roles, "billing.read")
    first, last, _ = requested_days(request)
    return downloads.pdf_response(
        request, document_store.account_statement_pdf(request.tenant, account_between(request, first, last))
    )


def requested_days(request: PageRequest) -> tuple[date, date, str]:
    """Return the days in the query string, and what is wrong with them."""
    today = request.now.astimezone(ZoneInfo(request.tenant.time_zone)).date()
    usual = today.replace(month=1, day=1), today
    try:
        first = date.fromisoformat(request.GET.get("from", "") or str(usual[0]))
        last = date.fromisoformat(request.GET.get("through", "") or str(usual[1]))
    except ValueError:
        return *usual, _("Enter dates as 2026-11-21.")
    if not date(2000, 1, 1) <= first <= last <= today:
        return *usual, _("The first day must be before the last day, and the last day must not be in the future.")
    return first, last, ""


def account_between(request: PageRequest, first: date, last: date) -> TenantAccount:
    zone = ZoneInfo(request.tenant.time_zone)
    until = min(midnight(last + DAY, zone), request.now.replace(microsecond=0) + SECOND)
    tenant = request.tenant
    return account_entries.read_account(tenant.pk, tenant.currency, since=midnight(first, zone), until=until)


def statement_rows(account: TenantAccount) -> list[list[str]]:
    """Return the CSV rows in the order of HEADS: the opening balance, then the entries."""

    def written(minor: int) -> str:
        return decimal_string(minor, account.currency)

    before = ["opening", "", _("Before"), "", "", written(account.opening_owed), written(account.opening_kept)]
    changes = [(entry.owed, entry.kept, entry.owed_after, entry.kept_after) for entry in account.entries]
    return [
        [account.since.isoformat(), *before, account.currency],
        *(
            [entry.at.isoformat(), entry.kind, entry.ref, entry.text, *map(written, minors), account.currency]
            for entry, minors in zip(account.entries, changes, strict=True)
        ),
    ]
