"""The chain over everything that was posted, and the look that finds whatever was changed behind the product's back.

Each tenant has a chain of its own. A seal takes what was posted since the one before it, within one UTC day, and keeps
the hash that the chain has then. Who changes, removes or adds a transfer or a seal, even as a superuser who switches
the triggers off, changes a hash that is kept; only who rewrites every later seal too is not found, which is why the
last hash of all is printed: kept elsewhere, it finds them as well.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from django.db import connection, transaction

from billing.domain.ledger import Entry, chained, genesis
from billing.models import LedgerSeal, LedgerTransfer
from billing.services.statements import statement
from tenants.services.walls import as_sweep, as_tenant

# No transaction that posts lives as long; what commits even later is found for a week (ledger_unsealed.sql).
GRACE = timedelta(minutes=2)
# What is older than this and in no seal was put there by nobody of the product, or sealing stands still.
SEALED_AFTER = timedelta(days=1)
SEALING = 7_012_027  # the advisory lock of whoever seals
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look at all chains found; `head` is one hash over where all of them end."""

    tenants: int
    seals: int
    transfers: int
    unsealed: int
    head: str
    wrong: tuple[str, ...]


def seal(*, now: datetime) -> int:
    """Seal what was posted up to a moment ago, some of it at a time; return how many transfers that were."""
    sealed = 0
    while True:
        taken = _seal_some(now)
        sealed += taken
        if taken < BATCH:
            return sealed


@transaction.atomic
def _seal_some(now: datetime) -> int:
    """Go on with the chains of the tenants that come first, in a transaction of its own and alone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALING])
    with as_sweep():
        entries = _unsealed(now - GRACE)
        latest = LedgerSeal.objects.filter(tenant_id__in={entry.tenant_id for entry in entries})
        last = {seal.tenant_id: seal for seal in latest.order_by("tenant_id", "-n").distinct("tenant_id")}
    for tenant_id, theirs in groupby(entries, key=lambda entry: entry.tenant_id):
        with as_tenant(tenant_id):
            LedgerSeal.objects.bulk_create(_seals(tenant_id, last.get(tenant_id), theirs, now))
    return len(entries)


def _seals(
    tenant_id: str, last: LedgerSeal | None, entries: Iterable[Entry], now: datetime
) -> Iterator[LedgerSeal]:
    """Make a seal for each UTC day that something was posted on."""
    n, head = (last.n, bytes(last.hash)) if last else (0, genesis(tenant_id))
    for day, part in groupby(entries, key=lambda entry: entry.recorded_at.astimezone(UTC).date()):
        taken = list(part)
        before, n, head = head, n + 1, chained(head, taken)
        yield LedgerSeal(
            tenant_id=tenant_id,
            n=n,
            day=day,
            transfers=[entry.id for entry in taken],
            before=before,
            hash=head,
            sealed_at=now,
        )


def _unsealed(until: datetime) -> list[Entry]:
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_unsealed"), {"until": until, "most": BATCH})
        return [Entry(*row) for row in cursor.fetchall()]


def verify(*, now: datetime) -> Verdict:
    """Walk along every chain and work each hash out anew from the rows. Must run as staff."""
    wrong, counted, covered, whose = list[str](), 0, 0, 0
    heads = hashlib.sha256()
    found = LedgerSeal.objects.order_by("tenant_id", "n").iterator(BATCH)
    for tenant_id, seals in groupby(found, key=lambda seal: seal.tenant_id):
        whose, n, head = whose + 1, 0, genesis(tenant_id)
        for part in _batches(seals):
            rows = _entries(part)
            for each in part:
                n, counted, covered = n + 1, counted + 1, covered + len(each.transfers)
                wrong += _faults(each, n, head, rows)
                head = bytes(each.hash)
        heads.update(head)
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_loose"))
        loose = cursor.fetchall()
    wrong += [
        f"transfer {pk} of {tenant_id}, written {at:%Y-%m-%d %H:%M}, is in no seal"
        for pk, tenant_id, at in loose
        if at < now - SEALED_AFTER
    ]
    return Verdict(whose, counted, covered, len(loose), heads.hexdigest(), tuple(wrong))


def _faults(seal: LedgerSeal, n: int, head: bytes, rows: dict[int, Entry]) -> Iterator[str]:
    name = f"seal {seal.n} of {seal.tenant_id}, {seal.day}"
    if seal.n != n:
        yield f"{name}: seal {n} is gone"
    elif bytes(seal.before) != head:
        yield f"{name}: it does not go on where the seal before it ends"
    if gone := [pk for pk in seal.transfers if pk not in rows]:
        yield f"{name}: transfer {gone[0]} is gone"
    elif chained(bytes(seal.before), (rows[pk] for pk in seal.transfers)) != bytes(seal.hash):
        few = ", ".join(str(pk) for pk in seal.transfers[:5])
        yield f"{name}: a transfer was changed, one of {few}{' …' if len(seal.transfers) > 5 else ''}"


def _batches(seals: Iterable[LedgerSeal]) -> Iterator[list[LedgerSeal]]:
    """Take seals together until their transfers are worth a query."""
    batch, size = list[LedgerSeal](), 0
    for each in seals:
        batch.append(each)
        size += len(each.transfers)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _entries(seals: Iterable[LedgerSeal]) -> dict[int, Entry]:
    ids = [pk for each in seals for pk in each.transfers]
    columns = Entry.__dataclass_fields__
    return {row[0]: Entry(*row) for row in LedgerTransfer.objects.filter(pk__in=ids).values_list(*columns)}
