"""Registry of slice drivers by name, with the options an operator may set."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.provisioners.kubernetes.drivers.cpu import CpuDriver
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.hami import HamiDriver

# How pods request slices of one GPU.
DRIVERS: Mapping[str, type[DevicePluginDriver | DraDriver | HamiDriver | CpuDriver]] = {
    "cpu": CpuDriver,
    "device_plugin": DevicePluginDriver,
    "dra": DraDriver,
    "hami": HamiDriver,
}
AUTOMATIC = "automatic"  # each node's own
# What operators choose for a cluster: drivers in the order in which they recognise a node's GPUs.
CLUSTER_DRIVERS: Mapping[str, tuple[str, ...]] = {
    AUTOMATIC: ("dra", "hami", "device_plugin"),
    "device_plugin": ("device_plugin",),
    "dra": ("dra",),
    "hami": ("hami",),
}
# What cannot be read from a cluster; everything else is read from its nodes.
DRA_OPTIONS = {"extended": "pods use plain limits; the scheduler creates the resource claim and picks the GPU"}
DRIVER_OPTIONS: Mapping[str, Mapping[str, str]] = {AUTOMATIC: DRA_OPTIONS, "dra": DRA_OPTIONS}
BOOLEAN_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class UnknownOption(ValueError):
    """A driver has no such option or value; the message lists what it has."""


def create_driver(name: str, options: Mapping[str, Any], models: tuple[GpuModelSpec, ...]) -> ClusterDriver:
    """Create the driver of a cluster as configured, or raise ValueError listing the choices."""
    if name not in CLUSTER_DRIVERS:
        raise ValueError(f"there is no driver {name!r}; known are: {', '.join(sorted(CLUSTER_DRIVERS))}")
    for option, value in options.items():
        _check_option(name, option, value)
    made = {each: kind(models=models, **(options if each in DRIVER_OPTIONS else {})) for each, kind in DRIVERS.items()}
    return ClusterDriver(name, models, made, CLUSTER_DRIVERS[name])


def parse_driver_options(driver: str, texts: Iterable[str]) -> dict[str, bool]:
    """Parse options written as `extended=yes`, or raise UnknownOption."""
    found: dict[str, bool] = {}
    for text in texts:
        option, _, value = (part.strip() for part in text.partition("="))
        _check_option(driver, option, BOOLEAN_WORDS.get(value.lower(), value))
        found[option] = BOOLEAN_WORDS[value.lower()]
    return found


def _check_option(driver: str, option: str, value: object) -> None:
    known = DRIVER_OPTIONS.get(driver, {})
    if option not in known:
        there = "; ".join(f"{name}: {what}" for name, what in known.items())
        instead = f"its options: {there}" if there else "it has no options: its settings are read from the nodes"
        raise UnknownOption(f"driver {driver} has no option {option!r}; {instead}")
    if not isinstance(value, bool):
        raise UnknownOption(f"option {option} of driver {driver} must be yes or no, not {value!r}")


def dynamic_isolations(driver: str) -> frozenset[Isolation]:
    """Return the isolations a driver sells dynamically partitioned GPUs as.

    A simulated cluster, which has no driver, sells them as anything.
    """
    if not driver:
        return frozenset(Isolation)
    return DRIVERS[driver].uncut if driver in DRIVERS else frozenset()


def keeps_slices(driver: str) -> bool:
    """Tell whether a slice created for a lease remains after the lease ends.

    So it is in a simulated cluster. DRA's driver destroys the slice; of the other drivers, one sells
    only slices that were created in advance, and one creates none.
    """
    return not driver


def cluster_picks_gpus(driver: str, options: Mapping[str, Any]) -> bool:
    """Tell whether the cluster itself picks the GPU of a slice.

    Then nobody else can say in advance which GPU it will be.
    """
    return driver == "dra" and bool(options.get("extended"))
