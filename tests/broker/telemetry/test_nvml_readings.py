"""Readings from NVML: MIG devices, GPM, unknown values and lost GPUs, over a played driver."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from broker.telemetry.nvml_readings import GPM_METRICS, NvmlReader

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)


@dataclass
class PlayedCard:
    """What NVML answers of one card; a call that is missing is not supported."""

    uuid: str = "GPU-1"
    answers: dict[str, Any] = field(default_factory=dict)
    mig: dict[int, int] = field(default_factory=dict)  # used MiB by GPU instance
    gpm: list[float] | None = None  # what GPM measures, in the order of our metrics


@dataclass
class PlayedDriver:
    """A driver with some cards, in place of pynvml's functions."""

    cards: list[PlayedCard]
    freed: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        plain = {
            "nvmlDeviceGetUtilizationRates": "utilisation",
            "nvmlDeviceGetPowerUsage": "power",
            "nvmlDeviceGetTotalEnergyConsumption": "energy",
            "nvmlDeviceGetTemperature": "temperature",
            "nvmlDeviceGetClockInfo": "clock",
            "nvmlDeviceGetCurrentClocksEventReasons": "reasons",
        }
        for name, key in plain.items():
            patch.setattr(pynvml, name, lambda card, *_, key=key: self.answer(card, key))
        for name in (
            "GetCount", "GetHandleByIndex", "GetUUID", "GetMemoryInfo", "GetMigMode", "GetMaxMigDeviceCount",
            "GetMigDeviceHandleByIndex", "GetGpuInstanceId",
        ):  # fmt: skip
            patch.setattr(pynvml, f"nvmlDevice{name}", getattr(self, name))
        patch.setattr(
            pynvml, "nvmlGpmQueryDeviceSupport", lambda card: SimpleNamespace(isSupportedDevice=card.gpm is not None)
        )
        patch.setattr(pynvml, "nvmlGpmSampleAlloc", pynvml.c_nvmlGpmSample_t)
        patch.setattr(pynvml, "nvmlGpmSampleGet", lambda card, sample: sample)
        patch.setattr(pynvml, "nvmlGpmMigSampleGet", lambda card, instance, sample: sample)
        patch.setattr(pynvml, "nvmlGpmSampleFree", self.free)
        patch.setattr(pynvml, "nvmlGpmMetricsGet", self.measure)

    def answer(self, card: PlayedCard, key: str) -> Any:
        found = card.answers.get(key, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))
        if isinstance(found, Exception):
            raise found
        return found

    def GetCount(self) -> int:  # NVML's names
        return len(self.cards)

    def GetHandleByIndex(self, index: int) -> PlayedCard:
        return self.cards[index]

    def GetUUID(self, card: PlayedCard) -> str:
        return str(self.answer(card, "uuid")) if "uuid" in card.answers else card.uuid

    def GetMemoryInfo(self, card: Any) -> Any:
        used = self.answer(card, "memory") if isinstance(card, PlayedCard) else card[1]
        return SimpleNamespace(used=used * 2**20)

    def GetMigMode(self, card: PlayedCard) -> list[int]:
        return [pynvml.NVML_DEVICE_MIG_ENABLE if card.mig else pynvml.NVML_DEVICE_MIG_DISABLE] * 2

    def GetMaxMigDeviceCount(self, _: PlayedCard) -> int:
        return 7

    def GetMigDeviceHandleByIndex(self, card: PlayedCard, index: int) -> Any:
        if index >= len(card.mig):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return list(card.mig.items())[index]

    def GetGpuInstanceId(self, mig: Any) -> int:
        return int(mig[0])

    def free(self, _: Any) -> None:
        self.freed += 1

    def measure(self, request: Any) -> Any:
        values = next(card.gpm for card in self.cards if card.gpm is not None)
        for metric, value in zip(request.metrics, values, strict=False):
            metric.value, metric.nvmlReturn = value, pynvml.NVML_SUCCESS
        return request


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*cards: PlayedCard) -> PlayedDriver:
        driver = PlayedDriver(list(cards))
        driver.install(monkeypatch)
        return driver

    return install


def test_a_card_without_gpm_states_its_utilisation(played: Any) -> None:
    played(
        PlayedCard(answers={
            "utilisation": SimpleNamespace(gpu=64), "memory": 5120, "power": 70_250, "temperature": 61, "clock": 1590,
            "reasons": 4, "energy": 57_585_599,
        })
    )  # fmt: skip
    ((gpu,), lost) = NvmlReader().read(at=NOW)
    assert (gpu.engine_active, gpu.memory_used_mib, gpu.power_dw, gpu.temperature_c) == (640, 5120, 702, 61)
    assert (gpu.sm_clock_mhz, gpu.throttle_reasons, gpu.energy_mj, gpu.sm_active) == (1590, 4, 57_585_599, None)
    assert lost == []


def test_what_a_card_does_not_support_is_unknown_and_not_zero(played: Any) -> None:
    played(PlayedCard())
    ((gpu,), lost) = NvmlReader().read(at=NOW)
    assert (gpu.engine_active, gpu.memory_used_mib, gpu.power_dw, gpu.energy_mj) == (None, None, None, None)
    assert lost == []


def test_mig_devices_have_memory_and_activity_of_their_own_from_the_second_reading(played: Any) -> None:
    driver = played(PlayedCard(answers={"power": 400_000}, mig={7: 98, 9: 4384}, gpm=[42.5, 40, 12, 30, 100, 50]))
    reader = NvmlReader()
    first, _ = reader.read(at=NOW)
    assert [(each.gpu_instance, each.memory_used_mib, each.engine_active) for each in first] == [
        (None, None, None), (7, 98, None), (9, 4384, None),
    ]  # fmt: skip
    second, _ = reader.read(at=NOW)
    assert [(each.gpu_instance, each.engine_active, each.sm_active) for each in second] == [
        (None, 425, 400), (7, 425, 400), (9, 425, 400),
    ]  # fmt: skip
    assert second[1].pcie_tx_bytes == 100 * 2**20
    assert driver.freed == 3, "samples of before are given back"


def test_a_metric_that_gpm_cannot_read_is_unknown(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = played(PlayedCard(gpm=[50.0] * len(GPM_METRICS)))

    def measure(request: Any) -> Any:
        driver.measure(request).metrics[2].nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED
        return request

    monkeypatch.setattr(pynvml, "nvmlGpmMetricsGet", measure)
    reader = NvmlReader()
    reader.read(at=NOW)
    ((gpu,), _) = reader.read(at=NOW)
    assert (gpu.engine_active, gpu.tensor_active, gpu.dram_active) == (500, None, 500)


def test_a_lost_gpu_is_named_and_the_others_are_read(played: Any) -> None:
    gone = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    played(PlayedCard("GPU-1", {"power": gone}), PlayedCard("GPU-2", {"power": 50_000}))
    readings, lost = NvmlReader().read(at=NOW)
    assert [(each.gpu_uuid, each.power_dw) for each in readings] == [("GPU-2", 500)]
    assert [str(each) for each in lost] == ["GPU 0: GPU is lost"]
