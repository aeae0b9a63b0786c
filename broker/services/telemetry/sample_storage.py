"""Store batches of samples: each once, by COPY, into the partitions of their days."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from django.db import connection, transaction

from broker.domain.telemetry import copy_format
from broker.models import GpuSlot, SampleBatch
from broker.services.telemetry.partitions import create_partitions

# Columns in the order of the table, with the letter of their type in `copy_format`.
COLUMNS = {
    "slot_id": "i", "at": "q", "energy_mj": "q", "memory_used_mib": "i", "power_dw": "i", "throttle_reasons": "i",
    "pcie_rx_kib": "i", "pcie_tx_kib": "i", "engine_active": "h", "sm_active": "h", "tensor_active": "h",
    "dram_active": "h", "temperature_c": "h", "sm_clock_mhz": "h",
}  # fmt: skip
CODES = "".join(COLUMNS.values())
MEASURED = tuple(COLUMNS)[2:]
ROWS_AT_ONCE = 500  # so that PostgreSQL stores some while the next are encoded

Known = tuple[bool, ...]  # per column: whether it has a value
Columns = list[list[int]]


@dataclass(frozen=True, slots=True)
class SlotSamples:
    """Samples of one slot, oldest first, by column.

    A column that is missing is unknown throughout; in a column, None is unknown once.
    """

    gpu_id: str
    placement: tuple[int, int]
    at: Sequence[datetime]
    columns: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a node sent together, and its number there."""

    node_id: str
    boot_id: str
    seq: int
    slots: Sequence[SlotSamples]


def store_batch(batch: Batch, *, now: datetime) -> int:
    """Store a batch; return how many samples were new, 0 if it had come before."""
    times = [at for slot in batch.slots for at in slot.at]
    if not times:
        return 0
    with transaction.atomic():
        _, is_new = SampleBatch.objects.get_or_create(
            node_id=batch.node_id,
            boot_id=batch.boot_id,
            seq=batch.seq,
            defaults={
                "first_at": min(times),
                "last_at": max(times),
                "received_at": now,
                "samples": len(times),
            },
        )
        if not is_new:
            return 0
        ids = _slot_ids({(slot.gpu_id, slot.placement) for slot in batch.slots})
        create_partitions({at.date() for at in (min(times), max(times))})
        _copy(batch.slots, ids)
    return len(times)


def _copy(slots: Sequence[SlotSamples], ids: Mapping[tuple[str, tuple[int, int]], int]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY broker_gpusample ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.write(copy_format.HEADER)
        for rows in _encoded(slots, ids):
            copy.write(rows)
        copy.write(copy_format.TRAILER)


def _encoded(slots: Sequence[SlotSamples], ids: Mapping[tuple[str, tuple[int, int]], int]) -> Iterator[bytes]:
    """Encode samples, those with the same unknown columns together."""
    groups: defaultdict[Known, Columns] = defaultdict(lambda: [[] for _ in COLUMNS])
    encoded: dict[int, list[int]] = {}  # the slots of a node usually share their times
    for slot in slots:
        slot_id = ids[slot.gpu_id, slot.placement]
        at = encoded.get(id(slot.at))
        if at is None:
            at = encoded[id(slot.at)] = [copy_format.microseconds(each) for each in slot.at]
        for known, columns in _by_known(slot, [slot_id] * len(at), at):
            group = groups[known]
            for whole, added in zip(group, columns, strict=True):
                whole += added
            if len(group[0]) >= ROWS_AT_ONCE:
                yield _encode(known, groups.pop(known))
    for known, group in groups.items():
        yield _encode(known, group)


def _encode(known: Known, group: Columns) -> bytes:
    return copy_format.encode_rows(CODES, [each if has else None for has, each in zip(known, group, strict=True)])


def _by_known(slot: SlotSamples, slot_ids: list[int], at: list[int]) -> Iterator[tuple[Known, Columns]]:
    """Split a slot's samples by which of their columns are known."""
    measured = [slot.columns.get(name) for name in MEASURED]
    if all(column is None or None not in column for column in measured):
        known = (True, True, *(column is not None for column in measured))
        yield known, [slot_ids, at, *([] if column is None else cast("list[int]", column) for column in measured)]
        return
    for each in range(len(at)):
        row = [None if column is None else column[each] for column in measured]
        known = (True, True, *(value is not None for value in row))
        yield known, [[slot_ids[each]], [at[each]], *([] if value is None else [value] for value in row)]


def _slot_ids(wanted: set[tuple[str, tuple[int, int]]]) -> dict[tuple[str, tuple[int, int]], int]:
    """Return the ids of slots, creating those that are new."""
    found = _known_slot_ids(wanted)
    if missing := wanted - set(found):
        GpuSlot.objects.bulk_create(
            [GpuSlot(gpu_id=gpu, placement=placement) for gpu, placement in sorted(missing)], ignore_conflicts=True
        )
        found = _known_slot_ids(wanted)
    return found


def _known_slot_ids(wanted: set[tuple[str, tuple[int, int]]]) -> dict[tuple[str, tuple[int, int]], int]:
    rows = GpuSlot.objects.filter(gpu__in={gpu for gpu, _ in wanted}).values_list("gpu_id", "placement", "id")
    return {
        (gpu, (placement.lower, placement.upper)): slot
        for gpu, placement, slot in rows
        if (gpu, (placement.lower, placement.upper)) in wanted
    }
