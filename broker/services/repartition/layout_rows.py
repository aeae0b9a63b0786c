"""Conversion of GPU partitioning between rows and the repartition planner."""

from collections.abc import Mapping

from django.db.models import F

from broker.domain.geometry.gpu_state import Geometry
from broker.domain.lifecycle.states import Isolation
from broker.domain.repartition.gpu_layouts import GpuLayout, LayoutCatalogue
from broker.models import Gpu, LayoutPolicy
from broker.services.inventory.foreign_use import IN_USE
from broker.services.inventory.gpu_catalogue import gpu_model_spec

EMPTY_LAYOUT = GpuLayout()
PLANNED_ISOLATIONS = {Isolation.DEVICE.value, Isolation.HARDWARE.value}


def current_layout(gpu: Gpu) -> GpuLayout | None:
    """Return how a GPU is partitioned; None if we may not change it.

    That is one partitioned per lease, one that is shared, one whose node has its own resource names, and one that
    pods outside the broker use.
    """
    if gpu.layout_policy != LayoutPolicy.FIXED:
        return None
    if any(each.get("isolation", Isolation.HARDWARE.value) not in PLANNED_ISOLATIONS for each in gpu.fixed_layout):
        return None
    if any(each.get("resource_name") or each.get(IN_USE) for each in gpu.fixed_layout):
        return None
    return GpuLayout.from_names(str(each["profile"]) for each in gpu.fixed_layout)


def store_gpu_layout(gpu: Gpu, cut: GpuLayout) -> None:
    """Store the partitioning of a GPU."""
    spec = gpu_model_spec(gpu.gpu_model_id)
    layout = layout_to_rows(LayoutCatalogue(spec, spec.profiles).geometry_of(cut))
    Gpu.objects.filter(pk=gpu.pk).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=layout, version=F("version") + 1
    )


def layout_to_rows(geometry: Geometry) -> list[dict[str, object]]:
    """Return a geometry in the format of a GPU's row."""
    return [
        {
            "profile": held.profile.name,
            "start": held.placement.start,
            "size": held.placement.size,
            "isolation": held.profile.isolation.value,
        }
        for held in sorted(geometry.held, key=lambda each: each.placement)
    ]


def store_node_layout(node_id: str, cuts: Mapping[int, GpuLayout]) -> None:
    """Store the partitioning of all GPUs of a node."""
    for gpu in Gpu.objects.filter(node_id=node_id, index__in=cuts):
        store_gpu_layout(gpu, cuts[gpu.index])
