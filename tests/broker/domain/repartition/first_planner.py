"""The earlier planner, as a lower bound for the current one."""

from collections.abc import Sequence

from broker.domain.repartition import layout_search as ways
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.served_demand import ServedDemand


def gpu_by_gpu(filling: ServedDemand, now: Sequence[GpuLayout]) -> Sequence[GpuLayout]:
    """Improve the layout, or fill GPUs anew, whichever serves more."""
    nothing = filling.total_slices([])
    improved = ways._improve_layouts(filling, list(now), nothing, 1)
    filled = ways._improve_layouts(filling, ways._fill_greedily(filling, len(now), nothing), nothing, 1)
    return max(improved, filled, key=lambda cuts: filling.served_value(filling.total_slices(cuts)))
