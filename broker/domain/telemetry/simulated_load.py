"""Believable use of simulated GPUs: what a lease's program does at a time.

A pure function of the lease and the time: the same second has the same values whenever it is asked for. Training is
busy with short pauses for checkpoints, an inference server follows the hour of the day, and a notebook works in
sessions between which it is idle.
"""

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime

from broker.domain.telemetry.throttle_reasons import ThrottleReason

SESSION_S = 1500  # a notebook is busy or idle for so long at a time
SESSIONS_BUSY = 0.45
CHECKPOINT_EVERY_S, CHECKPOINT_S = 420, 25
WARM_UP_S = 90  # a program loads its data before it computes
AMBIENT_C = 27
POWER_LIMIT_SHARE = 0.96  # of the limit, above which the clock falls
# Power limit in watts by the beginning of a model's name; sources: NVIDIA's data sheets.
POWER_LIMITS = {
    "A2-": 60, "T4": 70, "L4-": 72, "P4": 75, "A10": 150, "A16": 250, "A30": 165, "A40": 300, "A100-PCIe": 300,
    "A100": 400, "A800": 400, "L40S": 350, "L40": 300, "V100": 300, "H100-PCIe": 350, "H100-NVL": 400, "H100": 700,
    "H800": 700, "H200-NVL": 600, "H200": 700, "H20": 500, "GH200": 900, "B200": 1000, "GB200": 1200, "B300": 1400,
    "GB300": 1400, "RTX-PRO-6000": 600,
}  # fmt: skip
USUAL_POWER_LIMIT = 300
IDLE_SHARE = 0.11  # of the limit, without any work
FULL_CLOCK_MHZ, IDLE_CLOCK_MHZ = 1980, 345


@dataclass(frozen=True, slots=True)
class SliceLoad:
    """What a program does on its slice at one time, per mille."""

    engine_active: int
    sm_active: int
    tensor_active: int
    dram_active: int
    memory_share: float  # of the slice's memory, from 0 to 1


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """What that makes of the whole GPU."""

    power_dw: int
    temperature_c: int
    sm_clock_mhz: int
    throttle_reasons: int


def slice_load(seed: str, kind: str, *, running_s: float, at: datetime) -> SliceLoad:
    """Return the use of a slice by a lease; `kind` is a template's name."""
    if kind == "batch":
        engine, memory = _training(seed, running_s)
    elif kind == "vllm":
        engine, memory = _serving(seed, running_s, at)
    else:
        engine, memory = _interactive(seed, running_s)
    busy = max(0.0, min(1.0, engine))
    mille = round(busy * 1000)
    return SliceLoad(
        engine_active=mille,
        sm_active=round(mille * (0.78 + 0.14 * _noise(seed, "sm"))),
        tensor_active=round(mille * (0.25 + 0.3 * _noise(seed, "tensor"))),
        dram_active=round(mille * (0.35 + 0.3 * _noise(seed, "dram"))),
        memory_share=max(0.005, min(0.97, memory)),
    )


def gpu_load(uuid: str, model: str, activity: float, *, at: datetime) -> GpuLoad:
    """Return power, heat and clock of a GPU whose engines are active for this share."""
    limit = power_limit_w(model)
    wiggle = 0.02 * (_noise(uuid, "power", int(at.timestamp()) // 10) - 0.5)
    share = IDLE_SHARE + (1 - IDLE_SHARE) * min(1.0, activity) * (0.9 + 0.16 * _noise(uuid, "card")) + wiggle
    is_capped = share > POWER_LIMIT_SHARE
    share = min(share, 1.0)
    clock = IDLE_CLOCK_MHZ if activity < 0.01 else round(FULL_CLOCK_MHZ * (0.93 if is_capped else 1.0))
    reasons = ThrottleReason.GPU_IDLE if activity < 0.01 else ThrottleReason.SW_POWER_CAP if is_capped else 0
    return GpuLoad(
        power_dw=round(limit * share * 10),
        temperature_c=round(AMBIENT_C + 4 * _noise(uuid, "slot") + 42 * share),
        sm_clock_mhz=clock,
        throttle_reasons=int(reasons),
    )


def power_limit_w(model: str) -> int:
    """Return the power limit of a GPU model in watts."""
    starts = [start for start in POWER_LIMITS if model.startswith(start)]
    return POWER_LIMITS[max(starts, key=len)] if starts else USUAL_POWER_LIMIT


def _training(seed: str, running_s: float) -> tuple[float, float]:
    if running_s < WARM_UP_S:
        return 0.06, 0.7 * running_s / WARM_UP_S
    memory = 0.7 + 0.2 * _noise(seed, "memory")
    if running_s % CHECKPOINT_EVERY_S < CHECKPOINT_S:
        return 0.08 + 0.1 * _noise(seed, int(running_s)), memory
    return 0.9 + 0.08 * _noise(seed, int(running_s) // 10), memory


def _serving(seed: str, running_s: float, at: datetime) -> tuple[float, float]:
    if running_s < WARM_UP_S:
        return 0.03, 0.88 * running_s / WARM_UP_S
    hour = at.hour + at.minute / 60
    day = 0.5 - 0.5 * math.cos((hour - 3) / 24 * 2 * math.pi)  # most at 15:00, least at 3:00
    burst = 0.25 * _noise(seed, "burst", int(running_s) // 10) ** 3
    return 0.05 + (0.35 + 0.3 * _noise(seed, "popular")) * day + burst, 0.88


def _interactive(seed: str, running_s: float) -> tuple[float, float]:
    session = int(running_s) // SESSION_S
    memory = 0.05 + 0.5 * _noise(seed, "held", session - 1)
    if session and _noise(seed, "session", session) > SESSIONS_BUSY:
        return 0.0, memory
    into = running_s % SESSION_S / SESSION_S
    held = memory + (0.05 + 0.5 * _noise(seed, "held", session) - memory) * min(1.0, into * 3)
    cell = _noise(seed, "cell", int(running_s) // 40)  # cells run for some time, then somebody reads
    return (0.25 + 0.6 * cell if cell > 0.35 else 0.0), held


def _noise(*of: object) -> float:
    """Return a number from 0 to 1 that depends on these alone."""
    digest = hashlib.blake2b(repr(of).encode(), digest_size=4).digest()
    return int.from_bytes(digest) / 2**32
