"""The read_gpus command over a simulated NVML driver."""

import ctypes
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pynvml
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import override_settings

from broker.domain.geometry.gpu_models import load_models
from broker.domain.lifecycle.states import Isolation
from broker.models import Gpu, GpuModel, Offering
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack
from ports import clock
from tests.broker.domain.fleet import H100, PRO_5000
from tests.simulation import REGION, Simulation, create_fleet, create_tenant

# Name, compute, instances and places, by the profile's number.
Cuts = dict[int, tuple[str, int, int, list[tuple[int, int]]]]
AS_KNOWN: Cuts = {
    number: (
        f"MIG {each.name}",
        each.compute,
        each.max_instances,
        [(place.start, place.size) for place in each.placements],
    )
    for number, each in enumerate(H100.profiles)
}


@dataclass
class Driver:
    """What pynvml answers on a node."""

    gpus: list[tuple[str, int, int, Cuts]] = field(default_factory=list)  # product, PCI, MiB
    missing: bool = False
    broken: int = 0  # the error of every question about profiles
    opened: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        names: dict[str, Callable[..., Any]] = {
            "nvmlInit": self.open,
            "nvmlShutdown": self.close,
            "nvmlDeviceGetCount": lambda: len(self.gpus),
            "nvmlDeviceGetHandleByIndex": lambda index: self.gpus[index],
            "nvmlDeviceGetName": lambda gpu: gpu[0].encode(),
            "nvmlDeviceGetPciInfo": self.pci,
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlDeviceGetGpuInstanceProfileInfo": self.profile,
            "nvmlDeviceGetGpuInstancePossiblePlacements": self.places,
        }
        for name, function in names.items():
            patch.setattr(pynvml, name, function)

    def open(self) -> None:
        if self.missing:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.opened += 1

    def close(self) -> None:
        self.opened -= 1

    def pci(self, gpu: Any) -> Any:
        return pynvml.nvmlPciInfo_t(pciDeviceId=gpu[1])

    def memory(self, gpu: Any) -> Any:
        return pynvml.c_nvmlMemory_t(total=gpu[2] * 2**20)

    def profile(self, gpu: Any, number: int, version: int) -> Any:
        if self.broken:
            raise pynvml.NVMLError(self.broken)
        if number not in gpu[3]:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        name, compute, instances, _ = gpu[3][number]
        info = pynvml.c_nvmlGpuInstanceProfileInfo_v2_t()
        info.id, info.sliceCount, info.instanceCount, info.name = number, compute, instances, name.encode()
        return info

    def places(self, gpu: Any, number: int, found: Any, count: Any) -> None:
        its = gpu[3][number][3]
        for index, (start, size) in enumerate(its if found is not None else ()):
            found[index].start, found[index].size = start, size
        ctypes.cast(count, ctypes.POINTER(ctypes.c_uint))[0] = len(its)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    played = Driver()
    played.install(monkeypatch)
    return played


def read() -> tuple[dict[str, Any], str]:
    """Run the command; return its document and its messages."""
    out, err, said = StringIO(), StringIO(), ""
    try:
        call_command("read_gpus", stdout=out, stderr=err)
    except CommandError as error:
        said = str(error)
    return json.loads(out.getvalue() or "{}"), said


def test_only_a_gpu_of_an_unknown_model_is_printed(driver: Driver) -> None:
    driver.gpus = [("NVIDIA H100 80GB HBM3", 0x233010DE, 81559, AS_KNOWN)] * 2
    assert read() == ({}, "")
    driver.gpus.append(("NVIDIA Z1", 0x1EB810DE, 15360, {}))
    document, said = read()
    assert said == "GPU 2, NVIDIA Z1 0x1EB810DE: unknown model"
    assert [(model["name"], model["profiles"]) for model in document["models"]] == [("Z1-15GB", [])]
    assert driver.opened == 0  # each time closed again


def test_an_extra_profile_is_reported_with_a_valid_override(driver: Driver) -> None:
    wider = {**AS_KNOWN, 12: ("MIG 5g.60gb", 5, 1, [(0, 6)])}
    driver.gpus = [("NVIDIA H100 80GB HBM3", 0x233010DE, 81559, wider)]
    document, said = read()
    assert said == ("GPU 0, NVIDIA H100 80GB HBM3 0x233010DE: H100-80GB has no 5g.60gb, but the GPU has it at 0")
    with extra_gpu_models(json.dumps(document)):
        assert gpu_catalogue.profile_named("H100-80GB", "5g.60gb", Isolation.HARDWARE.value).memory == 6
        assert read() == (document, "")
        driver.gpus.append(("NVIDIA Z1", 0x1EB810DE, 15360, {}))
        assert [model["name"] for model in read()[0]["models"]] == [
            "H100-80GB",
            "Z1-15GB",
        ]  # with what is set now
    driver.gpus = [("NVIDIA H100 80GB HBM3", 0x233010DE, 81559, AS_KNOWN), *driver.gpus]
    assert [len(model["profiles"]) for model in read()[0]["models"]] == [8, 0]  # whichever GPU reported it


def test_a_missing_profile_is_reported_without_an_override(driver: Driver) -> None:
    fewer = {number: its for number, its in AS_KNOWN.items() if its[0] != "MIG 7g.80gb"}
    driver.gpus = [("NVIDIA H100 80GB HBM3", 0x233010DE, 81559, fewer)]
    assert read() == ({}, "GPU 0, NVIDIA H100 80GB HBM3 0x233010DE: the GPU has no 7g.80gb")


def test_an_unavailable_driver_is_reported_with_a_fix(driver: Driver) -> None:
    assert "NVML is not available: the driver sees no GPU. Run this on a node" in read()[1]
    driver.missing = True
    assert "NVML is not available: NVML Shared Library Not Found. Run this on a node" in read()[1]
    driver.missing = False
    driver.gpus = [("NVIDIA H100 80GB HBM3", 0x233010DE, 81559, AS_KNOWN)]
    driver.broken = pynvml.NVML_ERROR_GPU_IS_LOST
    assert "GPU is lost" in read()[1]
    assert driver.opened == 0


def test_placements_of_two_sizes_are_refused(driver: Driver) -> None:
    driver.gpus = [("NVIDIA Z900", 0xBEEF10DE, 90000, {0: ("MIG 1g.10gb", 1, 2, [(0, 1), (1, 2)])})]
    assert "0xBEEF10DE cannot be used: 1g.10gb has placements of [1, 2] units" in read()[1]


class extra_gpu_models(override_settings):  # noqa: N801
    """The setting of additional GPU models; caches are cleared on both sides."""

    def __init__(self, document: str) -> None:
        super().__init__(EXTRA_GPU_MODELS=document)

    def enable(self) -> None:
        super().enable()
        clear_caches()

    def disable(self) -> None:
        super().disable()
        clear_caches()


def clear_caches() -> None:
    gpu_catalogue.gpu_model_specs.cache_clear()
    gpu_catalogue.profile_named.cache_clear()


def test_an_invalid_extra_gpu_models_setting_stops_the_start() -> None:
    with (
        extra_gpu_models('{"models": [{}]}'),
        pytest.raises(ImproperlyConfigured, match="GPUBROKER_EXTRA_GPU_MODELS: this is"),
    ):
        gpu_catalogue.gpu_model_specs()


LISTED = len(load_models(gpu_catalogue.GEOMETRY_FILE.read_text())) + 1  # and CPU
Z900 = ("NVIDIA Z900", 0xBEEF10DE, 90000, {0: ("MIG 1g.22gb", 1, 4, [(0, 1), (1, 1), (2, 1), (3, 1)])})


@pytest.mark.django_db
def test_an_extra_gpu_model_is_stored_until_no_gpu_uses_it(
    driver: Driver,
) -> None:
    driver.gpus = [Z900]
    with extra_gpu_models(json.dumps(read()[0])):
        assert gpu_catalogue.load_gpu_models() == LISTED + 1
        row = GpuModel.objects.get(name="Z900-88GB")
        assert (row.memory_grid, row.compute_slices, row.spec["profiles"][0]["starts"]) == (
            4,
            1,
            [0, 1, 2, 3],
        )
        hardware.add_simulated_racks([SimulatedRack("north-1", REGION, row.name, nodes=1)], now=clock.now())
    with pytest.raises(ImproperlyConfigured, match="no longer contains Z900-88GB, which GPUs"):
        gpu_catalogue.load_gpu_models()
    Gpu.objects.all().delete()
    assert gpu_catalogue.load_gpu_models() == LISTED
    assert not GpuModel.objects.filter(pk=row.pk).exists()


@pytest.mark.django_db
def test_the_memory_grid_of_a_model_cannot_change_while_leases_use_it(sim: Simulation) -> None:
    document = json.loads(gpu_catalogue.GEOMETRY_FILE.read_text())
    (entry,) = (each for each in document["models"] if each["name"] == PRO_5000.name)
    counted = json.dumps({"models": [{**entry, "memory_grid": 12}]})
    create_fleet(SimulatedRack("north-1", REGION, PRO_5000.name, nodes=1))
    owner = create_tenant("Kestrel")
    sold = Offering.objects.get(gpu_model=PRO_5000.name, profile="whole-gpu", price_class="on_demand")
    Offering.objects.filter(pk=sold.pk).update(state="published")
    lease = sim.create_lease(owner, sold)
    with (
        extra_gpu_models(counted),
        pytest.raises(ImproperlyConfigured, match="in 12 units, but active leases use"),
    ):
        gpu_catalogue.load_gpu_models()
    sim.release_lease(lease)
    sim.run(60)
    with extra_gpu_models(counted):
        assert gpu_catalogue.load_gpu_models() == LISTED
        assert GpuModel.objects.get(name=PRO_5000.name).memory_grid == 12
