"""A GPU's own MIG report, compared with the model file."""

import json
from dataclasses import replace

import pytest

from broker.domain.geometry.gpu_models import GpuModelSpec, load_models
from broker.domain.geometry.gpu_reports import (
    GpuReport,
    MigProfileReport,
    geometry_entry,
    known_model,
    model_differences,
)
from broker.domain.lifecycle.states import Isolation
from tests.broker.domain.fleet import DOCUMENT, H100, MODELS, PRO_5000


def report_of(model: GpuModelSpec) -> GpuReport:
    """Return the report of a GPU that matches its model file entry."""
    slices = tuple(
        MigProfileReport(
            each.name,
            each.compute,
            each.max_instances,
            tuple((place.start, place.size) for place in each.placements),
        )
        for each in model.profiles
    )
    pci = model.pci_ids[0] if model.pci_ids else "0xBEEF10DE"
    return GpuReport(f"NVIDIA {model.aliases[0]}", pci, model.memory_gb, slices)


def models_with_override_from(report: GpuReport, known: GpuModelSpec | None) -> dict[str, GpuModelSpec]:
    document = json.dumps({"models": [geometry_entry(report, known)]})
    return {model.name: model for model in load_models(DOCUMENT, document)}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_gpu_that_matches_its_model_reports_no_differences(model: GpuModelSpec) -> None:
    report = report_of(model)
    assert known_model(report, MODELS) is model
    assert list(model_differences(report, model)) == (
        [] if model.pci_ids or not model.profiles else [f"{model.name} is not known with this PCI ID"]
    )
    made = models_with_override_from(report, model)[model.name]
    assert made == replace(model, pci_ids=made.pci_ids, verified=model.has_mig_placements)


def test_a_model_without_placements_gets_them_from_a_gpu_report() -> None:
    report = replace(
        report_of(PRO_5000),
        mig_profiles=(
            MigProfileReport("1g.24gb", 1, 2, ((6, 6), (0, 6))),
            MigProfileReport("2g.48gb", 2, 1, ((0, 12),)),
        ),
    )
    assert list(model_differences(report, PRO_5000)) == [
        "RTX-PRO-5000-48GB is not known with this PCI ID",
        "1g.24gb is at no unit, but at 0+6, 6+6 on the GPU",
        "2g.48gb is at no unit, but at 0+12 on the GPU",
    ]
    model = models_with_override_from(report, PRO_5000)[PRO_5000.name]
    assert known_model(report, MODELS) is PRO_5000  # by its name and memory: no id of it is known
    assert (model.grid, model.has_mig_placements, model.verified, model.pci_ids) == (12, True, True, ("0xBEEF10DE",))
    assert [place.start for place in model.profile("1g.24gb", Isolation.HARDWARE).placements] == [0, 6]
    assert len(models_with_override_from(report, PRO_5000)) == len(MODELS)


def test_a_gpu_of_an_unknown_model_defines_a_new_model() -> None:
    report = GpuReport("NVIDIA Z900", "0xBEEF10DE", 192, (MigProfileReport("2g.96gb", 2, 2, ((0, 4), (4, 4))),))
    assert known_model(report, MODELS) is None
    model = models_with_override_from(report, None)["Z900-192GB"]
    assert (model.grid, model.compute, model.memory_gb, model.pci_ids) == (8, 2, 192, ("0xBEEF10DE",))
    uncut = GpuReport("NVIDIA Z100", "0xBEEE10DE", 24)
    assert not models_with_override_from(uncut, None)["Z100-24GB"].has_mig_placements


def test_extra_slices_of_a_gpu_are_added_and_missing_ones_are_reported() -> None:
    report = replace(report_of(H100), pci_device_id="0xBEEF10DE")
    more = MigProfileReport("5g.60gb", 5, 1, ((0, 6),))
    fewer = [replace(each, placements=each.placements[:1]) for each in report.mig_profiles if each.name != "7g.80gb"]
    report = replace(report, mig_profiles=(*fewer, more))
    assert known_model(report, MODELS) is H100
    assert set(model_differences(report, H100)) == {
        "H100-80GB is not known with this PCI ID",
        "H100-80GB has no 5g.60gb, but the GPU has it at 0",
        "1g.10gb is at 0+1, 1+1, 2+1, 3+1, 4+1, 5+1, 6+1, but at 0+1 on the GPU",
        "1g.10gb+me is at 0+1, 1+1, 2+1, 3+1, 4+1, 5+1, 6+1, but at 0+1 on the GPU",
        "1g.20gb is at 0+2, 2+2, 4+2, 6+2, but at 0+2 on the GPU",
        "2g.20gb is at 0+2, 2+2, 4+2, but at 0+2 on the GPU",
        "3g.40gb is at 0+4, 4+4, but at 0+4 on the GPU",
        "the GPU has no 7g.80gb",
    }
    model = models_with_override_from(report, H100)[H100.name]
    assert {*H100.profiles} < {*model.profiles}
    assert model.profile("5g.60gb", Isolation.HARDWARE).memory == 6
    assert set(model.pci_ids) == {*H100.pci_ids, "0xBEEF10DE"}


def test_unreported_placements_stay_unverified() -> None:
    (h200,) = (m for m in MODELS if m.name == "H200-141GB")
    assert not h200.verified
    assert geometry_entry(report_of(h200), h200)["placements_verified"]
    fewer = replace(report_of(h200), mig_profiles=report_of(h200).mig_profiles[1:])
    assert not geometry_entry(fewer, h200)["placements_verified"]


def test_different_counts_are_reported_and_mixed_sizes_refused() -> None:
    report = report_of(H100)
    odd = replace(report.mig_profiles[0], compute=2, max_instances=8)
    assert list(model_differences(replace(report, mig_profiles=(odd, *report.mig_profiles[1:])), H100)) == [
        "1g.10gb has 1 compute slices, but 2 on the GPU",
        "1g.10gb has 7 max instances, but 8 on the GPU",
    ]
    torn = replace(report.mig_profiles[0], placements=((0, 1), (1, 2)))
    with pytest.raises(ValueError, match=r"1g.10gb has placements of \[1, 2\] units"):
        geometry_entry(replace(report, mig_profiles=(torn,)), H100)
    coarse = replace(report.mig_profiles[0], placements=((0, 2), (2, 2)))
    with pytest.raises(ValueError, match=r"1g.10gb has 2 units, but 1 on other GPUs of this model"):
        geometry_entry(replace(report, mig_profiles=(coarse,)), H100)
