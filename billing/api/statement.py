"""The account statement on the wire."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import papers
from billing.api.amounts import MoneyOut, money
from billing.domain.periods import midnight
from billing.models import Invoice
from billing.services.ledger import accounts
from billing.services.ledger.accounts import Account, Entry
from billing.services.papers import keeping
from tenants.api.views import TenantViewSet
from tenants.models import Tenant

SPAN = [
    OpenApiParameter("from", date, description="First day, local; else the first of this year."),
    OpenApiParameter("to", date, description="The day after the last, local; else until now."),
]
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class EntryOut(serializers.Serializer[Any]):
    """Something that happened: by how much it changed what you owe and what is on your balance, and both after it."""

    at = serializers.DateTimeField()
    kind = serializers.CharField()
    ref = serializers.CharField(help_text="The invoice, or whatever else it stands for.")
    what = serializers.CharField()
    owed = MoneyOut()
    on_balance = MoneyOut()
    owed_after = MoneyOut()
    on_balance_after = MoneyOut()


class StandOut(serializers.Serializer[Any]):
    owed = MoneyOut()
    on_balance = MoneyOut()


@extend_schema_serializer(many=False)
class StatementOut(serializers.Serializer[Any]):
    """Opening and every entry come to closing. Credit that was given to you is not money, and not in it."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    time_zone = serializers.CharField()
    opening = StandOut()
    items = EntryOut(many=True)
    closing = StandOut()


class Statements(TenantViewSet):
    """The whole tenant's account with us, from the ledger."""

    serializer_class = StatementOut
    pagination_class = None
    parameters = frozenset({"from", "to"})
    actions_needed = {"list": "billing.read", "pdf": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[Invoice]:
        return self.visible(Invoice.objects.all())

    @extend_schema(parameters=SPAN, responses=StatementOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return what was owed, paid, given back and drawn in a stretch of time, first to last."""
        return Response(shown(self._account(request), self.request.tenant))

    @extend_schema(parameters=SPAN, responses=papers.PDF, filters=False)
    def pdf(self, request: Request) -> HttpResponseBase:
        """Return the same as PDF."""
        return papers.sent(request, keeping.account_paper(self.request.tenant, self._account(request)))

    def _account(self, request: Request) -> Account:
        self.filter_queryset(self.get_queryset())
        return account_of(request, self.request.tenant, self.now)


def shown(told: Account, tenant: Tenant) -> dict[str, Any]:
    """Return an account as StatementOut tells it."""
    return {
        "since": told.since,
        "until": told.until,
        "time_zone": tenant.time_zone,
        "opening": _stand(told.opening_owed, told.opening_kept, told.currency),
        "items": [_entry(entry, told.currency) for entry in told.entries],
        "closing": _stand(told.closing_owed, told.closing_kept, told.currency),
    }


def account_of(request: Request, tenant: Tenant, now: datetime) -> Account:
    """Return a tenant's account over the days that the address asks for, in its own time zone."""
    zone = ZoneInfo(tenant.time_zone)
    year = now.astimezone(zone).date().replace(month=1, day=1)
    since = _day(request, "from", zone) or midnight(year, zone)
    until = min(_day(request, "to", zone) or now, now)
    if not EARLIEST <= since < until:
        raise ValidationError({"to": "Is after `from`, and `from` is not in the future."})
    return accounts.account(tenant.pk, tenant.currency, since=since, until=until)


def _day(request: Request, name: str, zone: ZoneInfo) -> datetime | None:
    text = request.query_params.get(name, "")
    try:
        return midnight(date.fromisoformat(text), zone) if text else None
    except (ValueError, OverflowError):
        raise ValidationError({name: "Is a day such as 2026-11-21."}) from None


def _stand(owed: int, kept: int, currency: str) -> dict[str, Any]:
    return {"owed": money(owed, currency), "on_balance": money(kept, currency)}


def _entry(entry: Entry, currency: str) -> dict[str, Any]:
    return {
        "at": entry.at,
        "kind": entry.kind,
        "ref": entry.ref,
        "what": entry.words,
        **_stand(entry.owed, entry.kept, currency),
        "owed_after": money(entry.owed_after, currency),
        "on_balance_after": money(entry.kept_after, currency),
    }
