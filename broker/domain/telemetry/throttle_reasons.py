"""Why a GPU runs below its clock, and whose fault that is.

Source: nvml.h, nvmlClocksEventReason*; DCGM states the same bits.
"""

from enum import IntFlag


class ThrottleReason(IntFlag):
    """Bits that NVML and DCGM state."""

    GPU_IDLE = 0x1
    APPLICATIONS_CLOCKS = 0x2
    SW_POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SW_THERMAL_SLOWDOWN = 0x20
    HW_THERMAL_SLOWDOWN = 0x40
    HW_POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


# Heat and power supply are the provider's; a power cap is how an operator runs the card, and the rest is usual.
PROVIDER_REASONS = int(
    ThrottleReason.HW_SLOWDOWN
    | ThrottleReason.SW_THERMAL_SLOWDOWN
    | ThrottleReason.HW_THERMAL_SLOWDOWN
    | ThrottleReason.HW_POWER_BRAKE
)
WORDS = {
    ThrottleReason.SW_POWER_CAP: "power limit",
    ThrottleReason.HW_SLOWDOWN: "hardware slowdown",
    ThrottleReason.SW_THERMAL_SLOWDOWN: "heat",
    ThrottleReason.HW_THERMAL_SLOWDOWN: "heat",
    ThrottleReason.HW_POWER_BRAKE: "power supply",
}


def throttle_words(mask: int | None) -> list[str]:
    """Return why a GPU was slowed down, each reason once."""
    found = [words for reason, words in WORDS.items() if mask and mask & reason]
    return list(dict.fromkeys(found))
