"""Operators' pages with a thousand GPUs stay small and complete."""

import re

import pytest
from django.test import Client

from broker.models import Gpu, Node
from tests import simulation
from tests.simulation import Simulation, TenantContext

pytestmark = pytest.mark.django_db
NODES = 125  # with the one that is there, 1,004 GPUs


def body(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


@pytest.mark.deep
def test_pages_of_a_large_fleet_stay_below_100_kb_and_list_every_row(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    slice_ = simulation.offering("1g.10gb")
    simulation.create_fleet(simulation.SimulatedRack("west-2", "eu-west", "H100-80GB", nodes=NODES), now=sim.now)
    for _ in range(28):  # the GPUs of the first node are as full as GPUs can be
        sim.create_lease(kestrel, slice_)
    sim.run(60)
    for path, rows, link in (
        ("/ops/clusters/", set(Node.objects.values_list("pk", flat=True)), r"/ops/nodes/(nod_\w+)/"),
        ("/ops/gpus/", set(Gpu.objects.values_list("pk", flat=True)), r"/ops/gpus/(gpu_\w+)/"),
    ):
        seen: set[str] = set()
        address, turned = path, 0
        while address:
            html = body(operator, address)
            assert len(html.encode()) <= 100_000, (address, len(html.encode()))
            seen |= set(re.findall(link, html))
            found = re.search(r'href="([^"]*)">Next', html)
            address = (found[1] if found[1].startswith("/") else path + found[1]) if found else ""
            turned += 1
        assert seen == rows, path
        assert turned > 1
    for odd in ("?from=-1", "?from=99999", "?from=x", "?from=%00"):
        shown = body(operator, f"/ops/clusters/{odd}")
        assert "126 nodes" in shown
        assert "1–40" in shown
