"""Faults that the driver reports as XID codes: what each means, and what follows.

Sources: NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors) as read in tests/vendors/xids.csv, whose step
"restart the application" makes a fault of the program, and "reset" or "reboot" one of the GPU. A test compares them.
Where this differs from the catalogue's words, the reason stands beside the code.
"""

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What follows from a fault."""

    INFORMS = "informs"  # a fault of the program: its tenant is told, nothing else
    RECORDS = "records"  # shown to operators
    CLOSES_GPU = "closes_gpu"  # nothing new starts there until it was reset and tested; leases go on
    LOSES_SLICE = "loses_slice"  # and the lease whose program was hit is lost; its neighbours go on
    LOSES_GPU = "loses_gpu"  # and every lease on the GPU is lost

    @property
    def is_providers(self) -> bool:
        """Return whether the GPU is at fault, and not the program on it."""
        return self in (Effect.CLOSES_GPU, Effect.LOSES_SLICE, Effect.LOSES_GPU)


INFORMS, RECORDS, CLOSES_GPU = Effect.INFORMS, Effect.RECORDS, Effect.CLOSES_GPU
LOSES_SLICE, LOSES_GPU = Effect.LOSES_SLICE, Effect.LOSES_GPU


@dataclass(frozen=True, slots=True)
class Xid:
    """Meaning and effect of a code."""

    meaning: str
    effect: Effect


XIDS = {
    8: Xid("channel made no progress in time", INFORMS),
    11: Xid("bad method in the command stream", INFORMS),
    13: Xid("exception in the compute/graphics engine, often a bad access by a kernel", INFORMS),
    25: Xid("illegal method in the command stream", INFORMS),
    31: Xid("page fault in GPU memory, usually a bad pointer", INFORMS),
    32: Xid("command fetch unit met a damaged stream", INFORMS),
    37: Xid("firmware met an unknown method", RECORDS),
    38: Xid("firmware watchdog ran out", RECORDS),
    39: Xid("copy engine 0 fault", INFORMS),
    40: Xid("copy engine 1 fault", INFORMS),
    41: Xid("copy engine 2 fault", INFORMS),
    43: Xid("channel reset, work halted; card stays usable", INFORMS),
    44: Xid("engine fault while switching context", RECORDS),
    45: Xid("work torn down because of an earlier fault or a kill", INFORMS),
    46: Xid("engine hung and did not come back", LOSES_GPU),
    48: Xid("memory error of two bits, cannot be corrected", LOSES_GPU),
    54: Xid("power plug of the board missing", CLOSES_GPU),
    60: Xid("video engine exception", INFORMS),
    61: Xid("micro-controller breakpoint on older cards", RECORDS),
    62: Xid("inner micro-controller halted", LOSES_GPU),
    63: Xid("memory row remapped or page retired, recorded", CLOSES_GPU),
    64: Xid("remapping or retirement could not be recorded", LOSES_GPU),
    66: Xid("driver touched a register it may not", RECORDS),
    67: Xid("driver access check failed", RECORDS),
    68: Xid("decode engine 0 exception", INFORMS),
    69: Xid("engine given a class it does not know", INFORMS),
    70: Xid("copy engine 3 fault", INFORMS),
    71: Xid("copy engine 4 fault", INFORMS),
    72: Xid("copy engine 5 fault", INFORMS),
    74: Xid("fault on an NVLink", LOSES_GPU),
    78: Xid("vGPU could not start", CLOSES_GPU),
    79: Xid("card no longer answers on the PCIe bus", LOSES_GPU),
    80: Xid("damaged data arrived at the card", LOSES_SLICE),
    82: Xid("JPEG engine 0 fault", INFORMS),
    86: Xid("optical flow engine exception", INFORMS),
    92: Xid("many corrected memory errors", CLOSES_GPU),
    93: Xid("too many writes to the card's settings store, not fatal", RECORDS),
    94: Xid("memory error kept to one program", LOSES_SLICE),
    95: Xid("memory error that may touch every program", LOSES_GPU),
    106: Xid("test message of the management bus", RECORDS),
    107: Xid("quiet test message of the management bus", RECORDS),
    109: Xid("context switch took too long", LOSES_GPU),
    110: Xid("security fault", LOSES_GPU),
    119: Xid("system processor of the card did not answer a call in time", LOSES_GPU),
    120: Xid("system processor of the card failed", LOSES_GPU),
    121: Xid("fault corrected on the chip-to-chip link", RECORDS),
    136: Xid("link training failed", LOSES_GPU),
    137: Xid("NVLink access not permitted, often follows a bad remote access", RECORDS),
    139: Xid("optical flow engine 1 fault", INFORMS),
    140: Xid("memory error not recovered", LOSES_GPU),
    141: Xid("CUDA fast path fault", INFORMS),
    142: Xid("encode engine 3 fault", INFORMS),
    143: Xid("card could not be initialised", LOSES_GPU),
    144: Xid("NVLink 5 unit SAW fault", CLOSES_GPU),
    145: Xid("NVLink 5 unit RLW fault", CLOSES_GPU),
    146: Xid("NVLink 5 unit TLW fault", CLOSES_GPU),
    147: Xid("NVLink 5 unit TREX fault", CLOSES_GPU),
    148: Xid("NVLink 5 control unit fault", CLOSES_GPU),
    149: Xid("NVLink 5 network interface fault", CLOSES_GPU),
    150: Xid("NVLink 5 unit MSE fault", CLOSES_GPU),
    151: Xid("change of encryption key failed", CLOSES_GPU),
    152: Xid("DLA address unit fault", RECORDS),
    153: Xid("DLA took too long", RECORDS),
    154: Xid("driver tells that the advised recovery step changed", RECORDS),
    155: Xid("NVLink fault named by software", LOSES_GPU),
    156: Xid("a resource was taken out of use, recorded", CLOSES_GPU),
    157: Xid("a resource could not be taken out of use", CLOSES_GPU),
    158: Xid("card hit a fatal time limit", LOSES_GPU),
    159: Xid("coherent interface fault without data", RECORDS),
    160: Xid("memory channel taken out of use", CLOSES_GPU),
    161: Xid("memory channel could not be taken out of use", CLOSES_GPU),
    162: Xid("power smoothing back on", RECORDS),
    163: Xid("power smoothing off", RECORDS),
    164: Xid("power smoothing part near the end of its life", RECORDS),
    165: Xid("power smoothing part worn out", CLOSES_GPU),
    166: Xid("encrypted traffic seen before the link was ready", RECORDS),
    167: Xid("fatal time limit on PCIe", CLOSES_GPU),
    168: Xid("faults found in protected memory", CLOSES_GPU),
    169: Xid("inner security controller halted", CLOSES_GPU),
    170: Xid("interrupt seen in confidential mode", RECORDS),
    171: Xid("detail beside 48: which memory part", RECORDS),
    172: Xid("detail beside 48: which cache part", RECORDS),
}
UNKNOWN = Xid("a code that is not in NVIDIA's catalogue", RECORDS)


def find_xid(code: int) -> Xid:
    """Return a code's meaning and effect; an unknown code is only recorded."""
    return XIDS.get(code, UNKNOWN)
