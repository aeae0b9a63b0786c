"""Latencies of the simulated provisioner."""

from statistics import median

import pytest
from django.conf import LazySettings

from broker.provisioners.base import ProvisionSpec
from broker.provisioners.simulated import PULL_S, SLOW_S, START_S, SimulatedProvisioner
from tests.simulation import NOW


def latencies(number: int, *, image: str = "pytorch/2.9") -> tuple[float, float]:
    order = ProvisionSpec(
        name=f"l-{number}-g1",
        lease_id=f"lse_{number}",
        generation=1,
        placed_at=NOW,
        image=image,
        command="",
        slices=(),
    )
    return SimulatedProvisioner()._latencies(order)


def test_latencies_vary_by_lease_and_are_reproducible() -> None:
    took = [latencies(number) for number in range(300)]
    assert took == [latencies(number) for number in range(300)]
    for drawn, middle in zip(zip(*took, strict=True), (PULL_S, START_S), strict=True):
        assert len(set(drawn)) == 300
        assert median(drawn) == pytest.approx(middle, rel=0.15)
        assert middle / 4 < min(drawn) < max(drawn) < middle * 4


def test_a_slow_image_takes_minutes_and_the_speed_divides_delays(settings: LazySettings) -> None:
    settings.SIMULATED_SPEED = 1
    assert latencies(1, image="slow/image")[0] == SLOW_S >= 120
    usual = latencies(1)
    settings.SIMULATED_SPEED = 10
    assert latencies(1) == pytest.approx((usual[0] / 10, usual[1] / 10))
