"""Energy of a GPU shared among slices: exact, by memory when idle and by activity beyond."""

from hypothesis import given
from hypothesis import strategies as st

from broker.domain.telemetry.energy import SliceUse, share_energy

USE = st.builds(
    SliceUse,
    memory_slices=st.integers(1, 2),
    compute_slices=st.integers(1, 2),
    engine_active=st.none() | st.integers(0, 1000),
)


@given(total=st.integers(0, 10**12), idle=st.integers(0, 10**12), uses=st.lists(USE, max_size=4))
def test_shares_and_the_unsold_part_are_the_device(total: int, idle: int, uses: list[SliceUse]) -> None:
    shares, unsold = share_energy(total, idle_mj=idle, grid=8, uses=uses)
    assert sum(shares) + unsold == total
    assert min([*shares, unsold]) >= 0


def test_idle_power_is_by_memory_and_the_rest_by_activity() -> None:
    busy, calm = SliceUse(4, 4, 900), SliceUse(2, 2, 0)
    assert share_energy(1000, idle_mj=400, grid=8, uses=[busy, calm]) == ([800, 100], 100)


def test_a_gpu_on_which_nobody_was_active_is_shared_by_memory() -> None:
    assert share_energy(800, idle_mj=100, grid=8, uses=[SliceUse(2, 2, 0)]) == ([200], 600)


def test_a_slice_of_unknown_activity_counts_as_the_others() -> None:
    uses = [SliceUse(2, 2, 500), SliceUse(2, 2, None)]
    assert share_energy(1000, idle_mj=0, grid=8, uses=uses) == ([500, 500], 0)


def test_a_whole_gpu_has_all_of_it() -> None:
    assert share_energy(12_345, idle_mj=1_000, grid=8, uses=[SliceUse(8, 7, 333)]) == ([12_345], 0)
