from dataclasses import replace

import pytest

from broker.domain.profiles import Profile, shares
from broker.domain.states import Isolation
from broker.domain.units import milli_units
from tests.broker.domain.fleet import FOUR, H100, MODELS, ONE, ONE_DOUBLE, ONE_ME, SEVEN, THREE


@pytest.mark.parametrize(
    ("profile", "weight"),
    [(ONE, 1000), (ONE_ME, 1000), (ONE_DOUBLE, 1000), (THREE, 3000), (FOUR, 4000), (SEVEN, 7000)],
)
def test_a_slice_weighs_its_compute(profile: Profile, weight: int) -> None:
    assert milli_units(profile, H100) == weight


def test_a_whole_card_weighs_all_its_compute() -> None:
    assert milli_units(H100.whole, H100) == 7000


def test_the_shares_of_a_card_weigh_together_what_the_card_weighs() -> None:
    for model in MODELS:
        for share in model.sold_as(Isolation.SOFT):
            assert milli_units(share, model) * share.max_instances == milli_units(model.whole, model)


def test_a_share_that_weighs_no_whole_thousandths_is_refused() -> None:
    (half,) = shares(grid=6, isolation=Isolation.NONE)
    with pytest.raises(ValueError, match="half of H100-80GB weighs no whole number of thousandths"):
        milli_units(half, replace(H100, grid=9))
