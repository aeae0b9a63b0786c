"""Operators' API of the journal's settings: the accountant's numbers."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.journal_accounts import CHARTS, AccountNumber
from billing.models import JournalSettings
from billing.services.reports.accounting import journal_accounts
from web.api.base_views import ETagViewSet, validated_body
from web.api.operators.base_views import CrossTenantViewSet
from web.api.serializer_fields import StrictSerializer


class AccountNumberOut(serializers.Serializer[Any]):
    """Number of a journal account in the accountant's chart."""

    key = serializers.CharField(help_text="Account type, with the tax treatment if that matters.")
    name = serializers.CharField()
    number = serializers.CharField(allow_blank=True)
    posting_key = serializers.CharField(allow_blank=True, help_text="DATEV's BU-Schlüssel.")


@extend_schema_serializer(many=False)
class JournalSettingsOut(serializers.Serializer[Any]):
    """For whom journals are exported, and the numbers of their accounts."""

    chart = serializers.ChoiceField(choices=sorted(CHARTS))
    advisor = serializers.IntegerField(help_text="DATEV's Beraternummer.")
    client = serializers.IntegerField(help_text="DATEV's Mandantennummer.")
    account_length = serializers.IntegerField()
    fiscal_year_month = serializers.IntegerField(help_text="Month in which a fiscal year begins.")
    time_zone = serializers.CharField(help_text="Of the days of bookings.")
    accounts = AccountNumberOut(many=True)


class AccountNumberIn(StrictSerializer):
    key = serializers.CharField(max_length=40)
    number = serializers.CharField(max_length=9)
    posting_key = serializers.CharField(max_length=4, allow_blank=True, default="")


class JournalSettingsIn(StrictSerializer):
    chart = serializers.ChoiceField(choices=sorted(CHARTS), required=False)
    advisor = serializers.IntegerField(min_value=1001, max_value=9_999_999, required=False)
    client = serializers.IntegerField(min_value=1, max_value=99_999, required=False)
    account_length = serializers.IntegerField(min_value=4, max_value=8, required=False)
    fiscal_year_month = serializers.IntegerField(min_value=1, max_value=12, required=False)
    time_zone = serializers.CharField(max_length=60, required=False)
    accounts = AccountNumberIn(many=True, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a change of nothing."""
        if not attrs:
            raise serializers.ValidationError("Name at least one setting to change.")
        return attrs


class OperatorJournalSettingsViewSet(CrossTenantViewSet):
    """Settings of the journal export."""

    area = "billing"
    serializer_class, rows, audit_action = JournalSettingsOut, JournalSettings.objects.all(), "accounting"
    pagination_class, filter_backends = None, []

    @extend_schema(responses=JournalSettingsOut, filters=False)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the settings, with their ETag."""
        return self._settings_response(journal_accounts.journal_settings())

    @extend_schema(request=JournalSettingsIn, responses=JournalSettingsOut, filters=False)
    def change(self, request: Request) -> Response:
        """Change settings and account numbers; needs If-Match. What is not named stays."""
        wanted = validated_body(JournalSettingsIn, request)
        ETagViewSet.match(request, journal_accounts.journal_settings())
        numbers = {
            each["key"]: AccountNumber(each["number"], each["posting_key"]) for each in wanted.pop("accounts", [])
        }
        return self._settings_response(journal_accounts.change_journal_settings(wanted, numbers, **self.by))

    def _settings_response(self, found: JournalSettings) -> Response:
        accounts = [
            {"key": str(key), "name": key.name, "number": number.number, "posting_key": number.key}
            for key, number in journal_accounts.account_list(found)
        ]
        values = {name: getattr(found, name) for name in journal_accounts.SETTING_NAMES}
        body = JournalSettingsOut({**values, "accounts": accounts}).data
        return Response(body, headers={"ETag": f'"{found.version}"'})
