"""Entries of bank statements, whatever format they came in, and their identity."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

MAX_TEXT_LENGTH = 500


class InvalidStatement(ValueError):
    """The file is not a statement that can be read; nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class StatementEntry:
    """One booked movement of money on our account.

    Amounts are in minor units; texts are empty where unknown.
    """

    account: str  # our IBAN, or the bank's own number of the account
    booked_on: date
    minor: int
    currency: str
    incoming: bool  # credited to our account
    returned: bool = False  # undoes an earlier movement: a returned transfer, a cancelled entry
    counterparty: str = ""
    counterparty_account: str = ""
    end_to_end_id: str = ""
    bank_reference: str = ""
    references: tuple[str, ...] = ()  # structured references, such as ISO 11649
    remittance: str = ""
    ordinal: int = 0  # among entries that are otherwise the same

    @property
    def key(self) -> str:
        """Return what identifies it in every file that contains it."""
        content = [self.account, self.booked_on.isoformat(), self.minor, self.currency, self.incoming, self.returned]
        content += [self.counterparty, self.counterparty_account, self.end_to_end_id, self.bank_reference]
        content += [*self.references, self.remittance, self.ordinal]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def number_equal_entries(entries: Iterable[StatementEntry]) -> list[StatementEntry]:
    """Number entries that are the same in all they say, so that each counts once.

    A customer may pay the same amount twice on one day with the same words.
    """
    seen = Counter[StatementEntry]()
    numbered = []
    for entry in entries:
        numbered.append(replace(entry, ordinal=seen[entry]))
        seen[entry] += 1
    return numbered


def clean_words(parts: Sequence[str]) -> str:
    """Join texts of a statement into one line of limited length."""
    return " ".join(" ".join(parts).split())[:MAX_TEXT_LENGTH]
