"""Hash chain of ledger entries."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from billing.domain.ledger import (
    CREDIT_NORMAL_TYPES,
    TENANT_ACCOUNT_TYPES,
    AccountType,
    LedgerEntry,
    extend_chain,
    genesis_hash,
)
from tests.billing.ledger.ledger_rows import FLOORED_TYPES

AT = datetime(2026, 11, 1, 0, 5, tzinfo=UTC)
ENTRY = LedgerEntry(7, "ten_a", 1, 2, "EUR", 200, AT, "invoice", "inv_a", None, "inv_a:total", AT)
OTHER: dict[str, Any] = {
    "id": 8,
    "tenant_id": "ten_b",
    "debit_account_id": 3,
    "credit_account_id": 3,
    "currency": "USD",
    "minor": 201,
    "at": AT + timedelta(microseconds=1),
    "kind": "payment",
    "ref": "inv_b",
    "reverses_id": 1,
    "idem": "inv_a:subtotal",
    "recorded_at": AT + timedelta(microseconds=1),
}
START = genesis_hash("ten_a")


@pytest.mark.parametrize("field", [each.name for each in fields(LedgerEntry)])
def test_a_change_of_any_field_changes_the_hash(field: str) -> None:
    changed = replace(ENTRY, **{field: OTHER[field]})
    assert extend_chain(START, [changed]) != extend_chain(START, [ENTRY])


def test_the_same_time_in_another_zone_gives_the_same_hash() -> None:
    elsewhere = replace(ENTRY, at=AT.astimezone(timezone(timedelta(hours=5, minutes=30))))
    assert extend_chain(START, [elsewhere]) == extend_chain(START, [ENTRY])


def test_text_moved_into_the_next_field_changes_the_hash() -> None:
    one, other = replace(ENTRY, kind="a", ref='b","c'), replace(ENTRY, kind='a","b', ref="c")
    assert extend_chain(START, [one]) != extend_chain(START, [other])


@given(numbers=st.lists(st.integers(1, 50), min_size=1, max_size=8, unique=True), cut=st.integers(0, 8))
def test_a_chain_extended_in_parts_gives_the_same_hash(numbers: list[int], cut: int) -> None:
    entries = [replace(ENTRY, id=number) for number in numbers]
    assert extend_chain(extend_chain(START, entries[:cut]), entries[cut:]) == extend_chain(START, entries)


@given(numbers=st.permutations(range(6)), left=st.integers(0, 5))
def test_reordered_or_missing_entries_change_the_hash(numbers: list[int], left: int) -> None:
    entries = [replace(ENTRY, id=number) for number in range(6)]
    assert extend_chain(START, entries[:left] + entries[left + 1 :]) != extend_chain(START, entries)
    assume(numbers != list(range(6)))
    assert extend_chain(START, [entries[number] for number in numbers]) != extend_chain(START, entries)


def test_every_tenant_has_its_own_genesis_hash() -> None:
    assert genesis_hash("ten_a") != genesis_hash("ten_b")


def test_floored_accounts_are_credit_normal_tenant_accounts() -> None:
    assert FLOORED_TYPES <= TENANT_ACCOUNT_TYPES & CREDIT_NORMAL_TYPES
    assert AccountType.CASH not in TENANT_ACCOUNT_TYPES | CREDIT_NORMAL_TYPES
