"""Settings of the journal export: the accountant's numbers."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.domain.journal import JournalKey
from billing.domain.journal_accounts import AccountNumber
from billing.services.reports.accounting import debtor_accounts, journal_accounts
from tenants.services.errors import InvalidValue, ProblemError, StaleVersion
from web.portal.actions import operator_api_call
from web.portal.operators.accounting.accounting_lists import DEBTOR_LIST
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, form_page, operator_page

NUMBER_PREFIX, KEY_PREFIX = "number-", "key-"
CHART_NAMES = (("skr03", "SKR 03"), ("skr04", "SKR 04"))
MAX_LENGTH = 60


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account of the journal, and what is typed beside it."""

    key: JournalKey
    number: str
    posting_key: str


@dataclass(frozen=True, slots=True)
class JournalSettingsPage:
    """The form with the settings as they are, or as they were typed."""

    values: dict[str, Any]
    accounts: list[AccountRow]
    version: int
    debtors: FilteredList
    calls: list[dict[str, str]]

    charts = CHART_NAMES


@operator_page("accounting.settings", methods=SAFE_OR_POST)
def edit_journal_settings(request: OperatorRequest) -> Any:
    """Show the settings; a POST changes them."""
    if wants_csv(request):
        return read_lists(request, DEBTOR_LIST).csv((DEBTOR_LIST, debtor_accounts.debtor_accounts))
    return form_page(
        request,
        "operators/accounting/journal_settings.html",
        lambda refusal: _build_page(request, refusal),
        lambda: _save(request),
        back=reverse("ops-journal-settings"),
    )


def _build_page(request: OperatorRequest, refusal: ProblemError | None) -> JournalSettingsPage:
    found = journal_accounts.journal_settings()
    typed = request.POST if refusal else {}
    return JournalSettingsPage(
        values={name: typed.get(name, getattr(found, name)) for name in journal_accounts.SETTING_NAMES},
        accounts=[
            AccountRow(
                key,
                str(typed.get(f"{NUMBER_PREFIX}{key}", number.number)),
                str(typed.get(f"{KEY_PREFIX}{key}", number.key)),
            )
            for key, number in journal_accounts.account_list(found)
        ],
        version=found.version,
        debtors=read_lists(request, DEBTOR_LIST).read(DEBTOR_LIST, debtor_accounts.debtor_accounts()),
        calls=[operator_api_call(_("Journal settings"), "ops/journal-settings")],
    )


def _save(request: OperatorRequest) -> str:
    if "first_debtor" in request.POST:
        first = _whole_number("first_debtor", request.POST["first_debtor"].strip()[:MAX_LENGTH])
        count = debtor_accounts.number_debtors(first, actor=request.actor, now=request.now)
        return ngettext("{count} tenant got a debtor account.", "{count} tenants got debtor accounts.", count).format(
            count=count
        )
    found = journal_accounts.journal_settings()
    wanted = {name: _typed_value(request, name) for name in journal_accounts.SETTING_NAMES}
    if request.POST.get("seen", "") != str(found.version):
        raise StaleVersion(
            _("The settings were changed since you opened this page."), fix=_("Check the current ones and save again.")
        )
    old = {str(key): number for key, number in journal_accounts.account_list(found)}
    numbers = {key: _typed_number(request, key) for key in old}
    changed = {key: number for key, number in numbers.items() if number != old[key] and (number.number or number.key)}
    journal_accounts.change_journal_settings(wanted, changed, actor=request.actor, now=request.now)
    return _("Journal settings saved.")


def _typed_number(request: OperatorRequest, key: str) -> AccountNumber:
    number, posting_key = (request.POST.get(f"{prefix}{key}", "") for prefix in (NUMBER_PREFIX, KEY_PREFIX))
    return AccountNumber(number.strip()[:MAX_LENGTH], posting_key.strip()[:MAX_LENGTH])


def _typed_value(request: OperatorRequest, name: str) -> Any:
    text = request.POST.get(name, "").strip()[:MAX_LENGTH]
    if name not in journal_accounts.LIMITS:
        return text
    return _whole_number(name, text)


def _whole_number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidValue(name, _("The value is not a whole number."), fix=_("Enter digits only."))
    return int(text)
