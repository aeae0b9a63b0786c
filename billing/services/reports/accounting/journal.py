"""Journal of all tenants for an accountant: neutral rows, and DATEV booking batches.

Requires staff scope.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain.datev import BatchHeader, Booking, write_batch
from billing.domain.journal import DIVIDED_TYPES, JournalEntry, JournalKey, JournalTransfer, journal_entries
from billing.domain.journal_accounts import AccountNumber
from billing.domain.ledger import AccountType
from billing.domain.money import decimal_string
from billing.domain.periods import midnight
from billing.models import JournalSettings
from billing.services.reports.accounting.journal_accounts import account_numbers
from billing.services.tax import exchange_rates, tax_determination
from ports.postgres.sql_statements import query_rows
from tenants.services.errors import InvalidValue, ProblemError

MAX_DAYS = timedelta(days=366)
JOURNAL_HEADS = (
    "transfer", "date", "kind", "document", "tenant", "tenant_name", "debit_account", "debit_name", "credit_account",
    "credit_name", "amount", "currency", "treatment",
)  # fmt: skip


class JournalIncomplete(ProblemError):
    code, status, title = "journal-incomplete", 409, "The journal cannot be exported"


@dataclass(frozen=True, slots=True)
class JournalMonth:
    """A calendar month or other days of the journal, in the zone of its settings."""

    first: date
    last: date
    since: datetime
    until: datetime


def journal_month(label: str, settings: JournalSettings) -> JournalMonth:
    """Return the days and moments of a month such as `2026-10`."""
    first = date.fromisoformat(f"{label}-01")
    following = (first + timedelta(days=31)).replace(day=1)
    zone = ZoneInfo(settings.time_zone)
    return JournalMonth(first, following - timedelta(days=1), midnight(first, zone), midnight(following, zone))


def journal_days(first: date, last: date, settings: JournalSettings) -> JournalMonth:
    """Return the days, both included; InvalidValue for too many or none."""
    if not timedelta(0) <= last - first <= MAX_DAYS:
        raise InvalidValue(
            "last",
            f"The last day must be at most {MAX_DAYS.days} days after the first.",
            fix="Choose both days anew.",
        )
    zone = ZoneInfo(settings.time_zone)
    return JournalMonth(first, last, midnight(first, zone), midnight(last + timedelta(days=1), zone))


def read_journal(*, since: datetime, until: datetime, tenant: str = "") -> Iterator[JournalEntry]:
    """Return the entries of [since, until), oldest first, with each amount of the ledger once."""
    rows = query_rows("billing/reports/journal_transfers", since=since, until=until, tenant=tenant)
    return journal_entries(JournalTransfer(*row) for row in rows)


def journal_rows(entries: Iterator[JournalEntry], settings: JournalSettings) -> Iterator[tuple[object, ...]]:
    """Yield the neutral rows of entries, with the accountant's numbers."""
    numbers, zone = account_numbers(settings), ZoneInfo(settings.time_zone)
    for each in entries:
        of = each.transfer
        yield (
            of.id,
            of.at.astimezone(zone).date().isoformat(),
            of.kind,
            of.document,
            of.tenant_id,
            of.tenant,
            _number(numbers, each.debit, of.tenant_id),
            each.debit.name,
            _number(numbers, each.credit, of.tenant_id),
            each.credit.name,
            decimal_string(each.minor, of.currency),
            of.currency,
            of.treatment,
        )


def datev_batch(label: str, settings: JournalSettings, *, now: datetime) -> Iterator[bytes]:
    """Yield a month's journal as a DATEV booking batch.

    Raises JournalIncomplete if an account has no number, or a currency no exchange rate.
    """
    month, own = journal_month(label, settings), tax_determination.supplier_currency()
    entries = list(read_journal(since=month.since, until=month.until))
    numbers, zone = account_numbers(settings), ZoneInfo(settings.time_zone)
    _check_numbers(entries, numbers)
    rates = _month_rates({each.transfer.currency for each in entries} - {own}, own, month.last)
    header = BatchHeader(
        advisor=settings.advisor,
        client=settings.client,
        fiscal_year=_fiscal_year(month.first, settings.fiscal_year_month),
        account_length=settings.account_length,
        first=month.first,
        last=month.last,
        name=f"gpubroker {label}",
        currency=own,
        made_at=now.astimezone(zone),
    )
    return write_batch(header, (_booking(each, numbers, rates, zone) for each in entries))


def _booking(
    entry: JournalEntry, numbers: Mapping[str, AccountNumber], rates: Mapping[str, int], zone: ZoneInfo
) -> Booking:
    """Return the booking of an entry; income and tax are its contra account."""
    of = entry.transfer
    swapped = entry.debit.type in DIVIDED_TYPES
    account, contra = (entry.credit, entry.debit) if swapped else (entry.debit, entry.credit)
    return Booking(
        minor=entry.minor,
        currency=of.currency,
        account=_number(numbers, account, of.tenant_id),
        contra=_number(numbers, contra, of.tenant_id),
        is_debit=not swapped,
        key=numbers[str(contra)].key,
        day=of.at.astimezone(zone).date(),
        document=of.document,
        reference=str(of.id),
        text=f"{of.kind} {of.tenant}",
        cost_centre=of.tenant_id,
        rate=rates.get(of.currency),
    )


def _check_numbers(entries: list[JournalEntry], numbers: Mapping[str, AccountNumber]) -> None:
    used = {key for each in entries for key in (each.debit, each.credit)}
    if missing := sorted(key.name for key in used if str(key) not in numbers):
        raise JournalIncomplete(
            f"No account number is set for {', '.join(missing)}.", fix="Set the number on the page Accounting."
        )


def _month_rates(currencies: set[str], own: str, last: date) -> dict[str, int]:
    found = {currency: exchange_rates.rate_on(currency, own, last) for currency in currencies}
    if missing := sorted(currency for currency, rate in found.items() if rate is None):
        raise JournalIncomplete(
            f"There is no exchange rate of {' and '.join(missing)} to {own} on {last.isoformat()}.",
            fix="Add the rate on the page Tax rates.",
        )
    return {currency: rate.rate for currency, rate in found.items() if rate is not None}


def _number(numbers: Mapping[str, AccountNumber], key: JournalKey, tenant_id: str) -> str:
    """Return an account's number; of receivables the tenant's debtor account, if it has one."""
    own = numbers.get(tenant_id) if key.type == AccountType.RECEIVABLE else None
    found = own or numbers.get(str(key))
    return found.number if found else ""


def _fiscal_year(first: date, month: int) -> date:
    return date(first.year if first.month >= month else first.year - 1, month, 1)
