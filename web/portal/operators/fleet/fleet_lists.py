"""Lists of a node and of a GPU: their filters and CSV columns."""

from broker.models import Allocation, InventoryChange
from broker.services.reports.gpu_usage import LeasedSlice
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import csv_time


def _placement_cells(each: Allocation) -> tuple[object, ...]:
    return (
        *(each.lease_id, each.lease.name, each.tenant_id, each.tenant.name, each.profile, each.placement.lower),
        *(csv_time(each.held_at), csv_time(each.released_at), each.lease.state),
    )


def _slice_cells(each: LeasedSlice) -> tuple[object, ...]:
    return (
        *(each.lease, each.lease_name, each.tenant, each.tenant_name, each.profile, each.state),
        *(csv_time(each.since), csv_time(each.ends_at)),
    )


def _change_cells(each: InventoryChange) -> tuple[object, ...]:
    return (
        *(csv_time(each.at), each.node_id, each.node.name, each.gpu_id or "", each.before, each.after, each.reason),
        each.actor_label,
    )


PLACEMENT_LIST = OperatorList(
    name="placements",
    heads="lease name tenant tenant_name profile start allocated_at released_at state",
    cells=_placement_cells,
    tenant="tenant_id",
    at="held_at",
    search=("lease__name", "lease__pk"),
)
NODE_LEASE_LIST = OperatorList(
    name="node-leases",
    heads="lease name tenant tenant_name profile state since ends_at",
    cells=_slice_cells,
    tenant="tenant",
    tenant_name="tenant_name",
    at="since",
    search=("lease_name", "lease"),
)
CHANGE_LIST = OperatorList(
    name="events",
    heads="at node node_name gpu before after reason actor",
    cells=_change_cells,
    at="at",
    search=("reason", "after", "actor_label"),
)
