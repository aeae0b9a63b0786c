"""Celery tasks of the broker.

Each task reads the clock and calls one service; it loads nothing itself.
"""

from broker.services.clusters import image_prepulls, orphan_removal
from broker.services.clusters.health import health_probe
from broker.services.clusters.registration import cluster_examination
from broker.services.inventory import hardware, table_statistics
from broker.services.leases import abandoned_placements, checkpoints, project_archive
from broker.services.leases.end_notices import end_checks
from broker.services.leases.schedules import due_schedules
from broker.services.logs import log_retention
from broker.services.queue import queue_scheduling, spot_reclaims
from broker.services.reconciler import lease_reconciler
from broker.services.relocation import plan_proposals
from broker.services.relocation import plan_reconciler as moving
from broker.services.repartition import repartition_planner, repartition_reconciler
from broker.services.telemetry import partitions, sample_rollups, simulated_samples
from broker.services.volumes import volume_lifecycle
from ports import clock, outbox
from ports.outbox import task

# Seconds after which a message that a sweep sent is dropped, since a later sweep has repeated it. Three sweeps, so
# that a queue which is a few seconds behind still gets to them.
SWEEP_EXPIRES_S = 15
PROBE_EXPIRES_S, SWEEP_ALL_EXPIRES_S = 15, 240


@task("broker.reconcile_lease")
def reconcile_lease(lease_id: str, tenant_id: str) -> None:
    lease_reconciler.reconcile_lease(lease_id, tenant_id, now=clock.now())


@task("broker.release_waiting_leases")
def release_waiting_leases(project_id: str, tenant_id: str) -> None:
    project_archive.release_waiting_leases(project_id, tenant_id, now=clock.now())


@task("broker.run_queue")
def run_queue(pool: str) -> None:
    model, _, region = pool.partition("|")
    queue_scheduling.run_queue((model, region), now=clock.now())


@task("broker.probe_clusters")
def probe_clusters() -> None:
    for cluster_id in health_probe.clusters_to_probe():
        outbox.send("broker.probe_cluster", cluster_id, "", expires_s=PROBE_EXPIRES_S)


@task("broker.probe_cluster")
def probe_cluster(cluster_id: str) -> None:
    health_probe.probe_cluster(cluster_id, now=clock.now())


@task("broker.examine_cluster")
def examine_cluster(cluster_id: str) -> None:
    cluster_examination.run_examination(cluster_id, now=clock.now())


@task("broker.check_image_prepull")
def check_image_prepull(prepull_id: str) -> None:
    image_prepulls.check_image_prepull(prepull_id, now=clock.now())


@task("broker.free_abandoned_placements")
def free_abandoned_placements(lease_id: str, tenant_id: str) -> None:
    abandoned_placements.free_abandoned_placements(lease_id, tenant_id, now=clock.now())


@task("broker.run_checkpoint")
def run_checkpoint(notice_id: str, tenant_id: str) -> None:
    checkpoints.run_checkpoint(notice_id, tenant_id, now=clock.now())


@task("broker.reconcile_spot_reclaim")
def reconcile_spot_reclaim(reclaim_id: str) -> None:
    spot_reclaims.reconcile_spot_reclaim(reclaim_id, now=clock.now())


@task("broker.reconcile_volume")
def reconcile_volume(volume_id: str, tenant_id: str) -> None:
    volume_lifecycle.reconcile_volume(volume_id, tenant_id, now=clock.now())


@task("broker.sweep")
def sweep_due() -> None:
    """Enqueue everything that is due, in case its own message was lost; reopen nodes."""
    now = clock.now()
    hardware.reopen_nodes(now=now)
    layouts_and_plans = (*repartition_reconciler.due_repartitions(now=now), *moving.due_plans(now=now))
    images = image_prepulls.due_prepulls(now=now)
    leases_and_volumes = (*lease_reconciler.due_messages(now=now), *volume_lifecycle.due_volumes(now=now))
    for message in (*leases_and_volumes, *layouts_and_plans, *images):
        outbox.send(*message, expires_s=SWEEP_EXPIRES_S)


@task("broker.check_lease_ends")
def check_lease_ends() -> None:
    end_checks.check_lease_ends(now=clock.now())


@task("broker.run_schedules")
def run_schedules() -> None:
    due_schedules.run_due_schedules(now=clock.now())


@task("broker.sweep_all")
def sweep_all(_subject: str = "") -> None:
    """Enqueue a check of every live lease and every cluster that may need planning.

    Plans are repartitions and relocations. Orphaned objects are removed here, too.
    """
    now = clock.now()
    plans = (*repartition_planner.clusters_to_plan(), *plan_proposals.clusters_to_plan(now=now))
    for message in (*lease_reconciler.messages_for_all_live(), *plans):
        outbox.send(*message, expires_s=SWEEP_ALL_EXPIRES_S)
    orphan_removal.remove_orphans(now=now)


@task("broker.refresh_statistics")
def refresh_statistics(_subject: str = "") -> None:
    table_statistics.refresh_statistics()


@task("broker.delete_old_logs")
def delete_old_logs(_subject: str = "") -> None:
    log_retention.delete_old_logs(now=clock.now())


@task("broker.remove_orphans")
def remove_orphans(cluster_id: str) -> None:
    orphan_removal.remove_orphans_in(cluster_id, now=clock.now())


@task("broker.reconcile_repartition")
def reconcile_repartition(change_id: str) -> None:
    repartition_reconciler.reconcile_repartition(change_id, now=clock.now())


@task("broker.plan_repartitions")
def plan_repartitions(cluster_id: str) -> None:
    repartition_planner.plan_and_approve(cluster_id, now=clock.now())


@task("broker.reconcile_relocation_plan")
def reconcile_relocation_plan(plan_id: str) -> None:
    moving.reconcile_plan(plan_id, now=clock.now())


@task("broker.plan_relocations")
def plan_relocations(cluster_id: str) -> None:
    plan_proposals.propose_plans(cluster_id, now=clock.now())


@task("broker.sample_simulated_gpus")
def sample_simulated_gpus() -> None:
    simulated_samples.sample_simulated_gpus(now=clock.now())


@task("broker.roll_up_samples")
def roll_up_samples() -> None:
    sample_rollups.roll_up_samples(now=clock.now())


@task("broker.keep_telemetry_partitions")
def keep_telemetry_partitions() -> None:
    """Create the partitions of the next days and drop those past retention."""
    partitions.keep_partitions(now=clock.now())
