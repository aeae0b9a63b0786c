"""Which driver a cluster has, by the name that is kept of it, and what a person may choose of how it works."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.hami import HamiDriver

DRIVERS: Mapping[str, type[DevicePluginDriver | DraDriver | HamiDriver]] = {
    "device_plugin": DevicePluginDriver,
    "dra": DraDriver,
    "hami": HamiDriver,
}
# What no cluster tells: everything else is read from its nodes.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "dra": {"extended": "pods ask by plain limits, and the scheduler writes the claim and picks the card"}
}
YES_OR_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class UnknownOption(ValueError):
    """A driver is not set up like that; the sentence says what it knows."""


def driver_named(name: str, options: Mapping[str, Any], models: tuple[GpuModelSpec, ...]) -> SliceDriver:
    """Make a driver as it is set up in one cluster, or raise ValueError that says what there is instead."""
    kind = DRIVERS.get(name)
    if kind is None:
        raise ValueError(f"no driver is called {name!r}; known are: {', '.join(sorted(DRIVERS))}")
    for option, value in options.items():
        _check(name, option, value)
    made: SliceDriver = kind(models=models, **options)
    return made


def read_options(driver: str, texts: Iterable[str]) -> dict[str, bool]:
    """Read options as people write them, `extended=yes`, or raise UnknownOption."""
    found: dict[str, bool] = {}
    for text in texts:
        option, _, value = (part.strip() for part in text.partition("="))
        _check(driver, option, YES_OR_NO.get(value.lower(), value))
        found[option] = YES_OR_NO[value.lower()]
    return found


def _check(driver: str, option: str, value: object) -> None:
    known = CHOICES.get(driver, {})
    if option not in known:
        there = "; ".join(f"{name}: {what}" for name, what in known.items())
        instead = f"it has: {there}" if there else "it has none: how its nodes give slices is read from them"
        raise UnknownOption(f"the driver {driver} has no option {option!r}; {instead}")
    if not isinstance(value, bool):
        raise UnknownOption(f"the option {option} of the driver {driver} is yes or no, not {value!r}")


def sold_uncut(driver: str) -> frozenset[Isolation]:
    """Say as what a cluster with this driver sells a card that is cut for each lease; one without it, as anything."""
    kind = DRIVERS.get(driver)
    return kind.uncut if kind else frozenset(Isolation)


def leaves_cut(driver: str) -> bool:
    """Tell whether a slice that was cut for a lease is still there when that has gone, as in a simulated cluster.

    DRA's driver destroys it; of the others, one sells only what is cut in advance, and one cuts nothing.
    """
    return driver not in DRIVERS


def picks_cards(driver: str, options: Mapping[str, Any]) -> bool:
    """Tell whether the cluster picks the card of a slice by itself, so that nobody else could say which."""
    return driver == "dra" and bool(options.get("extended"))
