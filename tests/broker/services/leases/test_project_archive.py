"""An archived project spends nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, LeaseSchedule, Volume
from broker.services.leases import lease_arrays, project_archive
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import extension
from broker.services.leases.schedules import due_schedules, schedule_records
from broker.services.reconciler import lease_reconciler, observation_outcomes
from tenants.models import Project
from tenants.services import projects
from tenants.services.errors import ProjectArchived
from tenants.services.projects import ProjectTreeError
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


@pytest.fixture
def lab(kestrel: TenantContext) -> Project:
    return kestrel.create_project("lab")


def archive(sim: Simulation, owner: TenantContext, project: Project) -> None:
    with tenant_scope(owner.tenant.pk):
        fresh = Project.objects.get(pk=project.pk)
        project_archive.archive_project(fresh, actor=owner.actor, now=sim.now)
        project.refresh_from_db()


def start_schedule(sim: Simulation, owner: TenantContext, project: Project) -> LeaseSchedule:
    return schedule_records.create_schedule(
        LeaseRequest(offering_id=offering().pk, name="nightly", max_duration_s=600),
        cron="0 * * * *",
        time_zone="UTC",
        project=project,
        actor=owner.actor,
        now=sim.now,
    )


STARTS: dict[str, Callable[[Simulation, TenantContext, Project], Any]] = {
    "a launch": lambda sim, owner, project: sim.request_lease(owner, offering(), project=project),
    "an array": lambda sim, owner, project: lease_arrays.request_array(
        LeaseRequest(offering_id=offering().pk, name="a", max_duration_s=600, workload="batch", command="true"),
        size=2,
        project=project,
        actor=owner.actor,
        now=sim.now,
    ),
    "a schedule": start_schedule,
    "a volume": lambda sim, owner, project: sim.create_volume(owner, project=project),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_nothing_begins_in_an_archived_project(
    start: Callable[..., Any], sim: Simulation, kestrel: TenantContext, lab: Project
) -> None:
    archive(sim, kestrel, lab)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(ProjectArchived) as refusal:
        start(sim, kestrel, lab)
    assert refusal.value.detail.startswith("lab is archived")
    assert "unarchive" in refusal.value.fix.text
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()
        assert not Volume.objects.exists()


def test_an_active_lease_goes_on_but_cannot_be_extended(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    lease = sim.create_lease(kestrel, offering(), project=lab)
    archive(sim, kestrel, lab)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(ProjectArchived):
        extension.extend_lease(reload_lease(lease), more_s=600, actor=kestrel.actor, now=sim.now)
    sim.run(60)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_stopped_lease_cannot_be_started(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    volume = sim.create_volume(kestrel, project=lab)
    lease = sim.create_lease(kestrel, offering(), project=lab, volume=volume.pk)
    sim.stop_lease(lease, kestrel)
    sim.run(30)
    with tenant_scope(kestrel.tenant.pk):  # without its volume, which may only be deleted after the lease
        projects.archive(lab, actor=kestrel.actor, now=sim.now)
    with pytest.raises(ProjectArchived):
        sim.start_lease(lease, kestrel)


def test_leases_that_wait_are_released_when_their_project_is_archived(
    sim: Simulation, kestrel: TenantContext, lab: Project
) -> None:
    later = sim.request_lease(kestrel, offering(), project=lab, starts_at=sim.now + timedelta(hours=1))
    other = sim.request_lease(kestrel, offering(), starts_at=sim.now + timedelta(hours=1))
    archive(sim, kestrel, lab)
    sim.run(10)
    ended = reload_lease(later)
    assert (ended.state, ended.end_reason) == (LeaseState.RELEASED, EndReason.BY_TENANT)
    assert reload_lease(other).state == LeaseState.QUEUED
    assert kestrel.quota_used() == 1000


def test_a_schedule_of_an_archived_project_starts_nothing_and_says_why(
    sim: Simulation, kestrel: TenantContext, lab: Project
) -> None:
    with tenant_scope(kestrel.tenant.pk):
        schedule = start_schedule(sim, kestrel, lab)
    archive(sim, kestrel, lab)
    sim.clock.at += timedelta(hours=1)
    due_schedules.run_due_schedules(now=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        run = schedule.runs.get()
        assert run.lease is None
        assert "lab is archived" in run.text
        assert not Lease.objects.exists()


def test_a_project_with_volumes_is_not_archived(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    sim.create_volume(kestrel, project=lab)
    with pytest.raises(ProjectTreeError, match="lab has 1 volume, charged while they exist"):
        archive(sim, kestrel, lab)
    with tenant_scope(kestrel.tenant.pk):
        assert Project.objects.get(pk=lab.pk).archived_at is None


def test_an_unarchived_project_spends_again(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    archive(sim, kestrel, lab)
    with tenant_scope(kestrel.tenant.pk):
        projects.unarchive(lab, actor=kestrel.actor, now=sim.now)
    assert sim.create_lease(kestrel, offering(), project=lab).state == LeaseState.ACTIVE


def test_a_project_below_an_archived_one_stays_archived(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    bench = kestrel.create_project("bench", lab)
    archive(sim, kestrel, bench)
    archive(sim, kestrel, lab)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(ProjectTreeError, match="lab above it is archived"):
        projects.unarchive(bench, actor=kestrel.actor, now=sim.now)


def test_a_failed_batch_command_is_not_run_again(sim: Simulation, kestrel: TenantContext, lab: Project) -> None:
    lease = sim.create_lease(
        kestrel, offering(), project=lab, retries=3, workload="batch", image="fails/train", command="train"
    )
    archive(sim, kestrel, lab)
    for _ in range(12):
        sim.run(5)
        lease_reconciler.check_active_leases(now=sim.now)
        sim.sweep()
    ended = reload_lease(lease)
    assert (ended.state, ended.attempt) == (LeaseState.RELEASED, 1)


def test_a_lease_that_its_node_rejects_is_not_queued_again(
    sim: Simulation, kestrel: TenantContext, lab: Project
) -> None:
    lease = sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING, project=lab)
    with tenant_scope(kestrel.tenant.pk):
        projects.archive(lab, actor=kestrel.actor, now=sim.now)
        observation_outcomes._requeue_lease(reload_lease(lease), "no room on its node", sim.now)
    assert reload_lease(lease).state == LeaseState.RELEASING
