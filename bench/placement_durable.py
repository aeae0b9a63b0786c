"""Benchmark of durable placements per second, and of their latency.

Two workers place a queue through the product's own service, each lease in its own transaction, committed
to disk, on the two processors that PostgreSQL uses as well. Beside it, in the same run: two workers that
only insert bare rows of allocations and commit each. Then the index is rebuilt from a fleet with seven
times as many leases as GPUs.
"""

import json
import os
import subprocess
import sys
from datetime import datetime
from logging import WARNING, getLogger
from statistics import quantiles
from time import perf_counter
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

HERE, WORKERS = "bench.placement_durable", 2
SIZE = "BENCH_SIZE"  # variable that hands the size to the processes of this benchmark
SMALL = os.environ.get(SIZE) == "small"
NODES, LEASES, BARE = (12, 60, 60) if SMALL else (1250, 6000, 6000)
GPUS, PLACES, A_CHUNK = (800, 5_600, 2_800) if SMALL else (100_000, 700_000, 70_000)
MIX = (
    ("1g.10gb",) * 30 + ("1g.20gb",) * 25 + ("2g.20gb",) * 20 + ("3g.40gb",) * 10 + ("4g.40gb",) * 10 + ("7g.80gb",) * 5
)
MODEL, REGION, OTHER = "H100-80GB", "eu-north", "eu-south"
QUEUE = """
INSERT INTO broker_transition (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, cause, offering_id,
       project_id, quantity, price_class, generation, actor_kind, actor_id, actor_label, reason)
SELECT l.id, step.seq, l.tenant_id, l.state_since, step.prev, CASE WHEN step.seq > 0 THEN l.state_since END,
       step.before, step.after, '', l.offering_id, l.project_id, 1, 'on_demand', 1, 'system', '', 'bench', 'none'
  FROM broker_lease l, (VALUES (0, NULL::int, '', 'requested'), (1, 0, 'requested', 'queued'))
       AS step (seq, prev, before, after) ORDER BY l.id, step.seq
"""
BARE_ROW = """
INSERT INTO broker_allocation (id, tenant_id, lease_id, generation, gpu_id, placement, profile, isolation,
       may_share, held_at)
VALUES (%s, %s, %s, 9, %s, int4range(%s, %s), '1g.10gb', 'hardware', false, %s)
"""
PLACED = """
SELECT count(*) FROM broker_lease l JOIN broker_allocation a ON a.lease_id = l.id AND a.generation = l.generation
  JOIN broker_transition t ON t.lease_id = l.id AND t.seq = l.seq AND t.after = l.state WHERE l.state = 'provisioning'
"""
MANY_NODES = """
INSERT INTO broker_node (id, cluster_id, name, state, state_since, version)
SELECT 'nod_many' || n, %s, 'm' || n, 'ready', now(), 1 FROM generate_series(1, %s) n
"""
MANY_GPUS = """
INSERT INTO broker_gpu (id, node_id, index, gpu_model_id, uuid, layout_policy, fixed_layout, health, health_reason,
       health_since, version)
SELECT 'gpu_many' || n, 'nod_many' || 1 + n / 8, n %% 8, 'H200-141GB', 'many' || n, 'dynamic', '[]',
       'healthy', '', now(), 1
  FROM generate_series(0, %s - 1) n
"""
MANY_PLACES = """
INSERT INTO broker_allocation (id, tenant_id, lease_id, generation, gpu_id, placement, profile, isolation,
       may_share, held_at)
SELECT 'alc_many' || n, %s, %s, 1, 'gpu_many' || n / 7, int4range(n %% 7, n %% 7 + 1), '1g.18gb', 'hardware',
       false, now()
  FROM generate_series(%s::int, %s) n
"""


def world(now: datetime) -> None:
    """Create a fleet, two tenants' queues of small slices, and GPUs for bare rows."""
    from django.db import connection

    from broker.models import Lease, Offering
    from broker.services.inventory import gpu_catalogue, hardware
    from broker.services.inventory.hardware import SimulatedRack
    from tenants.services import tenants
    from tenants.services.actors import SYSTEM
    from tenants.services.rls import tenant_scope

    gpu_catalogue.load_gpu_models()
    hardware.add_simulated_racks(
        [
            SimulatedRack("north-1", REGION, MODEL, nodes=NODES),
            SimulatedRack("south-1", OTHER, MODEL, nodes=1 + BARE // 56),
        ],
        now=now,
    )
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.update(state="published")
    sold = {o.profile: o for o in Offering.objects.filter(region=REGION, price_class="on_demand")}
    for worker in range(WORKERS):
        with tenant_scope(""):
            tenant, project = tenants.create(name=f"Bench {worker}", owner=None, actor=SYSTEM, now=now)
        with tenant_scope(tenant.pk), connection.cursor() as cursor:
            blank = Lease(
                tenant=tenant,
                project=project,
                name="bench",
                state="queued",
                seq=1,
                state_since=now.replace(microsecond=0),
                created_at=now,
                max_duration_s=3600,
                requested_by="bench",
                requested_by_label="bench",
            )
            rows = []
            for n in range(LEASES // WORKERS):
                row = Lease(
                    **{f.attname: getattr(blank, f.attname) for f in Lease._meta.concrete_fields if f.name != "id"}
                )
                row.offering = sold[MIX[n * 37 % len(MIX)]]
                rows.append(row)
            Lease.objects.bulk_create(rows, batch_size=500)
            cursor.execute(QUEUE)


def tenant_of(worker: int) -> str:
    from tenants.models import Tenant
    from tenants.services.rls import staff_scope

    with staff_scope():
        return Tenant.objects.get(name=f"Bench {worker}").pk


def place(number: int) -> list[float]:
    """Serve the queue as a worker; return each lease's time from selection to commit."""
    from broker.services.queue import batch_placement, queue_scheduling
    from ports import clock

    took: list[float] = []
    written = [0]
    getLogger("broker.models.transitions").setLevel(WARNING)  # a line for each lease would drown the figures
    together, take, alone = (
        batch_placement.place_batch,
        batch_placement._write_placements,
        queue_scheduling._place_single,
    )

    def counted(*given: Any) -> set[str]:
        taken = take(*given)
        written[0] += len(taken)
        return taken

    def timed(*given: Any, **more: Any) -> batch_placement.BatchResult:
        begun, written[0] = perf_counter(), 0
        outcome = together(*given, **more)
        took.extend([perf_counter() - begun] * written[0])
        return outcome

    def timed_alone(*given: Any, **more: Any) -> bool:
        begun = perf_counter()
        placed = alone(*given, **more)
        took.append(perf_counter() - begun)
        return placed

    batch_placement.place_batch, batch_placement._write_placements, queue_scheduling._place_single = (
        timed,
        counted,
        timed_alone,
    )
    ready()
    while queue_scheduling.run_queue((MODEL, REGION), now=clock.now()):
        pass
    return took


def insert(number: int) -> list[float]:
    """Insert and commit bare allocations, each in a place of its own."""
    from django.db import connection

    from broker.models import Gpu, Lease
    from ports import clock, ids
    from tenants.services.rls import tenant_scope

    tenant = tenant_of(number)
    with tenant_scope(tenant):
        lease = Lease.objects.order_by("pk")[0].pk
    gpus = sorted(Gpu.objects.filter(node__cluster__region=OTHER).values_list("pk", flat=True))[number::WORKERS]
    ready()
    took = []
    for n in range(BARE // WORKERS):
        begun = perf_counter()
        with tenant_scope(tenant), connection.cursor() as cursor:
            cursor.execute(BARE_ROW, [ids.new("alc"), tenant, lease, gpus[n // 7], n % 7, n % 7 + 1, clock.now()])
        took.append(perf_counter() - begun)
    return took


def ready() -> None:
    """Load everything a long-running worker has loaded, and wait for the others."""
    from broker.services.placement.shared_index import current_index

    with current_index():
        pass
    print("ready", flush=True)
    sys.stdin.readline()


def at_once(what: str) -> tuple[float, float]:
    """Run the workers in parallel; return the duration and the 99th percentile."""
    crew = [
        subprocess.Popen(
            [sys.executable, "-m", HERE, what, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(WORKERS)
    ]
    for worker in crew:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    begun = perf_counter()
    for worker in crew:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    reported = [json.loads(worker.stdout.readline()) for worker in crew if worker.stdout]
    took = perf_counter() - begun
    for worker in crew:
        if worker.wait(60):
            raise RuntimeError(f"a worker ended with {worker.returncode}")
    times = [each for one in reported for each in one]
    return took, quantiles(times, n=100)[98]


def placed() -> int:
    """Count the placed leases with their transition; raise if one is missing."""
    from django.db import connection

    from tenants.services.rls import system_scope

    with system_scope(), connection.cursor() as cursor:
        cursor.execute(PLACED)
        found = int(cursor.fetchone()[0])
    if found != LEASES:
        raise RuntimeError(f"{found} of {LEASES} leases were placed")
    return found


def analyze(*tables: str) -> None:
    """Analyze the tables, as autovacuum has done in any older database."""
    from django.db import connections

    with connections["owner"].cursor() as owner:
        for table in tables:
            owner.execute(f"ANALYZE broker_{table}")


def rebuilt(now: datetime) -> tuple[float, int]:
    """Time rebuilding the index of 100,000 GPUs with seven leases each."""
    from django.db import connection, connections

    from broker.models import Allocation, Lease
    from broker.services.placement.shared_index import SharedIndex
    from tenants.services.rls import tenant_scope

    # Three indexes that keep places apart would take minutes to fill, and reading does not ask them.
    with connections["owner"].cursor() as owner:
        for guard in ("one_lease_per_place", "one_isolation_per_gpu", "one_tenant_per_soft_gpu"):
            owner.execute(f"ALTER TABLE broker_allocation DROP CONSTRAINT {guard}")
    tenant = tenant_of(0)
    with tenant_scope(tenant), connection.cursor() as cursor:
        lease = Lease.objects.order_by("pk")[0]
        cluster = lease.allocations.values_list("gpu__node__cluster", flat=True)[0]
        cursor.execute(MANY_NODES, [cluster, GPUS // 8])
        cursor.execute(MANY_GPUS, [GPUS])
        for first in range(0, PLACES, A_CHUNK):
            cursor.execute(MANY_PLACES, [tenant, lease.pk, first, first + A_CHUNK - 1])
    analyze("allocation", "gpu", "node")
    begun = perf_counter()
    with SharedIndex().up_to_date() as stock:
        stock.index(("H200-141GB", REGION), Allocation(isolation="hardware").isolation)
        return perf_counter() - begun, len(stock.gpus)


def measure() -> None:
    from bench.figures import Figures
    from ports import clock

    figures, now = Figures("placement"), clock.now()
    world(now)
    analyze("allocation", "cluster", "gpu", "lease", "node", "offering", "transition")
    took, bare_p99 = at_once("insert")
    bare = BARE / took
    took, p99 = at_once("place")
    rate = placed() / took
    print(
        f"bare rows: {bare:.0f}/s, p99 {bare_p99 * 1e3:.1f} ms; leases: {rate:.0f}/s, p99 {p99 * 1e3:.1f} ms",
        file=sys.stderr,
    )
    figures.report_min("durable_placements", rate, unit="1/s", at_least=1000)
    figures.report_rate("durable_placements_beside_bare_rows", rate, baseline=bare, at_least=0.25)
    figures.report_max("durable_placement_p99", p99 * 1e3, unit="ms", at_most=25)
    took, gpus = rebuilt(now)
    print(f"{gpus} GPUs read anew", file=sys.stderr)
    figures.report_max("rebuild_from_700000_places", took, unit="s", at_most=5)
    figures.exit_with_status()


def main() -> None:
    """Measure on a PostgreSQL of our own, whose commits wait for the disk.

    The one that other benchmarks use does not wait.
    """
    from deploy.embedded.product_processes import PYTHON
    from deploy.embedded.scratch import scratch

    with scratch(durable=True) as installation:
        sys.exit(installation.run(PYTHON, "-m", HERE, "here"))


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["small"]):
        os.environ[SIZE] = "".join(sys.argv[1:])
        main()
    django.setup()
    if sys.argv[1] == "here":
        measure()
    else:
        print(json.dumps({"place": place, "insert": insert}[sys.argv[1]](int(sys.argv[2]))), flush=True)
