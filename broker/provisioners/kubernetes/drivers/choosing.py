"""Which driver a cluster has, by the name that is kept of it."""

from collections.abc import Mapping
from typing import Any

from broker.domain.gpu_models import GpuModelSpec
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.hami import HamiDriver

DRIVERS = {"device_plugin": DevicePluginDriver, "dra": DraDriver, "hami": HamiDriver}


def driver_named(name: str, options: Mapping[str, Any], models: tuple[GpuModelSpec, ...]) -> SliceDriver:
    """Make a driver as it is set up in one cluster, or raise ValueError when nothing is called so."""
    kind = DRIVERS.get(name)
    if kind is None:
        raise ValueError(f"no driver is called {name!r}; known are: {', '.join(sorted(DRIVERS))}")
    made: SliceDriver = kind(models=models, **options)
    return made
