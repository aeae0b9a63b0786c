"""Match an entry of a bank statement with open invoices.

The result is a proposal that an operator confirms.

Numbers that the transfer names come first, then a known account, then amount and name together. An
amount alone is proposed only where a single invoice is due with it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

NUMBER = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<n>[0-9]+)")
# Banks cut texts into lines of 27 or 35 characters, so a number may contain blanks; people leave out its zeros and
# write other marks.
WRITTEN = re.compile(
    r"(?<![0-9])(?P<year>20[0-9]{2})[\s./_-]{0,2}(?P<month>[0-9]{2})[\s./_-]{1,2}(?P<n>[0-9]{1,9})(?![0-9])"
)
COMPACT = re.compile(r"(?<![0-9])(?P<year>20[0-9]{2})[./_-]?(?P<month>[0-9]{2})[./_-]?(?P<n>[0-9]{4,9})(?![0-9])")
IDS = re.compile(r"inv_[0-9a-z]+")
MIN_WORD_LENGTH = 3
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
# Words of names that say nothing about whose they are.
COMMON_WORDS = frozenset(
    {"and", "corp", "der", "die", "fuer", "gbr", "gmbh", "inc", "kgaa", "limited", "llc", "ltd", "mbh", "ohg", "plc"}
    | {"sarl", "sas", "spa", "srl", "the", "und"}
)


class MatchBasis(StrEnum):
    """What a proposal rests on."""

    REFERENCE = "reference"  # the transfer names the invoices, and the amount is what is due on them
    REFERENCE_ONLY = "reference_only"  # it names them, with another amount
    ACCOUNT = "account"  # the payer's account paid invoices of this tenant before
    AMOUNT_AND_NAME = "amount_and_name"
    AMOUNT = "amount"  # the only open invoice of this amount
    NAME = "name"  # only the payer's name


@dataclass(frozen=True, slots=True)
class OpenInvoice:
    """An invoice that may still be paid, and the names of who owes it."""

    id: str
    number: str
    tenant_id: str
    names: tuple[str, ...]
    currency: str
    due: int


@dataclass(frozen=True, slots=True)
class MatchedEntry:
    """A proposal: the tenant, the invoices in order, and what it rests on."""

    tenant_id: str
    invoices: tuple[OpenInvoice, ...]
    basis: MatchBasis

    @property
    def exact(self) -> bool:
        """Whether the transfer names the invoices and pays exactly what is due."""
        return self.basis is MatchBasis.REFERENCE


class InvoiceIndex:
    """Open invoices by number, id, amount due, tenant and the words of names."""

    def __init__(self, invoices: Iterable[OpenInvoice]) -> None:
        self.by_number: dict[tuple[str, str, int], OpenInvoice] = {}
        self.by_id: dict[str, OpenInvoice] = {}
        self.by_due: defaultdict[tuple[str, int], list[OpenInvoice]] = defaultdict(list)
        self.by_tenant: defaultdict[str, list[OpenInvoice]] = defaultdict(list)
        self.tenants_by_word: defaultdict[str, set[str]] = defaultdict(set)
        for invoice in invoices:
            if found := NUMBER.fullmatch(invoice.number):
                self.by_number[found["year"], found["month"], int(found["n"])] = invoice
            self.by_id[invoice.id.lower()] = invoice
            self.by_due[invoice.currency, invoice.due].append(invoice)
            self.by_tenant[invoice.tenant_id].append(invoice)
            for name in invoice.names:
                for word in telling_words(name):
                    self.tenants_by_word[word].add(invoice.tenant_id)

    def named_in(self, text: str) -> list[OpenInvoice]:
        """Return the invoices that a text names, in its order."""
        lowered = text.lower()
        hits: dict[str, int] = {}
        for pattern, searched in ((WRITTEN, lowered), (COMPACT, "".join(lowered.split()))):
            for hit in pattern.finditer(searched):
                if invoice := self.by_number.get((hit["year"], hit["month"], int(hit["n"]))):
                    hits.setdefault(invoice.id, hit.start())
        for hit in IDS.finditer("".join(lowered.split())):
            if invoice := self.by_id.get(hit[0]):
                hits.setdefault(invoice.id, hit.start())
        return [self.by_id[key.lower()] for key in sorted(hits, key=lambda key: hits[key])]

    def tenants_named(self, name: str) -> set[str]:
        """Return the tenants whose name has the telling words of the payer's.

        One of the two names has all telling words of the other.
        """
        words = telling_words(name)
        candidates = {tenant for word in words for tenant in self.tenants_by_word.get(word, ())}
        return {
            tenant
            for tenant in candidates
            if any(
                own and (own <= words or words <= own)
                for invoice in self.by_tenant[tenant]
                for own in map(telling_words, invoice.names)
            )
        }


def match_entry(
    index: InvoiceIndex,
    *,
    minor: int,
    currency: str,
    words: str,
    payer: str,
    payer_account: str,
    known_accounts: Mapping[str, str],
) -> MatchedEntry | None:
    """Return the best proposal for an incoming entry, or None.

    `known_accounts` maps accounts that paid before to their tenants.
    """
    if named := [invoice for invoice in index.named_in(words) if invoice.currency == currency]:
        own = tuple(invoice for invoice in named if invoice.tenant_id == named[0].tenant_id)
        exact = len(own) == len(named) and sum(invoice.due for invoice in own) == minor
        return MatchedEntry(own[0].tenant_id, own, MatchBasis.REFERENCE if exact else MatchBasis.REFERENCE_ONLY)
    if tenant := known_accounts.get(payer_account, ""):
        return MatchedEntry(tenant, _invoices_for(index, tenant, currency, minor), MatchBasis.ACCOUNT)
    due, tenants = index.by_due.get((currency, minor), []), index.tenants_named(payer)
    both = [invoice for invoice in due if invoice.tenant_id in tenants]
    if len({invoice.tenant_id for invoice in both}) == 1:
        return MatchedEntry(both[0].tenant_id, (both[0],), MatchBasis.AMOUNT_AND_NAME)
    if len(tenants) == 1:
        tenant = tenants.pop()
        return MatchedEntry(tenant, _invoices_for(index, tenant, currency, minor), MatchBasis.NAME)
    if len(due) == 1 and not tenants:
        return MatchedEntry(due[0].tenant_id, (due[0],), MatchBasis.AMOUNT)
    return None


def telling_words(name: str) -> frozenset[str]:
    """Return the words that tell a name, folded; legal forms tell nothing."""
    folded = unicodedata.normalize("NFKD", name.lower().translate(UMLAUTS))
    plain = "".join(each if each.isalnum() else " " for each in folded if not unicodedata.combining(each))
    return frozenset(word for word in plain.split() if len(word) >= MIN_WORD_LENGTH and word not in COMMON_WORDS)


def _invoices_for(index: InvoiceIndex, tenant: str, currency: str, minor: int) -> tuple[OpenInvoice, ...]:
    """Return the tenant's invoice of that amount, else all its open ones."""
    own = tuple(invoice for invoice in index.by_tenant[tenant] if invoice.currency == currency)
    return tuple(invoice for invoice in own if invoice.due == minor)[:1] or own
