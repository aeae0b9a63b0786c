"""Every kind of slice: placement, capacity and release."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.behaviours.world import Machine, Published, World
from tests.controlplane.nodes import GpuNode


@dataclass(frozen=True)
class Form:
    """One kind of slices: its nodes, offerings and requests."""

    name: str
    machine: Machine
    room: int  # how many of it there are
    sold: dict[str, str]
    limits: dict[str, str]
    way: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


MIG = {"profile": "1g.10gb"}
FORMS = [
    Form("gpus", GpuNode(gpus=2), 2, {"profile": "whole-gpu"}, {"gpu": "1"}),
    Form("mig-mixed", GpuNode(gpus=1, cut=1, mig={"1g.10gb": 3}), 3, MIG, {"mig_1g__10gb": "1"}),
    Form(
        "large-mig",
        GpuNode(gpus=1, cut=1, mig={"3g.40gb": 2}),
        2,
        {"profile": "3g.40gb"},
        {"mig_3g__40gb": "1"},
    ),
    Form(
        "time-slices",
        GpuNode(gpus=1, replicas=4, sharing="time-slicing"),
        4,
        {"profile": "quarter", "isolation": "none"},
        {"gpu.shared": "1"},
    ),
    Form(
        "mps",
        GpuNode(gpus=1, replicas=2, sharing="mps"),
        2,
        {"profile": "half", "isolation": "soft"},
        {"gpu.shared": "1"},
    ),
    Form(
        "replicas-called-gpus",
        GpuNode(gpus=1, replicas=2, sharing="mps", renamed=False),
        2,
        {"profile": "half", "isolation": "soft"},
        {"gpu": "1"},
    ),
    Form(
        "slices-called-gpus",
        GpuNode(gpus=1, cut=1, mig={"3g.40gb": 2}, strategy="single"),
        2,
        {"profile": "3g.40gb"},
        {"gpu": "1"},
    ),
    Form("claimed-gpus", Published(2), 2, {"profile": "whole-gpu"}, {}, {"driver": "dra"}),
    Form(
        "claimed-slices",
        Published(1),
        2,
        {"profile": "3g.40gb"},
        {},
        {"driver": "dra"},
    ),
    Form(
        "extended-slices",
        Published(1),
        2,
        {"profile": "3g.40gb"},
        {"mig_3g__40gb": "1"},
        {"driver": "dra", "extended": True},
    ),
]
forms = pytest.mark.parametrize("form", FORMS, ids=str)


def set_up(world: World, form: Form) -> Any:
    world.add_cluster(form.machine, **form.way)
    return world.offering(**form.sold)


@forms
def test_a_lease_requests_its_slice_and_leaves_no_objects(form: Form, world: World) -> None:
    what = set_up(world, form)
    lease = world.run(world.add_tenant(), what)
    assert world.count_leases() == 1
    world.check_limits(lease, **form.limits)
    world.end(lease)
    assert world.count_leases() == 0


@pytest.mark.parametrize("form", [form for form in FORMS if "isolation" not in form.sold], ids=str)
def test_a_lease_of_two_slices_requests_two_slots(form: Form, world: World) -> None:
    what = set_up(world, form)
    lease = world.run(world.add_tenant(), what, quantity=2)
    world.check_limits(lease, **{name: "2" for name in form.limits})


@pytest.mark.parametrize("form", [form for form in FORMS if "isolation" in form.sold], ids=str)
def test_a_lease_of_two_shares_is_refused(form: Form, world: World) -> None:
    what, kestrel = set_up(world, form), world.add_tenant()
    world.refused(lambda: world.request_lease(kestrel, what, quantity=2))
    assert world.count_leases() == 0


@pytest.mark.deep
@forms
def test_a_lease_in_a_full_pool_waits_for_a_release(form: Form, world: World) -> None:
    what, kestrel = set_up(world, form), world.add_tenant()
    first = [world.request_lease(kestrel, what) for _ in range(form.room)]
    late = world.request_lease(kestrel, what)
    world.until_all(first, "active")
    world.until_true(lambda: world.pending_reason(late), "words for the one that waits")
    world.record(world.pending_reason(late))
    world.end(first[0])
    world.until(late, "active")
