"""Cuts are what cards can really have, all of them, and none that leaves room for more."""

from itertools import combinations

import pytest

from broker.domain.cuts import WHOLE, Catalogue, Cut, cut_of
from broker.domain.geometry import Geometry, faults
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.packing import seats_of
from tests.broker.domain.fleet import A30, H100, MODELS, PRO_5000, PRO_6000, plain


def slowly(model: GpuModelSpec) -> set[Cut]:
    """Every set of seats that is legal, the slow and obvious way; then those that no other one contains."""
    seats = seats_of(plain(model))
    legal = {
        cut_of(Geometry(frozenset(some)))
        for count in range(1, model.compute + 1)
        for some in combinations(seats, count)
        if not faults(Geometry(frozenset(some)), grid=model.grid)
    }

    def inside(cut: Cut, other: Cut) -> bool:
        more = dict(other.counts)
        return cut != other and all(more.get(name, 0) >= count for name, count in cut.counts)

    return {cut for cut in legal if not any(inside(cut, other) for other in legal)} | {WHOLE}


@pytest.mark.parametrize("model", [A30, PRO_6000], ids=lambda model: model.name)
def test_the_catalogue_is_what_brute_force_finds(model: GpuModelSpec) -> None:
    assert set(Catalogue(model, plain(model)).cuts) == slowly(model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_cut_is_a_legal_geometry_of_its_card(model: GpuModelSpec) -> None:
    catalogue = Catalogue(model, model.profiles)
    for cut in catalogue.cuts:
        geometry = catalogue.geometry(cut)
        assert not faults(geometry, grid=model.grid)
        assert cut_of(geometry) == cut


def test_what_the_node_does_not_know_is_in_no_cut() -> None:
    catalogue = Catalogue(H100, plain(H100), {"1g.10gb": 7, "3g.40gb": 1, "9g.90gb": 1})
    assert {name for cut in catalogue.cuts for name, _ in cut.counts} == {"1g.10gb", "3g.40gb", "card"}
    assert max(dict(cut.counts).get("3g.40gb", 0) for cut in catalogue.cuts) == 1
    with pytest.raises(ValueError, match=r"has no 2g.20gb; it has: 3g.40gb, 1g.10gb"):
        catalogue.geometry(Cut.of(["2g.20gb"]))
    with pytest.raises(ValueError, match=r"cannot be cut into 2 × 3g.40gb"):
        catalogue.geometry(Cut.of(["3g.40gb", "3g.40gb"]))


def test_a_cut_beyond_the_card_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"H100-80GB cannot be cut into 8 × 1g.10gb"):
        Catalogue(H100, plain(H100)).geometry(Cut.of(["1g.10gb"] * 8))


def test_a_card_whose_slices_nobody_knows_stays_whole() -> None:
    catalogue = Catalogue(PRO_5000, plain(PRO_5000), {})
    assert catalogue.cuts == (WHOLE,)
    assert [held.profile.name for held in catalogue.geometry(WHOLE).held] == ["card"]
    with pytest.raises(ValueError, match="it has: no profile at all"):
        catalogue.geometry(Cut.of(["1g.24gb"]))


def test_a_cut_says_what_it_is() -> None:
    assert str(Cut.of(["3g.40gb", "1g.10gb", "1g.10gb"])) == "2 × 1g.10gb + 1 × 3g.40gb"
    assert str(Cut.counted({"1g.10gb": 0})) == "nothing"
