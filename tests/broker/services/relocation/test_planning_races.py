"""Concurrent planning of relocations."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import connections

from broker.models import Cluster, RelocationPlan
from broker.services.relocation import plan_proposals
from tests.broker.services.relocation.scattered_leases import scatter_leases
from tests.database import OwnDatabase
from tests.simulation import create_gpus, create_tenant, simulate


def test_concurrent_planners_of_a_cluster_create_one_plan(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, write = threading.Barrier(2), plan_proposals._create_plan

    def together(*plan: Any) -> RelocationPlan:
        with suppress(threading.BrokenBarrierError):  # where one has to wait for the other before
            both.wait(0.5)
        return write(*plan)

    monkeypatch.setattr(plan_proposals, "_create_plan", together)
    with simulate() as sim:
        create_gpus(2)
        scatter_leases(sim, create_tenant("Kestrel"), create_tenant("Merlin"), relocatable=True)
        cluster = Cluster.objects.get().pk

        def plan(_: int) -> list[str]:
            try:
                return [each.pk for each in plan_proposals.propose_plans(cluster, now=sim.now)]
            finally:
                connections.close_all()

        with ThreadPoolExecutor(2) as workers:
            one, other = workers.map(plan, range(2))
    assert one == other == list(RelocationPlan.objects.values_list("pk", flat=True))
