"""GPU models, their profiles, and overrides of the model file."""

import json
import re

import pytest

from broker.domain.geometry.gpu_identification import GpuDescription, identify_gpu
from broker.domain.geometry.gpu_models import NOTIONAL_GRID, GpuModelSpec, load_models, model_named
from broker.domain.geometry.product_names import comparison_key
from broker.domain.geometry.profiles import Placement, ProfileKind, share_profiles
from broker.domain.lifecycle.states import Isolation
from tests.broker.domain.fleet import DOCUMENT, H100, MODELS, PRO_5000, PRO_6000


def edited(model: int, **changes: object) -> str:
    document = json.loads(DOCUMENT)
    document["models"][model].update(changes)
    return json.dumps(document)


MIG_MODELS = [model for model in MODELS if model.profiles and model is not PRO_5000]


def test_model_names_are_unique_and_an_alias_with_its_memory_names_one_model() -> None:
    words = [word.casefold() for m in MODELS for word in {m.name, *m.pci_ids}]
    assert len(words) == len(set(words))
    aliases = [(comparison_key(word), m.memory_gb) for m in MODELS for word in m.aliases]
    assert len(aliases) == len(set(aliases))
    labels = [m.label for m in MODELS]
    assert len(labels) == len(set(labels))


def test_models_that_differ_in_speed_are_separate() -> None:
    """Their offerings, and so their prices, are their own."""
    products = ["H100-80GB-HBM3", "H100-PCIe", "H100-NVL", "H800", "H20", "H200", "H200-NVL", "GH200-480GB",
                "A100-SXM4-40GB", "A100-PCIE-40GB", "A100-SXM4-80GB", "A100-80GB-PCIe", "A800-SXM4-80GB",
                "A800-SXM4-40GB", "A800-PCIE-40GB", "A800-40GB-Active", "H100-SXM5-94GB", "H100-94GB-HBM2e",
                "RTX-3090", "RTX-4090"]  # fmt: skip
    memory = {"H20": 97871}
    found = [identify_gpu(GpuDescription(each, memory.get(each, 0)), MODELS).name for each in products]
    assert len(set(found)) == len(products)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_no_model_names_two_form_factors_or_two_kinds_of_memory(model: GpuModelSpec) -> None:
    words = {re.sub(r"(?<=SXM)\d", "", word) for alias in model.aliases for word in alias.upper().split("-")}
    assert len(words & {"SXM", "PCIE", "NVL", "ACTIVE"}) <= 1
    assert len(words & {"HBM2", "HBM2E", "HBM3", "HBM3E"}) <= 1


def test_a_variant_has_the_profiles_of_its_product_line() -> None:
    sxm, pcie = (model_named(MODELS, name) for name in ("H100-80GB", "H100-PCIe-80GB"))
    assert sxm.profiles == pcie.profiles
    assert (sxm.label, pcie.label) == ("H100 SXM 80GB", "H100 PCIe 80GB")


def test_placements_verified_on_a_real_gpu_are_marked() -> None:
    assert {m.name for m in MIG_MODELS if m.verified} == {
        "A30-24GB", "A100-40GB", "A100-PCIe-40GB", "A100-80GB", "A100-PCIe-80GB", "H100-80GB", "H100-PCIe-80GB",
        "H100-NVL-94GB", "RTX-PRO-6000-Server-96GB", "RTX-PRO-6000-Workstation-96GB", "RTX-PRO-6000-Max-Q-96GB",
    }  # fmt: skip
    assert PRO_6000.verified
    assert not PRO_5000.verified


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_placement_is_inside_the_grid_and_has_the_size_of_its_profile(model: GpuModelSpec) -> None:
    for profile in model.profiles:
        assert profile.kind is ProfileKind.SLICE
        assert profile.compute <= model.compute
        for placement in profile.placements:
            assert placement.size == profile.memory
            assert 0 <= placement.start < placement.end <= model.grid


def test_the_whole_gpu_profile_covers_the_grid_and_is_exclusive() -> None:
    for model in MODELS:
        assert model.whole.placements == (Placement(0, model.grid),)
        assert (model.whole.compute, model.whole.kind) == (model.compute, ProfileKind.WHOLE_GPU)
        assert (model.whole.max_instances, model.whole.media) == (1, False)
        assert model.profiles_with(Isolation.DEVICE) == (model.whole,)


def test_the_rtx_pro_6000_counts_twelve_units() -> None:
    assert (PRO_6000.grid, PRO_6000.compute) == (12, 4)
    assert [p.start for p in PRO_6000.profile("1g.24gb", Isolation.HARDWARE).placements] == [0, 3, 6, 9]


def test_a_model_without_known_placements_is_sold_whole_or_in_shares_but_not_as_mig() -> None:
    assert not PRO_5000.has_mig_placements
    assert PRO_5000.grid == NOTIONAL_GRID
    assert PRO_5000.profiles_with(Isolation.HARDWARE) == ()
    assert [share.name for share in PRO_5000.profiles_with(Isolation.SOFT)] == ["half", "quarter"]
    with pytest.raises(ValueError, match="it has: none"):
        PRO_5000.profile("1g.24gb", Isolation.HARDWARE)


@pytest.mark.parametrize("model", MIG_MODELS, ids=lambda m: m.name)
def test_all_other_models_support_mig(model: GpuModelSpec) -> None:
    assert model.has_mig_placements
    assert model.profiles_with(Isolation.HARDWARE) == model.profiles


def test_a_model_is_found_by_name_alias_and_pci_id_in_any_case() -> None:
    for word in ("H100-80GB", "h100-sxm5-80gb", "0x233010de"):
        assert model_named(MODELS, word) is H100


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown GPU model 'H1000'; known models: A30-24GB, A100-40GB"):
        model_named(MODELS, "H1000")


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"H100-80GB has no hardware profile '5g.60gb'; it has: 1g.10gb,"):
        H100.profile("5g.60gb", Isolation.HARDWARE)


def test_a_profile_is_placed_only_at_its_start_units() -> None:
    three = H100.profile("3g.40gb", Isolation.HARDWARE)
    assert three.placed_at(4) == Placement(4, 4)
    with pytest.raises(ValueError, match=r"3g.40gb cannot start at unit 2; it may start at 0, 4"):
        three.placed_at(2)


def test_shares_divide_the_grid_and_need_soft_or_no_isolation() -> None:
    half, quarter = share_profiles(grid=8, isolation=Isolation.NONE)
    assert [p.start for p in quarter.placements] == [0, 2, 4, 6]
    assert (quarter.compute, quarter.media) == (0, False)
    assert (half.max_instances, half.memory, half.kind) == (2, 4, ProfileKind.SHARE)
    assert [share.name for share in share_profiles(grid=6, isolation=Isolation.SOFT)] == ["half"]
    with pytest.raises(ValueError, match="isolation hardware is not sold in shares"):
        share_profiles(grid=8, isolation=Isolation.HARDWARE)


def test_a_profile_beyond_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"A30-24GB: 1g.6gb exceeds the 3 units of the grid"):
        load_models(edited(0, memory_grid=3))


def test_a_maximum_below_the_number_of_disjoint_placements_is_refused() -> None:
    tight = [{"name": "1g.6gb", "compute": 1, "memory": 1, "max": 3, "starts": [0, 1, 2, 3]}]
    with pytest.raises(ValueError, match=r"4 of 1g.6gb fit side by side but only 3 are allowed"):
        load_models(edited(0, profiles=tight))


def test_overlapping_placements_of_one_profile_are_refused() -> None:
    crossing = [{"name": "2g.12gb", "compute": 2, "memory": 2, "max": 2, "starts": [0, 2, 1]}]
    with pytest.raises(ValueError, match=r"A30-24GB: 2g.12gb of 2 units overlaps itself at units 0 and 1"):
        load_models(edited(0, profiles=crossing))


@pytest.mark.parametrize("starts", [[0, 0], [-1, 0]])
def test_negative_or_repeated_start_units_are_refused(starts: list[int]) -> None:
    odd = [{"name": "1g.6gb", "compute": 1, "memory": 1, "max": 4, "starts": starts}]
    with pytest.raises(ValueError, match=r"1g.6gb starts before the first unit or twice at"):
        load_models(edited(0, profiles=odd))


@pytest.mark.parametrize("broken", ["{", "[]", '{"models": [{"name": 3}]}', '{"models": [{"name": "Z"}]}'])
def test_an_invalid_model_file_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="this is not a valid list of GPU models"):
        load_models(DOCUMENT, broken)


def overriding(model: int, **changes: object) -> str:
    entry = {**json.loads(DOCUMENT)["models"][model], **changes}
    return json.dumps({"models": [entry]})


def test_an_override_adds_models_and_profiles_and_keeps_the_others() -> None:
    new = overriding(0, name="Z900", aliases=[], pci=["0xBEEF10DE"])
    assert [m.name for m in load_models(DOCUMENT, new)] == [*(m.name for m in MODELS), "Z900"]
    h100 = MODELS.index(H100)
    assert load_models(DOCUMENT, overriding(h100)) == MODELS
    profiles = json.loads(DOCUMENT)["models"][h100]["profiles"]
    wider = {"name": "5g.60gb", "compute": 5, "memory": 6, "max": 1, "starts": [0]}
    (model,) = (m for m in load_models(DOCUMENT, overriding(h100, profiles=[*profiles, wider])) if m.name == H100.name)
    assert {*model.profiles} - {*H100.profiles} == {model.profile("5g.60gb", Isolation.HARDWARE)}


def test_an_override_cannot_remove_or_redefine_profiles() -> None:
    def refused(model: int, **changes: object) -> str:
        with pytest.raises(ValueError, match="override") as refusal:
            load_models(DOCUMENT, overriding(model, **changes))
        return str(refusal.value)

    h100, pro_5000 = MODELS.index(H100), MODELS.index(PRO_5000)
    profiles = json.loads(DOCUMENT)["models"][h100]["profiles"]
    assert "takes away from H100-80GB, where leases may lie: 7g.80gb; list" in refused(h100, profiles=profiles[:-1])
    fewer = [{**profiles[0], "starts": [0, 1, 2]}, *profiles[1:]]
    assert ": 1g.10gb at unit 3, 1g.10gb at unit 4, 1g.10gb at unit 5, 1g.10gb at unit 6;" in refused(
        h100, profiles=fewer
    )
    assert ": 1g.10gb;" in refused(h100, profiles=[{**profiles[0], "compute": 2}, *profiles[1:]])
    assert ": 0x233010DE" in refused(h100, pci=[])
    assert "cannot make it 16, 7 and 80" in refused(h100, memory_grid=16)
    assert "cannot make it 8, 7 and 96" in refused(h100, memory_gb=96)
    assert ": 1g.24gb, 2g.48gb;" in refused(pro_5000, profiles=[])
    assert PRO_5000.name in {m.name for m in load_models(DOCUMENT, overriding(pro_5000, memory_grid=12))}


def test_an_override_with_an_alias_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="'a30' names both A30-24GB and Z900"):
        load_models(DOCUMENT, overriding(0, name="Z900", pci=[]))
    rows = json.dumps({"models": [*json.loads(DOCUMENT)["models"], *json.loads(overriding(0, name="Z900"))["models"]]})
    assert len(load_models(rows)) == len(MODELS) + 1  # what was known once may stand beside what is known now


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"max": 0}, "needs at least one compute slice, memory unit and instance"),
        ({"compute": 9}, "more compute slices than"),
    ],
)
def test_a_profile_of_zero_or_excess_size_is_refused(changes: dict[str, int], why: str) -> None:
    profile = {"name": "1g.6gb", "compute": 1, "memory": 1, "max": 4, "starts": [0, 1, 2, 3], **changes}
    with pytest.raises(ValueError, match=why):
        load_models(edited(0, profiles=[profile]))
