"""API of the account statement."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.periods import midnight
from billing.models import Invoice
from billing.services.documents import document_store
from billing.services.ledger import account_entries
from billing.services.ledger.account_entries import AccountEntry, TenantAccount
from tenants.models import Tenant
from web.api import documents
from web.api.amounts import MoneyOut, money_out
from web.api.base_views import WholeTenantViewSet, needs
from web.http.query_parameters import parse_day

PERIOD_PARAMETERS = [
    OpenApiParameter("from", date, description="First day, local time; default: 1 January of this year."),
    OpenApiParameter("to", date, description="Day after the last day, local time; default: now."),
]
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class StatementEntryOut(serializers.Serializer[Any]):
    """An entry: changes of the amount owed and of the balance, and both afterwards."""

    at = serializers.DateTimeField()
    kind = serializers.CharField()
    subject_id = serializers.CharField(help_text="ID of the invoice or other object.")
    text = serializers.CharField()
    owed = MoneyOut()
    on_balance = MoneyOut()
    owed_after = MoneyOut()
    on_balance_after = MoneyOut()


class StatementBalanceOut(serializers.Serializer[Any]):
    owed = MoneyOut()
    on_balance = MoneyOut()


@extend_schema_serializer(many=False)
class StatementOut(serializers.Serializer[Any]):
    """Account statement: opening plus all entries equals closing.

    Grants are not money, and not in it.
    """

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    time_zone = serializers.CharField()
    opening = StatementBalanceOut()
    items = StatementEntryOut(many=True)
    closing = StatementBalanceOut()


class StatementViewSet(WholeTenantViewSet):
    """Account statement of the whole tenant, from the ledger."""

    serializer_class = StatementOut
    pagination_class = None
    parameters = frozenset({"from", "to"})
    action_parameters = {"pdf": parameters}
    rows = Invoice.objects.all()
    actions_needed = needs("billing.read", "list", "pdf")

    @extend_schema(parameters=PERIOD_PARAMETERS, responses=StatementOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return invoices, payments, credits and draws of a period, in order."""
        return Response(statement_body(self._account(request), self.request.tenant))

    @extend_schema(parameters=PERIOD_PARAMETERS, responses=documents.PDF, filters=False)
    def pdf(self, request: Request) -> HttpResponseBase:
        """Return the same as PDF."""
        return documents.document_response(
            request, document_store.account_statement_pdf(self.request.tenant, self._account(request))
        )

    def _account(self, request: Request) -> TenantAccount:
        self.filter_queryset(self.get_queryset())
        return read_statement(request, self.request.tenant, self.now)


def statement_body(account: TenantAccount, tenant: Tenant) -> dict[str, Any]:
    """Return an account as StatementOut."""
    return {
        "since": account.since,
        "until": account.until,
        "time_zone": tenant.time_zone,
        "opening": _balance_body(account.opening_owed, account.opening_kept, account.currency),
        "items": [_entry_row(entry, account.currency) for entry in account.entries],
        "closing": _balance_body(account.closing_owed, account.closing_kept, account.currency),
    }


def read_statement(request: Request, tenant: Tenant, now: datetime) -> TenantAccount:
    """Return a tenant's account over the requested days, in its own time zone."""
    zone = ZoneInfo(tenant.time_zone)
    year = now.astimezone(zone).date().replace(month=1, day=1)
    since = parse_day(request, "from", zone) or midnight(year, zone)
    until = min(parse_day(request, "to", zone) or now, now)
    if not EARLIEST <= since < until:
        raise ValidationError({"to": "Must be after `from`, which must not be in the future."})
    return account_entries.read_account(tenant.pk, tenant.currency, since=since, until=until)


def _balance_body(owed: int, kept: int, currency: str) -> dict[str, Any]:
    return {"owed": money_out(owed, currency), "on_balance": money_out(kept, currency)}


def _entry_row(entry: AccountEntry, currency: str) -> dict[str, Any]:
    return {
        "at": entry.at,
        "kind": entry.kind,
        "subject_id": entry.ref,
        "text": entry.text,
        **_balance_body(entry.owed, entry.kept, currency),
        "owed_after": money_out(entry.owed_after, currency),
        "on_balance_after": money_out(entry.kept_after, currency),
    }
