"""A tenant's account statement on paper."""

from zoneinfo import ZoneInfo

from billing.domain.money import shown
from billing.domain.papers import (
    SECOND,
    Column,
    Group,
    Headline,
    Note,
    Paper,
    Sum,
    day,
    short_day,
    stretch,
)
from billing.services.ledger.accounts import Account
from billing.services.papers.parties import on_paper, supplier_now
from billing.services.tax import standings
from tenants.models import Tenant

COLUMNS = (
    Column("Day", "when"),
    Column("What", "what"),
    Column("Owed", "num"),
    Column("On balance", "num"),
    Column("Owed then", "num"),
    Column("On balance then", "num"),
)
SOURCE = (
    "Every row is from the ledger, where each amount moves from one account to another and nothing is ever changed."
    " What grants paid for is owed no longer; grants themselves are not money and stand in the wallet."
)
NONE = "—"


def of_account(tenant: Tenant, account: Account) -> Paper:
    """Return the paper of an account over a stretch of time, in the tenant's time zone."""
    zone, currency = ZoneInfo(tenant.time_zone), account.currency
    days = stretch(account.since, account.until, zone)
    rows = tuple(
        (
            short_day(entry.at, zone),
            entry.words,
            _change(entry.owed, currency),
            _change(entry.kept, currency),
            shown(entry.owed_after, currency),
            shown(entry.kept_after, currency),
        )
        for entry in account.entries
    )
    return Paper(
        title="Account statement",
        number=days,
        supplier=supplier_now(),
        to="For",
        customer=on_paper(standings.customer(tenant)),
        facts=(
            ("From", day(account.since, zone)),
            ("Through", day(account.until - SECOND, zone)),
            ("Time zone", tenant.time_zone),
            ("Currency", currency),
        ),
        headline=_headline(account, zone),
        columns=COLUMNS,
        groups=(Group("", "", rows),),
        sums=(
            Sum("Owed before", shown(account.opening_owed, currency)),
            Sum("Owed in the end", shown(account.closing_owed, currency), "strong"),
            Sum("On your balance before", shown(account.opening_kept, currency)),
            Sum("On your balance in the end", shown(account.closing_kept, currency), "strong"),
        ),
        notes=(Note("Where this is from", SOURCE),),
        foot=f"Account statement, {days} · {tenant.pk}",
    )


def _headline(account: Account, zone: ZoneInfo) -> Headline:
    owed, kept = account.closing_owed, account.closing_kept
    last = day(account.until - SECOND, zone)
    if not owed and kept:
        return Headline(shown(kept, account.currency), f"on your balance on {last}", "Nothing is owed.")
    more = f"{shown(kept, account.currency)} is on your balance." if kept else ""
    return Headline(shown(owed, account.currency), f"owed on {last}", more)


def _change(minor: int, currency: str) -> str:
    """Write by how much something changed; a plus where it grew."""
    if not minor:
        return NONE
    return f"+{shown(minor, currency)}" if minor > 0 else shown(minor, currency)
