"""Starts of slices, once the cluster has chosen some of them itself."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU
from broker.domain.geometry.published_profiles import published_profiles
from broker.domain.placement.settled_starts import BookedSlice, SettledStarts, settle_starts
from tests.broker.domain.fleet import cut


def booked(
    name: str, start: int, device: int | None = None, *, of: str = "1g.10gb", may_leave: bool = False
) -> BookedSlice:
    return BookedSlice(name, cut(of), start, device, may_leave)


def test_a_slice_moves_to_the_start_of_its_device() -> None:
    assert settle_starts([booked("a", 6, 0)], None) == SettledStarts({"a": 0})
    assert settle_starts([booked("a", 6, 6), booked("b", 0)], None) == SettledStarts({})


def test_two_slices_exchange_their_starts() -> None:
    assert settle_starts([booked("a", 6, 0), booked("b", 0, 6)], None) == SettledStarts({"a": 0, "b": 6})


def test_a_waiting_slice_moves_away_from_a_device() -> None:
    settled = settle_starts([booked("a", 6, 0), booked("b", 0, of="3g.40gb", may_leave=True)], None)
    assert settled == SettledStarts({"a": 0, "b": 4})


def test_a_waiting_slice_uses_promised_units_last() -> None:
    slices = [booked("a", 6, 0), booked("b", 0)]
    assert settle_starts(slices, None, promised=0b0000_1110) == SettledStarts({"a": 0, "b": 4})
    assert settle_starts(slices, None, promised=0b0111_1110) == SettledStarts({"a": 0, "b": 1})


def test_a_waiting_slice_gets_a_published_start() -> None:
    published = published_profiles({"1g.10gb": [0, 5, 6]})
    assert settle_starts([booked("a", 6, 0), booked("b", 0)], published) == SettledStarts({"a": 0, "b": 5})


def test_a_waiting_slice_without_a_place_is_displaced() -> None:
    settled = settle_starts([booked("a", 6, 0), booked("b", 0, of="4g.40gb", may_leave=True)], None)
    assert settled == SettledStarts({"a": 0}, ("b",))


def test_the_newest_waiting_slice_is_displaced() -> None:
    halves = [booked("old", 0, of="3g.40gb", may_leave=True), booked("new", 4, of="3g.40gb", may_leave=True)]
    settled = settle_starts([*halves, booked("a", 6, 6)], None)
    assert settled == SettledStarts({}, ("new",))


def test_only_slices_in_the_way_are_displaced() -> None:
    slices = [booked("large", 0, of="4g.40gb", may_leave=True), booked("small", 4, may_leave=True), booked("a", 6, 0)]
    assert settle_starts(slices, None) == SettledStarts({"a": 0}, ("large",))


def test_a_slice_that_must_stay_prevents_settling() -> None:
    assert settle_starts([booked("a", 6, 0), booked("b", 0, of="4g.40gb")], None) is None


def test_overlapping_devices_prevent_settling() -> None:
    assert settle_starts([booked("a", 6, 0), booked("b", 5, 0)], None) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb"]), st.booleans(), st.integers(0, 6)), max_size=7
    ),
    st.randoms(),
)
def test_settled_slices_never_overlap(wanted: list[tuple[str, bool, int]], chance: Random) -> None:
    """Book slices in one order and give them devices in another."""
    slices, taken, given_to = [], EMPTY_GPU, EMPTY_GPU
    for number, (of, has_device, _) in enumerate(wanted):
        profile = cut(of)
        free = [place for place in profile.placements if taken.fits(profile, place)]
        if not free:
            continue
        place = chance.choice(free)
        taken = taken.with_held(profile, place)
        others = [each for each in profile.placements if given_to.fits(profile, each)] if has_device else []
        device = chance.choice(others) if others else None
        if device:
            given_to = given_to.with_held(profile, device)
        slices.append(BookedSlice(str(number), profile, place.start, device and device.start, device is None))
    settled = settle_starts(slices, None)
    assert settled is not None
    state = EMPTY_GPU
    for each in slices:
        if each.allocation in settled.displaced:
            assert each.device_start is None
            continue
        start = settled.starts.get(each.allocation, each.start)
        assert each.device_start in (None, start)
        state = state.with_held(each.profile, each.profile.placed_at(start))
