"""Concurrent placement by several processes."""

import os
import subprocess
import sys
from contextlib import ExitStack
from subprocess import PIPE

import pytest
from django.db import connection

from broker.models import Allocation, Lease
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from ports import clock, outbox
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import MODEL, NOW, REGION, TenantContext, create_fleet, create_tenant, offering

PROCESSES, LEASES, ROUNDS = 3, 240, 220
OVERLAPPING = """
SELECT count(*) FROM broker_allocation a JOIN broker_allocation b
    ON a.gpu_id = b.gpu_id AND a.id < b.id AND a.placement && b.placement
 WHERE tstzrange(a.held_at, a.released_at) && tstzrange(b.held_at, b.released_at)
"""
WANTED = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "whole-gpu")


def queue_lease(owner: TenantContext, number: int) -> Lease:
    wanted = LeaseRequest(
        offering_id=offering(WANTED[number % len(WANTED)]).pk,
        name=f"job-{number}",
        max_duration_s=3600,
        quantity=2 if number % 24 == 5 else 1,
    )
    with tenant_scope(owner.tenant.pk):
        return request_lease(wanted, project=owner.project, actor=owner.actor, now=NOW)


@pytest.mark.deep
def test_concurrent_processes_never_allocate_a_slot_twice(own_database: OwnDatabase) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=3, gpus_per_node=2))
    tenants = [create_tenant(name, units=100_000) for name in ("Kestrel", "Merlin", "Osprey")]
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        leases = [queue_lease(tenants[number % len(tenants)], number) for number in range(LEASES)]
    text = "".join(f"{lease.pk} {lease.tenant_id}\n" for lease in leases)
    env = os.environ | {"GPUBROKER_DATABASE_URL": own_database.worker_url}
    command = [sys.executable, "-m", "tests.broker.services.queue.placement_process"]
    with ExitStack() as running:
        placers = [
            running.enter_context(
                subprocess.Popen([*command, str(seed), str(ROUNDS)], env=env, stdin=PIPE, stdout=PIPE, text=True)
            )
            for seed in range(PROCESSES)
        ]
        for placer in placers:  # all are ready before any starts
            assert placer.stdout
            assert placer.stdout.readline() == "ready\n"
        for placer in placers:
            assert placer.stdin
            placer.stdin.write(text)
            placer.stdin.close()
        said = [placer.stdout.read().split() for placer in placers if placer.stdout]
    assert [placer.returncode for placer in placers] == [0] * PROCESSES
    placed, left = [int(each[0]) for each in said], [int(each[1]) for each in said]
    assert min(placed) > 10, placed  # all of them were at it, and found no room at times
    assert sum(left) > 10, left
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(OVERLAPPING)
        assert cursor.fetchone() == (0,)
        moved = Lease.objects.exclude(state="queued")
        assert moved.count() == sum(placed)
        assert set(Allocation.objects.values_list("lease_id", flat=True)) == set(moved.values_list("pk", flat=True))
        assert not Allocation.objects.filter(released_at=None, lease__state="released").exists()
