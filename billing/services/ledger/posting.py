"""The one place where the books are written. Each posting says what it stands for, and stands there once.

What is posted is one statement, however many invoices it is about; PostgreSQL moves the balances with it, locked in
the order of their accounts. A transaction posts once, and last of all it does: two that post twice could wait for each
other. Must run behind the wall of the tenant whose it is.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from billing.models.ledger import THEIRS
from billing.services.statements import statement

SHOWN = 3


class Contradiction(Exception):
    """The books already say something else under this name: nothing was posted, and a person has to look."""


def finalized(invoices: Sequence[str], *, now: datetime) -> int:
    """Book invoices that became final, and what of them was drawn from grants and from their tenant's balance.

    Return how many transfers that took, none where they stand there already.
    """
    return _post("ledger_finalized", invoices, now)


def paid(payments: Sequence[str], *, now: datetime) -> int:
    """Book payments that succeeded."""
    return _post("ledger_paid", payments, now)


def credited(notes: Sequence[str], *, now: datetime) -> int:
    """Book credit notes: what is not owed after all was not earned."""
    return _post("ledger_credited", notes, now)


def topped_up(topups: Sequence[str], *, now: datetime) -> int:
    """Book money that was put into wallets."""
    return _post("ledger_topped_up", topups, now)


def refunded(refunds: Sequence[str], *, now: datetime) -> int:
    """Book money that goes back to the cards that it came from."""
    return _post("ledger_refunded", refunds, now)


def unrefunded(refunds: Sequence[str], *, now: datetime) -> int:
    """Book that refunds never went, or came back: the money is on the balance again."""
    return _post("ledger_unrefunded", refunds, now)


def granted(grants: Sequence[str], *, now: datetime) -> int:
    """Book credit that was given."""
    return _post("ledger_granted", grants, now)


def lapsed(grants: Sequence[str], *, now: datetime) -> int:
    """Book what was left of grants when they ended."""
    return _post("ledger_lapsed", grants, now)


def voided(invoices: Sequence[str], *, now: datetime) -> int:
    """Book that final invoices were taken back: each of their own transfers is reversed."""
    return _post("ledger_voided", invoices, now)


def _post(rows: str, subjects: Sequence[str], now: datetime) -> int:
    asked = {"subjects": list(subjects), "theirs": THEIRS, "now": now}
    ((wanted, missing, written),) = _say("ledger_post", rows, asked)
    if missing:
        _say("ledger_open", rows, asked)
        ((wanted, _, written),) = _say("ledger_post", rows, asked)
    if written < wanted and (others := _say("ledger_contradictions", rows, asked)):
        named = ", ".join(idem for (idem,) in others[:SHOWN])
        raise Contradiction(f"The books say something else about {named}.")
    return int(written)


def _say(name: str, rows: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement about what these rows want in the books."""
    wanted = statement("ledger_wanted").replace("/*rows*/", statement(rows))
    with connection.cursor() as cursor:
        cursor.execute(statement(name).replace("/*wanted*/", wanted), asked)
        return list(cursor.fetchall())
