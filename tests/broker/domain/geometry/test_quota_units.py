"""Quota units of slices, shares and whole GPUs."""

from dataclasses import replace

import pytest

from broker.domain.geometry.profiles import Profile, share_profiles
from broker.domain.geometry.quota_units import quota_milli_units
from broker.domain.lifecycle.states import Isolation
from tests.broker.domain.fleet import FOUR, H100, MODELS, ONE, ONE_DOUBLE, ONE_ME, SEVEN, THREE


@pytest.mark.parametrize(
    ("profile", "weight"),
    [(ONE, 1000), (ONE_ME, 1000), (ONE_DOUBLE, 1000), (THREE, 3000), (FOUR, 4000), (SEVEN, 7000)],
)
def test_a_slice_counts_its_compute_in_quota_units(profile: Profile, weight: int) -> None:
    assert quota_milli_units(profile, H100) == weight


def test_a_whole_gpu_counts_all_its_compute_in_quota_units() -> None:
    assert quota_milli_units(H100.whole, H100) == 7000


def test_all_shares_of_a_gpu_sum_to_the_quota_units_of_the_gpu() -> None:
    for model in MODELS:
        for share in model.profiles_with(Isolation.SOFT):
            assert quota_milli_units(share, model) * share.max_instances == quota_milli_units(model.whole, model)


def test_a_share_without_whole_thousandths_of_quota_units_is_refused() -> None:
    (half,) = share_profiles(grid=6, isolation=Isolation.NONE)
    with pytest.raises(ValueError, match="half of H100-80GB is not a whole number of thousandths"):
        quota_milli_units(half, replace(H100, grid=9))
