"""Settings of the journal: the accountant's numbers, and whose batches they are."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.db import transaction

from billing.domain.journal import JournalKey, journal_keys
from billing.domain.journal_accounts import CHARTS, AccountNumber
from billing.models import JournalAccount, JournalSettings
from billing.models.accounting import ACCOUNT_NUMBER, POSTING_KEY
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue

LIMITS = {"advisor": (1001, 9_999_999), "client": (1, 99_999), "account_length": (4, 8), "fiscal_year_month": (1, 12)}
SETTING_NAMES = ("chart", *LIMITS, "time_zone")


def journal_settings() -> JournalSettings:
    """Return the settings; the defaults until they are set."""
    return JournalSettings.objects.filter(pk=1).first() or JournalSettings()


def account_numbers(settings: JournalSettings) -> dict[str, AccountNumber]:
    """Return the number of every account: as set, else as in the chart."""
    own = {each.key: AccountNumber(each.number, each.posting_key) for each in JournalAccount.objects.all()}
    return CHARTS[settings.chart] | own


def account_list(settings: JournalSettings) -> list[tuple[JournalKey, AccountNumber]]:
    """Return every account of the journal with its number, in order."""
    numbers = account_numbers(settings)
    return [(key, numbers.get(str(key), AccountNumber(""))) for key in journal_keys()]


@transaction.atomic
def change_journal_settings(
    wanted: Mapping[str, Any], numbers: Mapping[str, AccountNumber], *, actor: Actor, now: datetime
) -> JournalSettings:
    """Change settings and account numbers; those not named stay.

    Raises InvalidValue for values that DATEV does not know.
    """
    JournalSettings.objects.get_or_create(pk=1)
    row = JournalSettings.objects.select_for_update().get(pk=1)
    before = {name: getattr(row, name) for name in SETTING_NAMES}
    for name, value in wanted.items():
        setattr(row, name, _checked(name, value))
    known = {str(key) for key, _ in account_list(row)}
    for key, number in numbers.items():
        _check_number(key, number, known)
    old = account_numbers(row)
    changed = {key: number for key, number in numbers.items() if old.get(key) != number}
    for key, number in changed.items():
        JournalAccount.objects.update_or_create(key=key, defaults={"number": number.number, "posting_key": number.key})
    different = {name: getattr(row, name) for name in SETTING_NAMES if getattr(row, name) != before[name]}
    if different or changed:
        row.version += 1
        row.save()
        audit.record(
            "journal.settings",
            "journal",
            "journal settings",
            actor=actor,
            now=now,
            **different,
            **{key: f"{number.number} {number.key}".strip() for key, number in changed.items()},
        )
    return row


def _checked(name: str, value: Any) -> Any:
    if name == "chart" and value not in CHARTS:
        raise InvalidValue(name, "The chart is not known.", fix=f"Use one of {', '.join(CHARTS)}.")
    if name == "time_zone" and value not in available_timezones():
        raise InvalidValue(name, "The time zone is not known.", fix="Use a name such as Europe/Berlin.")
    if name in LIMITS and not LIMITS[name][0] <= value <= LIMITS[name][1]:
        first, last = LIMITS[name]
        raise InvalidValue(name, f"The number must be from {first} to {last}.", fix="Ask your accountant for it.")
    return value


def _check_number(key: str, number: AccountNumber, known: set[str]) -> None:
    if key not in known:
        raise InvalidValue(key, "The account is not known.", fix=f"Use one of {', '.join(sorted(known))}.")
    if not re.fullmatch(ACCOUNT_NUMBER, number.number):
        raise InvalidValue(key, "An account number has 1 to 9 digits.", fix="Enter it without letters.")
    if not re.fullmatch(POSTING_KEY, number.key):
        raise InvalidValue(key, "A posting key has at most 4 digits.", fix="Enter it without letters.")
