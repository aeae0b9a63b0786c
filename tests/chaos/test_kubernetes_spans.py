"""Accounting of lost and overcharged seconds in the long run."""

import pytest

from tests.chaos import kubernetes_spans as spans
from tests.chaos.kubernetes_spans import Book, Held, Life, Piece, Silence, account

LIFE: Life = ("lse_1", 1)
BOOK = Book(Piece(1000, 1600), 1600)


def sums(*held: tuple[float, float], book: Book = BOOK, silences: tuple[Silence, ...] = ()) -> dict[str, int]:
    """Return the non-zero sums of pods on one node."""
    pods = [Held(LIFE, "n1", Piece(*each)) for each in held]
    found = account(pods, {LIFE: book}, silences, now=5000)
    for why in spans.FREE:  # there is one life only
        assert found.pop(f"longest_{why}") == found[why]
    return {why: s for why, s in found.items() if s}


def test_a_fully_charged_pod_has_no_unpaid_seconds() -> None:
    assert sums((1000, 1600)) == {}
    assert sums((999.2, 1600.8)) == {"starting": 1, "going": 1}


def test_seconds_after_a_backdated_end_count_as_lost() -> None:
    """Simulate an end that was dated back by an hour."""
    assert sums((1000, 4600), book=Book(Piece(1000, 1600), 4600)) == {"lost": 3000}


def test_a_late_end_counts_as_lost_beyond_the_tolerance() -> None:
    assert sums((1000, 1601.4), book=Book(Piece(1000, 1600), 1601.4)) == {"silent": 1}
    assert sums((1000, 1601.6), book=Book(Piece(1000, 1600), 1601.6)) == {"lost": 2}


def test_unobservable_seconds_count_as_silent_and_observable_ones_as_lost() -> None:
    book, proof = Book(Piece(1000, 1600), 2600), spans.PROOF_S
    dark, looked = Silence("n1", Piece(1600 + proof, 2600)), spans.HEARD_AGAIN_S
    assert sums((1000, 2600), book=book, silences=(dark,)) == {"silent": 1000}
    late = Silence("n1", Piece(1800 + proof, 2600))
    assert sums((1000, 2600), book=book, silences=(late,)) == {"silent": 800, "lost": 200}
    short = Silence(spans.EVERYWHERE, Piece(1600 + proof, 1700))
    assert sums((1000, 2600), book=book, silences=(short,)) == {
        "silent": 100 + looked,
        "lost": 900 - looked,
    }
    other = Silence("n2", Piece(1600, 2600))
    assert sums((1000, 2600), book=book, silences=(other,)) == {"lost": 1000}


def test_time_after_the_start_of_a_recorded_outage_counts_as_silent() -> None:
    book = Book(Piece(1000, 1600), 1604)
    assert sums((1000, 1604), book=book) == {"lost": 4}
    called = Silence(spans.BY_THE_BOOKS, Piece(1600, 1606))
    assert sums((1000, 1604), book=book, silences=(called,)) == {"silent": 4}
    late = Silence(spans.BY_THE_BOOKS, Piece(1603, 1606))
    assert sums((1000, 1604), book=book, silences=(late,)) == {"silent": 1, "lost": 3}
    its_own, others = Silence(LIFE[0], Piece(1600, 1606)), Silence("lse_2", Piece(1600, 1606))
    assert sums((1000, 1604), book=book, silences=(its_own,)) == {"silent": 4}
    assert sums((1000, 1604), book=book, silences=(others,)) == {"lost": 4}


def test_a_recorded_outage_counts_as_silent_for_at_most_believed_s() -> None:
    book = Book(Piece(1000, 1600), 2600)
    called = Silence(LIFE[0], Piece(1600, 2600))
    assert sums((1000, 2600), book=book, silences=(called,)) == {
        "silent": round(spans.BELIEVED_S),
        "lost": round(1000 - spans.BELIEVED_S),
    }


@pytest.mark.parametrize(
    ("why", "held", "longest"),
    [
        ("starting", (400.0, 1600.0), spans.STARTS_WITHIN_S),
        ("going", (1000.0, 2200.0), spans.GOES_WITHIN_S),
    ],
)
def test_starting_and_ending_seconds_are_free_up_to_their_limit(
    why: str, held: tuple[float, float], longest: float
) -> None:
    assert sums(held) == {why: longest, "lost": 600 - longest}


def test_a_lease_that_was_never_active_is_free_up_to_the_start_limit() -> None:
    given_up = Book(Piece(1000, 1000), 1000)
    assert sums((980, 1010), book=given_up) == {"starting": 20, "going": 10}
    assert sums((400, 1000), book=given_up)["lost"] == 600 - spans.STARTS_WITHIN_S


def test_a_pod_without_a_recorded_lease_counts_as_lost() -> None:
    pods = [Held(("lse_2", 1), "n1", Piece(1000, 2000))]
    assert account(pods, {}, (), now=2000)["lost"] == 1000 - spans.STARTS_WITHIN_S


def test_a_short_gap_between_pods_is_allowed_and_a_long_one_is_an_overcharge() -> None:
    assert sums((1000, 1200), (1220, 1600)) == {"between_pods": 20}
    assert sums((1000, 1200), (1400, 1600)) == {"charged_between_pods": 200}
    dark = Silence("n1", Piece(1210, 1390))
    assert sums((1000, 1200), (1400, 1600), silences=(dark,)) == {"between_pods": 200}


def test_overlapping_pods_count_each_second_once() -> None:
    assert sums((1000, 1500), (1400, 1600)) == {}
