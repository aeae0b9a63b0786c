"""Debtor accounts: a receivables account of its own for a tenant, in the accountant's books.

Where a tenant has none, the collective account of receivables is used. DATEV's debtors have one digit more
than other accounts, and the first is 1 to 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.models import JournalAccount, JournalSettings, LedgerAccount
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope

RECEIVABLE = "receivable"
TENANT_PREFIX = "ten_"  # of the keys of debtor accounts


@dataclass(frozen=True, slots=True)
class DebtorAccount:
    """A tenant with its own account."""

    tenant_id: str
    tenant: str
    number: str


def debtor_numbers() -> dict[str, str]:
    """Return the account number of each tenant that has one."""
    rows = JournalAccount.objects.filter(key__startswith=TENANT_PREFIX)
    return dict(rows.order_by("number").values_list("key", "number"))


def debtor_accounts() -> list[DebtorAccount]:
    """Return the tenants that have an account, by number. Requires staff scope."""
    numbers = debtor_numbers()
    names = dict(Tenant.objects.filter(pk__in=numbers).values_list("pk", "name"))
    return [DebtorAccount(key, names.get(key, key), number) for key, number in numbers.items()]


@transaction.atomic
def set_debtor_accounts(wanted: Mapping[str, str], *, actor: Actor, now: datetime) -> None:
    """Set or change the debtor accounts of tenants; none is taken away.

    Raises InvalidValue for unknown tenants, numbers that are no debtor's, and those of other tenants.
    """
    settings = _lock_settings()
    with staff_scope():
        known = set(Tenant.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    for tenant, number in wanted.items():
        if tenant not in known:
            raise InvalidValue(tenant, "The tenant is not known.", fix="Use the id of a tenant.")
        _check_debtor(tenant, number, settings)
    after = debtor_numbers() | dict(wanted)
    taken = dict[str, str]()
    for tenant, number in after.items():
        if (other := taken.setdefault(number, tenant)) != tenant:
            raise InvalidValue(tenant, f"The account {number} belongs to {other}.", fix="Use another number.")
    for tenant, number in wanted.items():
        JournalAccount.objects.update_or_create(key=tenant, defaults={"number": number, "posting_key": ""})
    _record(dict(wanted), actor, now)


@transaction.atomic
def number_debtors(first: int, *, actor: Actor, now: datetime) -> int:
    """Number tenants with receivables from `first` on; return how many.

    Tenants are numbered in the order in which they were created. Repeating it numbers only new ones.
    """
    settings = _lock_settings()
    _check_debtor("first_debtor", str(first), settings)
    numbers = debtor_numbers()
    taken, number, added = set(numbers.values()), first, dict[str, str]()
    with staff_scope():
        owing = LedgerAccount.objects.filter(type=RECEIVABLE).exclude(tenant__in=numbers).values("tenant")
        tenants = list(Tenant.objects.filter(pk__in=owing).order_by("created_at", "pk").values_list("pk", flat=True))
    for tenant in tenants:
        while str(number) in taken:
            number += 1
        _check_debtor("first_debtor", str(number), settings)
        added[tenant] = str(number)
        number += 1
    JournalAccount.objects.bulk_create(JournalAccount(key=key, number=each) for key, each in added.items())
    if added:
        _record(added, actor, now)
    return len(added)


def _lock_settings() -> JournalSettings:
    JournalSettings.objects.get_or_create(pk=1)
    return JournalSettings.objects.select_for_update().get(pk=1)


def _check_debtor(field: str, number: str, settings: JournalSettings) -> None:
    digits = settings.account_length + 1
    if not (number.isascii() and number.isdigit() and len(number) == digits and "1" <= number[0] <= "6"):
        raise InvalidValue(
            field,
            f"A debtor account has {digits} digits and begins with 1 to 6.",
            fix=f"Use a number such as {10 ** (digits - 1)}, or ask your accountant for one.",
        )


def _record(changed: Mapping[str, str], actor: Actor, now: datetime) -> None:
    JournalSettings.objects.filter(pk=1).update(version=F("version") + 1)
    audit.record("journal.debtors", "journal", "debtor accounts", actor=actor, now=now, accounts=len(changed))
