"""Readings from text of dcgm-exporter as real clusters emit it."""

from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.domain.telemetry.dcgm_series import Series, XidSeries, read_series, read_xids
from broker.domain.telemetry.readings import GpuReading, Quantity, Scope, stored_value

TEXT = (Path(__file__).parents[3] / "vendors/dcgm_metrics.txt").read_text()
NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
A100, T4_HELD, T4_IDLE = (
    "GPU-4b8f2d61-c03a-4e97-95b1-7d6e8f0a2c3b",
    "GPU-3e5c9a10-6b7d-4f21-8c93-a1d2e4f60b75",
    "GPU-91d0b8e2-2f4a-4c66-b7a5-0e3c5d7f9a18",
)


def excerpt(number: int) -> list[Series]:
    """Parse an excerpt of the vendors' file."""
    text = next(part for part in TEXT.split("# === excerpt ") if part.startswith(f"{number}:"))
    lines = "\n".join(
        line for line in text.splitlines()[1:] if not line.startswith("# ") or line[2:6] in ("HELP", "TYPE")
    )
    return [
        Series(each.name, each.labels, each.value, NOW)
        for family in text_string_to_metric_families(lines + "\n")
        for each in family.samples
    ]


def readings(number: int) -> dict[tuple[str, int | None], GpuReading]:
    return {(each.gpu_uuid, each.gpu_instance): each for each in read_series(excerpt(number))}


def test_empty_labels_of_a_pod_are_an_idle_gpu() -> None:
    found = readings(1)
    assert set(found) == {(T4_HELD, None), (T4_IDLE, None)}
    idle = found[T4_IDLE, None]
    assert (idle.engine_active, idle.memory_used_mib, idle.power_dw, idle.temperature_c) == (0, 5, 170, 52)


def test_mig_devices_have_memory_and_their_gpu_power_once() -> None:
    found = readings(2)
    assert {key: each.memory_used_mib for key, each in found.items()} == {
        (A100, 7): 98, (A100, 9): 4384, (A100, 5): 153, (A100, None): None,
    }  # fmt: skip
    assert {each.scope for each in found.values() if each.gpu_instance} == {Scope.SLICE}
    gpu = found[A100, None]
    assert (gpu.power_dw, gpu.energy_mj, gpu.temperature_c) == (1162, 57_585_599, 37)
    assert all(found[A100, each].power_dw is None for each in (5, 7, 9))


def test_a_missing_series_is_unknown_and_not_zero() -> None:
    (gpu,) = readings(3).values()
    assert (gpu.memory_used_mib, gpu.engine_active) == (None, None)
    assert gpu.sm_clock_mhz == 1410


def test_labels_of_version_4_without_pods() -> None:
    assert [each.power_dw for each in readings(4).values()] == [1136, 683]


def test_labels_that_a_scrape_renamed() -> None:
    assert [each.engine_active for each in readings(7).values()] == [970, 0]


def test_a_gpu_shared_by_pods_is_read_once() -> None:
    assert sorted((each.gpu_instance or 0, each.memory_used_mib) for each in readings(8).values()) == [
        (0, 23792),
        (9, 12),
    ]


def test_the_blank_of_dcgm_is_unknown() -> None:
    found = [each for each in readings(9).values() if each.sm_clock_mhz]
    assert [each.temperature_c for each in found] == [None]


def test_the_host_may_be_spelled_in_lower_case() -> None:
    assert [each.engine_active for each in readings(10).values()] == [640]


def test_the_last_xid_has_no_count_and_no_error_is_none() -> None:
    assert list(read_xids(excerpt(5))) == [XidSeries("GPU-28e5d9c4-70b1-4a3f-b6e2-1d8f5c7a9e03", None, 45, NOW)]


def test_the_code_of_a_counted_xid_is_its_label() -> None:
    assert list(read_xids(excerpt(6))) == [
        XidSeries("GPU-a4c6e8f0-1b3d-4579-8acd-0f2e4d6b8a91", None, 42, NOW, count=1)
    ]


@pytest.mark.parametrize("value", [nan, inf, -inf, -1.0, 1e9, 9223372036854775794, None, "61", True])
def test_an_impossible_temperature_is_unknown(value: object) -> None:
    assert stored_value(value, Quantity(150)) is None


def test_engine_activity_is_preferred_to_utilisation_in_any_order() -> None:
    both = [
        Series("DCGM_FI_DEV_GPU_UTIL", {"UUID": A100}, 97, NOW),
        Series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {"UUID": A100}, 0.42, NOW),
    ]
    assert [each.engine_active for order in (both, both[::-1]) for each in read_series(order)] == [420, 420]


def test_a_series_that_names_no_gpu_is_left_out() -> None:
    assert read_series([Series("DCGM_FI_DEV_GPU_TEMP", {"gpu": "0"}, 40, NOW)]) == []
