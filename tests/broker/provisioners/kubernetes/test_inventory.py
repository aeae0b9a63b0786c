"""GPU inventory from node labels, resource slices and HAMi annotations."""

from typing import Any

import msgspec
import pytest

from broker.domain.geometry.gpu_models import model_named
from broker.domain.geometry.gpu_state import PlacedSlice, state_of
from broker.domain.geometry.profiles import Placement
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode, DiscoveredSlice
from broker.provisioners.kubernetes.drivers.dra import DraDriver, device_class_of, unpublished_profiles
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION, HamiDriver
from broker.provisioners.kubernetes.drivers.slice_layouts import spread_slices
from tests.broker.domain.fleet import H100, MODELS

PLUGIN = DevicePluginDriver(MODELS)


def node(
    labels: dict[str, str],
    allocatable: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> ClusterNode:
    meta = {
        "name": "n1",
        "labels": {f"nvidia.com/{name}": value for name, value in labels.items()},
        "annotations": annotations or {},
    }
    body = {"metadata": meta, "status": {"allocatable": allocatable or {}}}
    return msgspec.json.decode(msgspec.json.encode(body), type=ClusterNode)


def gpu(product: str, count: int, memory: int, **more: str) -> dict[str, str]:
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    return {"gpu.product": product, "gpu.count": str(count), "gpu.memory": str(memory), **dotted}


def read(labels: dict[str, str], allocatable: dict[str, str] | None = None) -> DiscoveredNode:
    (found,) = PLUGIN.inventory([node(labels, allocatable)], [])
    return found


@pytest.mark.parametrize(
    ("product", "memory", "model"),
    [
        ("NVIDIA-A30", 24576, "A30-24GB"),
        ("NVIDIA-A100-SXM4-40GB", 40960, "A100-40GB"),
        ("NVIDIA-A100-PCIE-40GB", 40960, "A100-PCIe-40GB"),
        ("A100-SXM4-80GB", 81920, "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB", 81920, "A100-80GB"),
        ("NVIDIA-A100-80GB-PCIe", 81920, "A100-PCIe-80GB"),
        ("NVIDIA-H100-80GB-HBM3", 81559, "H100-80GB"),
        ("NVIDIA-H100-PCIe", 81559, "H100-PCIe-80GB"),
        ("NVIDIA-H100-NVL", 95830, "H100-NVL-94GB"),
        ("NVIDIA-H200", 143771, "H200-141GB"),
        ("NVIDIA-GH200-480GB", 97871, "GH200-96GB"),
        ("NVIDIA-H20", 97871, "H20-96GB"),
        ("NVIDIA-B200", 183359, "B200-180GB"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", 81920, "A100-80GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4864, "A100-40GB"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "RTX-PRO-6000-Server-96GB"),
    ],
)
def test_gpu_product_labels_map_to_gpu_models(product: str, memory: int, model: str) -> None:
    found = gfd.read_gpu_labels(node(gpu(product, 1, memory)).metadata.labels)
    assert found is not None
    assert gfd.model_of_labels(found, MODELS).name == model


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA-A30-MIG-1g.6gb", "A30-24GB"),
        ("NVIDIA-H100-MIG-1g.10gb", "H100-80GB"),
        ("NVIDIA-A100-MIG-1g.5gb", "A100-40GB"),
        ("NVIDIA-H20-MIG-1g.18gb", "H20-141GB"),
    ],
)
def test_a_product_that_names_several_models_is_identified_by_its_mig_profile(product: str, model: str) -> None:
    found = gfd.read_gpu_labels(node(gpu(product, 4, 5952)).metadata.labels)
    assert found is not None
    assert gfd.model_of_labels(found, MODELS).name == model


def test_a_node_without_gpus_is_not_inventory() -> None:
    assert PLUGIN.inventory([node({})], []) == []


def test_whole_gpus_are_counted_by_the_allocatable_resource() -> None:
    found = read(gpu("NVIDIA-H100-80GB-HBM3", 8, 81559), {"nvidia.com/gpu": "7"})
    assert [(gpu.index, gpu.isolation, gpu.cuts) for gpu in found.gpus] == [
        (index, Isolation.DEVICE, (DiscoveredSlice(0, 8, "whole-gpu"),)) for index in range(7)
    ]


def test_mixed_mig_slices_are_spread_legally_over_the_gpus_of_a_node() -> None:
    labels = gpu("NVIDIA-A100-SXM4-80GB", 4, 81920, mig_strategy="mixed")
    slices = {"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "4", "nvidia.com/mig-3g.40gb": "2"}
    found = read(labels, {**slices, "nvidia.com/mig-7g.80gb": "0"})
    assert found.problems == ()
    assert [gpu.isolation for gpu in found.gpus] == [Isolation.DEVICE] * 2 + [Isolation.HARDWARE] * 2
    names = [sorted(cut.profile for cut in gpu.cuts) for gpu in found.gpus[2:]]
    assert names == [["1g.10gb", "1g.10gb", "3g.40gb"]] * 2


def test_spread_slices_returns_only_legal_layouts() -> None:
    for counts, gpus in (({"1g.10gb": 7}, 1), ({"4g.40gb": 1, "3g.40gb": 2, "1g.20gb": 2}, 2)):
        found = spread_slices(H100, counts, gpus)
        assert found is not None
        for gpu in found:
            state_of(
                PlacedSlice(Placement(cut.start, cut.size), H100.profile(cut.profile, Isolation.HARDWARE))
                for cut in gpu
            )
        assert sum(len(gpu) for gpu in found) == sum(counts.values())


def test_media_engine_slices_are_recognised_by_their_resource_name() -> None:
    labels = gpu("NVIDIA-A100-SXM4-80GB", 1, 81920, mig_strategy="mixed")
    found = read(labels, {"nvidia.com/mig-1g.10gb.me": "1", "nvidia.com/mig-1g.10gb": "6"})
    assert sorted(cut.profile for cut in found.gpus[0].cuts) == ["1g.10gb"] * 6 + ["1g.10gb+me"]
    assert gfd.mig_resource_name("1g.10gb+me") == "nvidia.com/mig-1g.10gb.me"


def test_impossible_slice_counts_are_reported_as_a_problem() -> None:
    labels = gpu("NVIDIA-A100-SXM4-80GB", 1, 81920, mig_strategy="mixed")
    found = read(labels, {"nvidia.com/mig-3g.40gb": "3"})
    assert found.gpus == ()
    assert "cannot hold 3 of 3g.40gb" in found.problems[0]


def test_a_profile_of_another_model_is_a_problem() -> None:
    labels = gpu("NVIDIA-A100-SXM4-80GB", 1, 81920, mig_strategy="mixed")
    assert "no known MIG profile 1g.5gb" in read(labels, {"nvidia.com/mig-1g.5gb": "7"}).problems[0]


def test_the_product_label_gives_the_profile_for_the_single_mig_strategy() -> None:
    labels = gpu("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 14, 4864, mig_strategy="single")
    found = read(labels, {"nvidia.com/gpu": "14"})
    assert [len(gpu.cuts) for gpu in found.gpus] == [7, 7]
    assert {cut.profile for gpu in found.gpus for cut in gpu.cuts} == {"1g.5gb"}
    assert {gpu.resource_name for gpu in found.gpus} == {"nvidia.com/gpu"}


@pytest.mark.parametrize(
    ("strategy", "asks"), [("mixed", ""), ("single", "nvidia.com/gpu"), ("none", "nvidia.com/gpu")]
)
def test_mig_strategies_single_and_none_store_nvidia_com_gpu_as_resource_name(strategy: str, asks: str) -> None:
    labels = gpu("NVIDIA-H100-80GB-HBM3", 2, 81559, mig_strategy=strategy)
    assert [gpu.resource_name for gpu in read(labels, {"nvidia.com/gpu": "2"}).gpus] == [asks] * 2


def test_a_single_strategy_profile_unknown_to_the_model_is_a_problem() -> None:
    labels = gpu("NVIDIA-A100-SXM4-40GB-MIG-1g.99gb", 14, 4864)
    assert "no known MIG profile 1g.99gb" in read(labels, {"nvidia.com/gpu": "14"}).problems[0]


@pytest.mark.parametrize(("strategy", "isolation"), [("time-slicing", Isolation.NONE), ("mps", Isolation.SOFT)])
def test_gpu_replicas_become_shares_of_their_gpu(strategy: str, isolation: Isolation) -> None:
    labels = gpu("NVIDIA-H100-80GB-HBM3-SHARED", 2, 81559, gpu_replicas="4")
    found = read({**labels, "gpu.sharing-strategy": strategy}, {"nvidia.com/gpu.shared": "8"})
    assert [gpu.isolation for gpu in found.gpus] == [isolation] * 2
    assert found.gpus[0].cuts == tuple(DiscoveredSlice(start, 2, "quarter") for start in (0, 2, 4, 6))


def shared(count: int = 2, replicas: int = 4, **more: str) -> dict[str, str]:
    labels = gpu("NVIDIA-H100-80GB-HBM3-SHARED", count, 81559, gpu_replicas=str(replicas), **more)
    return {"gpu.sharing-strategy": "time-slicing", **labels}


@pytest.mark.parametrize(
    ("given", "cuts"), [(8, [4, 4]), (7, [4, 3]), (4, [4]), (1, [1]), (0, [])], ids=lambda reported: str(reported)
)
def test_shares_never_exceed_the_allocatable_replicas(given: int, cuts: list[int]) -> None:
    found = read(shared(), {"nvidia.com/gpu.shared": str(given)})
    assert [len(gpu.cuts) for gpu in found.gpus] == cuts
    assert found.problems == ()


def test_time_sliced_replicas_named_gpu_are_shares() -> None:
    found = read(shared(), {"nvidia.com/gpu": "8"})
    assert [(gpu.isolation, len(gpu.cuts), gpu.resource_name) for gpu in found.gpus] == [
        (Isolation.NONE, 4, "nvidia.com/gpu")
    ] * 2


def test_whole_gpus_on_a_node_with_shared_gpus_are_not_sold() -> None:
    found = read(shared(), {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "4"})
    assert [(len(gpu.cuts), gpu.resource_name) for gpu in found.gpus] == [(4, "")]


MIXED = gpu("NVIDIA-A100-SXM4-80GB", 1, 81920, mig_strategy="mixed")
SINGLE = gpu("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 7, 9728, mig_strategy="single")
WHOLE = gpu("NVIDIA-H100-80GB-HBM3", 2, 81559)
POSSIBLY_SHARED = {
    "slices have replicas under their own name": (
        {**MIXED, "mig-1g.10gb.count": "3", "mig-1g.10gb.replicas": "2"},
        {"nvidia.com/mig-1g.10gb": "6"},
        "1g.10gb have replicas",
    ),
    "slices have replicas under a name of their own": (
        MIXED,
        {"nvidia.com/mig-1g.10gb.shared": "6"},
        "1g.10gb have replicas",
    ),
    "slices have a shared product name": (
        {**MIXED, "mig-1g.10gb.me.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me-SHARED"},
        {"nvidia.com/mig-1g.10gb": "6", "nvidia.com/mig-1g.10gb.me": "1"},
        "1g.10gb+me have replicas",
    ),
    "slices have a sharing strategy": (
        {**MIXED, "mig-2g.20gb.sharing-strategy": "mps"},
        {"nvidia.com/mig-2g.20gb": "3"},
        "2g.20gb have replicas",
    ),
    "slices named nvidia.com/gpu have replicas": (
        {**SINGLE, "gpu.replicas": "2", "gpu.sharing-strategy": "time-slicing"},
        {"nvidia.com/gpu": "14"},
        "1g.10gb have replicas",
    ),
    "more slices than labelled": (
        {**MIXED, "mig-1g.10gb.count": "3"},
        {"nvidia.com/mig-1g.10gb": "6"},
        "more 1g.10gb than 3",
    ),
    "more slices named nvidia.com/gpu than labelled": (
        SINGLE,
        {"nvidia.com/gpu": "14"},
        "more GPUs than 7",
    ),
    "more GPUs than labelled": (WHOLE, {"nvidia.com/gpu": "8"}, "more GPUs than 2"),
    "more replicas than labelled": (shared(), {"nvidia.com/gpu.shared": "16"}, "more replicas than 8"),
    "replicas without labels": (
        WHOLE,
        {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"},
        "more replicas than 0",
    ),
    "replicas without a sharing strategy": (
        {**WHOLE, "gpu.replicas": "4"},
        {"nvidia.com/gpu": "8"},
        "without the number of shares",
    ),
    "a sharing strategy without replicas": (
        {**WHOLE, "gpu.sharing-strategy": "mps"},
        {"nvidia.com/gpu": "2"},
        "without the number of shares",
    ),
    "a shared product name": (
        gpu("NVIDIA-H100-80GB-HBM3-SHARED", 2, 81559),
        {"nvidia.com/gpu": "2"},
        "without the number of shares",
    ),
}


@pytest.mark.parametrize("case", POSSIBLY_SHARED)
def test_a_gpu_or_slice_that_may_be_shared_is_not_sold_as_isolated(case: str) -> None:
    labels, given, why = POSSIBLY_SHARED[case]
    found = read(labels, given)
    assert found.gpus == ()
    assert why in found.problems[0]


def test_slices_with_one_replica_and_sharing_strategy_none_are_sold() -> None:
    labels = {**MIXED, "mig-1g.10gb.count": "7", "mig-1g.10gb.replicas": "1"}
    found = read({**labels, "mig-1g.10gb.sharing-strategy": "none"}, {"nvidia.com/mig-1g.10gb": "7"})
    assert [len(gpu.cuts) for gpu in found.gpus] == [7]


def test_a_replica_count_without_a_matching_share_profile_is_a_problem() -> None:
    labels = gpu("NVIDIA-H100-80GB-HBM3-SHARED", 2, 81559, gpu_replicas="10")
    found = read({**labels, "gpu.sharing-strategy": "time-slicing"})
    assert "10 replicas" in found.problems[0]


def published(*devices: dict[str, Any], driver: str = "gpu.nvidia.com") -> ResourceSlice:
    body = {"metadata": {"name": "s"}, "spec": {"driver": driver, "nodeName": "n1", "devices": devices}}
    return msgspec.json.decode(msgspec.json.encode(body), type=ResourceSlice)


def device(name: str, memory: str, **attributes: str) -> dict[str, Any]:
    values = {key: {"string": value} for key, value in attributes.items()}
    return {"name": name, "attributes": values, "capacity": {"memory": {"value": memory}}}


def test_gpus_published_by_dra_are_identified_by_uuid() -> None:
    whole = device("gpu-0", "81559Mi", type="gpu", uuid="GPU-a", productName="NVIDIA H100 80GB HBM3")
    other = device("gpu-1", "80Gi", type="gpu", uuid="GPU-b", productName="NVIDIA A100-SXM4-80GB")
    part = device("gpu-1-mig-19-4-1", "10Gi", type="mig", parentUUID="GPU-b", profile="1g.10gb")
    odd = device("gpu-2", "16106127360", type="gpu", uuid="GPU-c", productName="Tesla T4")
    foreign_slice = published(device("x", "1Gi", type="gpu"), driver="other.example")
    (found,) = DraDriver(MODELS).inventory([node({})], [published(whole, other), published(part, odd), foreign_slice])
    assert [(gpu.uuid, gpu.model, gpu.isolation, bool(gpu.cuts)) for gpu in found.gpus] == [
        ("GPU-a", "H100-80GB", Isolation.DEVICE, True),
        ("GPU-b", "A100-80GB", Isolation.HARDWARE, False),
        ("GPU-c", "T4-16GB", Isolation.DEVICE, True),
    ]


def part(gpu: str, profile: str, *units: int, domain: str = "") -> dict[str, Any]:
    """Return a possible slice as NVIDIA's driver publishes it."""
    published_device = device(f"{gpu}-{profile}-{units}", "10Gi", type="mig", parentUUID=gpu, profile=profile)
    published_device["capacity"] |= {f"{domain}memorySlice{unit}": {"value": "1"} for unit in units}
    return published_device


GPU_A = device("gpu-0", "81559Mi", type="gpu", uuid="GPU-a", productName="NVIDIA H100 80GB HBM3")


def published_starts(
    *parts: dict[str, Any], extended: bool = False, classes: set[str] | None = None
) -> dict[str, list[int]] | None:
    """Return the stored placements of an H100 that publishes these."""
    (found,) = DraDriver(MODELS, extended).inventory([node({})], [published(GPU_A, *parts)], classes)
    (gpu,) = found.gpus
    assert not gpu.cuts
    return gpu.published.starts() if gpu.published else None


def test_a_gpu_is_sold_only_as_the_profiles_and_placements_it_publishes() -> None:
    parts = [
        part("GPU-a", "1g.10gb", 0),
        part("GPU-a", "1g.10gb", 6, domain="gpu.nvidia.com/"),
        part("GPU-a", "3g.40gb", 4, 5, 6, 7),
        part("GPU-a", "2g.20gb", 1, 2),  # no GPU of this model has it there
        part("GPU-a", "9g.90gb", 0),
        part("GPU-b", "7g.80gb", *range(8)),
    ]
    assert published_starts(*parts) == {"1g.10gb": [0, 6], "3g.40gb": [4], "whole-gpu": [0]}
    # A slice without units cannot be requested by placement; a scheduler that picks takes any.
    placeless = part("GPU-a", "2g.20gb")
    assert published_starts(*parts[:1], placeless) == {"1g.10gb": [0], "whole-gpu": [0]}
    assert published_starts(*parts[:1], placeless, extended=True) == {
        "1g.10gb": [0],
        "2g.20gb": [0, 2, 4],
        "whole-gpu": [0],
    }


def all_profiles() -> list[dict[str, Any]]:
    return [
        part("GPU-a", each.name, *range(place.start, place.end))
        for each in H100.profiles_with(Isolation.HARDWARE)
        for place in each.placements
    ]


def test_a_gpu_that_publishes_every_profile_of_its_model_stores_no_restriction() -> None:
    assert published_starts(*all_profiles()) is None
    lacks = all_profiles()[-1]["attributes"]["profile"]["string"]
    assert lacks not in (published_starts(*all_profiles()[:-1]) or {lacks: []})


def test_profiles_without_a_device_class_are_not_sold() -> None:
    classes = {"gpu.nvidia.com", device_class_of("1g.10gb")}
    assert published_starts(*all_profiles(), classes=classes) == {"1g.10gb": [*range(7)], "whole-gpu": [0]}
    assert published_starts(*all_profiles(), classes=classes - {"gpu.nvidia.com"}) == {"1g.10gb": [*range(7)]}
    assert published_starts(*all_profiles(), classes=set()) == {}
    (found,) = DraDriver(MODELS).inventory([node({})], [published(GPU_A)], set())
    assert found.gpus == ()
    assert "DeviceClass gpu.nvidia.com does not exist" in found.problems[0]


def test_profiles_that_a_gpu_does_not_publish_are_listed_for_its_node() -> None:
    whole = device("gpu-0", "81559Mi", type="gpu", uuid="GPU-a", productName="NVIDIA H100 80GB HBM3")
    uncut = device("gpu-1", "81559Mi", type="gpu", uuid="GPU-b", productName="NVIDIA H100 80GB HBM3")
    odd = device("gpu-2", "16106127360", type="gpu", uuid="GPU-c", productName="Tesla T4")
    sold = {
        each.name for model in MODELS if model.name == "H100-80GB" for each in model.profiles_with(Isolation.HARDWARE)
    }
    parts = [device(f"gpu-0-{n}", "1Gi", parentUUID="GPU-a", profile=name) for n, name in enumerate(sorted(sold))]
    odd_part = device("gpu-2-0", "1Gi", parentUUID="GPU-c", profile="1g.10gb")
    slices = [published(whole, uncut, odd, odd_part), published(*parts[1:])]
    assert unpublished_profiles([*slices, published(whole, driver="other.example")], MODELS) == {"n1": [min(sold)]}
    assert unpublished_profiles([*slices, published(parts[0])], MODELS) == {}


def test_a_node_without_resource_slices_is_not_inventory() -> None:
    assert DraDriver(MODELS).inventory([node({})], []) == []


def test_gpus_registered_by_hami_are_identified_by_uuid() -> None:
    registered = {
        "id": "GPU-a",
        "count": 10,
        "devmem": 81559,
        "type": "NVIDIA-NVIDIA H100 80GB HBM3",
        "health": True,
    }
    text = msgspec.json.encode([registered]).decode()
    labelled = node(gpu("NVIDIA-H100-80GB-HBM3", 1, 81559), annotations={REGISTER_ANNOTATION: text})
    (found,) = HamiDriver(MODELS).inventory([labelled], [])
    assert [(gpu.uuid, gpu.model, gpu.healthy) for gpu in found.gpus] == [("GPU-a", "H100-80GB", True)]


@pytest.mark.parametrize("text", ["", "GPU-a,10,81559:", '{"id": 1}', '[{"type": "x"}]'])
def test_an_invalid_hami_annotation_registers_no_gpu(text: str) -> None:
    labelled = node(gpu("NVIDIA-H100-80GB-HBM3", 1, 81559), annotations={REGISTER_ANNOTATION: text})
    (found,) = HamiDriver(MODELS).inventory([labelled], [])
    assert found.gpus == ()
    assert "registered no GPU" in found.problems[0]


def test_every_gpu_model_is_found_by_its_name() -> None:
    for model in MODELS:
        assert model_named(MODELS, model.name) is model


def test_the_gpu_clique_label_is_the_nvlink_fabric_of_a_node() -> None:
    labels = gpu("NVIDIA-H100-80GB-HBM3", 2, 81559, gpu_clique="6f3c.1")
    assert [gpu.fabric for gpu in read(labels, {"nvidia.com/gpu": "2"}).gpus] == ["6f3c.1"] * 2
    assert [gpu.fabric for gpu in read(gpu("NVIDIA-H100-80GB-HBM3", 1, 81559), {"nvidia.com/gpu": "1"}).gpus] == [""]


@pytest.mark.parametrize(("extended", "numa"), [(False, "pci0000:15"), (True, "")])
def test_the_pcie_root_is_reported_when_the_claim_names_the_gpu(extended: bool, numa: str) -> None:
    """A scheduler that picks the GPU itself does not know which GPU was sold."""
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": "GPU-a"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:15"},
    }
    device = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}}
    (found,) = DraDriver(MODELS, extended).inventory([node({"gpu.clique": "c.0"})], [published(device)])
    assert [(gpu.numa, gpu.fabric) for gpu in found.gpus] == [(numa, "c.0")]


@pytest.mark.parametrize(("reported", "numa"), [({"numa": 1}, "1"), ({"numa": 0}, "0"), ({}, "")])
def test_hami_reports_the_numa_node_of_a_gpu(reported: dict[str, int], numa: str) -> None:
    registered = {"id": "GPU-a", "devmem": 81559, "type": "NVIDIA-NVIDIA H100 80GB HBM3", **reported}
    labelled = node(
        gpu("NVIDIA-H100-80GB-HBM3", 1, 81559),
        annotations={REGISTER_ANNOTATION: msgspec.json.encode([registered]).decode()},
    )
    (found,) = HamiDriver(MODELS).inventory([labelled], [])
    assert [gpu.numa for gpu in found.gpus] == [numa]
