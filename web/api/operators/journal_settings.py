"""Operators' API of the journal's settings: the accountant's numbers."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.journal_accounts import CHARTS, AccountNumber
from billing.models import JournalSettings
from billing.services.reports.accounting import debtor_accounts, journal_accounts
from tenants.services import rls
from web.api.base_views import ETagViewSet, validated_body
from web.api.operators.base_views import CrossTenantViewSet
from web.api.serializer_fields import StrictSerializer


class AccountNumberOut(serializers.Serializer[Any]):
    """Number of a journal account in the accountant's chart."""

    key = serializers.CharField(help_text="Account type, with the tax treatment if that matters.")
    name = serializers.CharField()
    number = serializers.CharField(allow_blank=True)
    posting_key = serializers.CharField(allow_blank=True, help_text="DATEV's BU-Schlüssel.")


class DebtorAccountOut(serializers.Serializer[Any]):
    """A tenant whose receivables have an account of their own."""

    tenant = serializers.CharField(source="tenant_id")
    tenant_name = serializers.CharField(source="tenant")
    number = serializers.CharField()


class DebtorAccountIn(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    number = serializers.CharField(max_length=9, help_text="One digit more than other accounts; 1 to 6 first.")


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
    debtors = DebtorAccountOut(many=True)


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
    debtors = DebtorAccountIn(many=True, required=False)
    first_debtor = serializers.IntegerField(
        min_value=10_000,
        max_value=699_999_999,
        required=False,
        help_text="Give every tenant with receivables and without a debtor account the next free number from here on.",
    )

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
        debtors = {each["tenant"]: each["number"] for each in wanted.pop("debtors", [])}
        first = wanted.pop("first_debtor", None)
        journal_accounts.change_journal_settings(wanted, numbers, **self.by)
        if debtors:
            debtor_accounts.set_debtor_accounts(debtors, **self.by)
        if first is not None:
            debtor_accounts.number_debtors(first, **self.by)
        return self._settings_response(journal_accounts.journal_settings())

    def _settings_response(self, found: JournalSettings) -> Response:
        accounts = [
            {"key": str(key), "name": key.name, "number": number.number, "posting_key": number.key}
            for key, number in journal_accounts.account_list(found)
        ]
        values = {name: getattr(found, name) for name in journal_accounts.SETTING_NAMES}
        with rls.staff_scope():
            debtors = debtor_accounts.debtor_accounts()
        body = JournalSettingsOut({**values, "accounts": accounts, "debtors": debtors}).data
        return Response(body, headers={"ETag": f'"{found.version}"'})
