"""Ledger seal: a hash chain per tenant over all transfers, and its verification.

A seal covers what was posted since the previous one, within one UTC day, and stores the hash that
the chain then has. Whoever changes, removes or adds a transfer or a seal, even as a superuser with
the triggers off, changes a stored hash. Only rewriting every later seal as well goes undetected,
which is why the last hash of all is printed: kept elsewhere, it detects that too.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db import connection, transaction

from billing.domain.ledger import LedgerEntry, extend_chain, genesis_hash
from billing.models import LedgerSeal, LedgerTransfer
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope, tenant_scope

# No posting transaction lasts longer; what commits even later is found for a week (unsealed_transfers.sql).
SEAL_DELAY = timedelta(minutes=2)
# An older transfer without a seal was not written by the product, or sealing has stopped.
MAX_UNSEALED_AGE = timedelta(days=1)
SEAL_LOCK_ID = 7_012_027  # advisory lock
BATCH_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class SealVerification:
    """Result of verifying all chains; `head` is one hash over all chain ends."""

    tenants: int
    seals: int
    transfers: int
    unsealed: int
    head: str
    wrong: tuple[str, ...]


def seal_ledger(*, now: datetime) -> int:
    """Seal recent transfers in batches; return how many."""
    sealed = 0
    while True:
        taken = _seal_batch(now)
        sealed += taken
        if taken < BATCH_SIZE:
            return sealed


@transaction.atomic
def _seal_batch(now: datetime) -> int:
    """Extend the chains of the next tenants, in one transaction and under a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEAL_LOCK_ID])
    with system_scope():
        entries = _unsealed_entries(now - SEAL_DELAY)
        latest = LedgerSeal.objects.filter(tenant_id__in={entry.tenant_id for entry in entries})
        last = {seal.tenant_id: seal for seal in latest.order_by("tenant_id", "-n").distinct("tenant_id")}
    for tenant_id, theirs in groupby(entries, key=lambda entry: entry.tenant_id):
        with tenant_scope(tenant_id):
            LedgerSeal.objects.bulk_create(_make_seals(tenant_id, last.get(tenant_id), theirs, now))
    return len(entries)


def _make_seals(
    tenant_id: str, last: LedgerSeal | None, entries: Iterable[LedgerEntry], now: datetime
) -> Iterator[LedgerSeal]:
    """Make a seal for each UTC day with transfers."""
    n, head = (last.n, bytes(last.hash)) if last else (0, genesis_hash(tenant_id))
    for day, part in groupby(entries, key=lambda entry: entry.recorded_at.astimezone(UTC).date()):
        taken = list(part)
        before, n, head = head, n + 1, extend_chain(head, taken)
        yield LedgerSeal(
            tenant_id=tenant_id,
            n=n,
            day=day,
            transfers=[entry.id for entry in taken],
            before=before,
            hash=head,
            sealed_at=now,
        )


def _unsealed_entries(until: datetime) -> list[LedgerEntry]:
    return [LedgerEntry(*row) for row in query_rows("billing/ledger/unsealed_transfers", until=until, most=BATCH_SIZE)]


def verify_seals(*, now: datetime) -> SealVerification:
    """Recompute every hash of every chain from the rows. Requires staff scope."""
    wrong, counted, covered, whose = list[str](), 0, 0, 0
    heads = hashlib.sha256()
    found = LedgerSeal.objects.order_by("tenant_id", "n").iterator(BATCH_SIZE)
    for tenant_id, seals in groupby(found, key=lambda seal: seal.tenant_id):
        whose, n, head = whose + 1, 0, genesis_hash(tenant_id)
        for part in _batch_seals(seals):
            rows = _read_entries(part)
            for each in part:
                n, counted, covered = n + 1, counted + 1, covered + len(each.transfers)
                wrong += _find_faults(each, n, head, rows)
                head = bytes(each.hash)
        heads.update(head)
    loose = query_rows("billing/ledger/transfers_without_seal")
    wrong += [
        f"transfer {pk} of {tenant_id}, written {at:%Y-%m-%d %H:%M}, is not in any seal"
        for pk, tenant_id, at in loose
        if at < now - MAX_UNSEALED_AGE
    ]
    return SealVerification(whose, counted, covered, len(loose), heads.hexdigest(), tuple(wrong))


def _find_faults(seal: LedgerSeal, n: int, head: bytes, rows: dict[int, LedgerEntry]) -> Iterator[str]:
    name = f"seal {seal.n} of {seal.tenant_id}, {seal.day}"
    if seal.n != n:
        yield f"{name}: seal {n} is missing"
    elif bytes(seal.before) != head:
        yield f"{name}: it does not continue the previous seal"
    if gone := [pk for pk in seal.transfers if pk not in rows]:
        yield f"{name}: transfer {gone[0]} is missing"
    elif extend_chain(bytes(seal.before), (rows[pk] for pk in seal.transfers)) != bytes(seal.hash):
        few = ", ".join(str(pk) for pk in seal.transfers[:5])
        yield f"{name}: a transfer was changed, one of {few}{' …' if len(seal.transfers) > 5 else ''}"


def _batch_seals(seals: Iterable[LedgerSeal]) -> Iterator[list[LedgerSeal]]:
    """Group seals until their transfers are worth a query."""
    batch, size = list[LedgerSeal](), 0
    for each in seals:
        batch.append(each)
        size += len(each.transfers)
        if size >= BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_entries(seals: Iterable[LedgerSeal]) -> dict[int, LedgerEntry]:
    ids = [pk for each in seals for pk in each.transfers]
    columns = LedgerEntry.__dataclass_fields__
    return {row[0]: LedgerEntry(*row) for row in LedgerTransfer.objects.filter(pk__in=ids).values_list(*columns)}
