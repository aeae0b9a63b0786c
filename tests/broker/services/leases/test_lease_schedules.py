"""Lease schedules: each due time requests one lease, in the time zone of the schedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from broker.domain.lifecycle.cron_schedules import InvalidCron, next_time, times_after
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseSchedule, ScheduledRun
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.schedules import due_schedules, schedule_records
from broker.services.leases.schedules.due_schedules import run_due_schedules
from broker.services.leases.schedules.schedule_records import ScheduleNameTaken, TooManySchedules
from tenants.domain.roles import Role
from tenants.models import ApiToken, AuditEvent, Member, QuotaKind, Tenant
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering

pytestmark = pytest.mark.django_db
BERLIN = "Europe/Berlin"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    kestrel = create_tenant("Kestrel")
    user = kestrel.create_member(Role.MEMBER)
    return TenantContext(kestrel.tenant, kestrel.project, Actor("user", user.pk, user.email))


def create(
    sim: Simulation, owner: TenantContext, cron: str = "0 * * * *", name: str = "nightly", **wanted: Any
) -> LeaseSchedule:
    terms = {key: wanted.pop(key) for key in ("time_zone", "overlap") if key in wanted}
    values = {"max_duration_s": 600, "workload": "batch", "command": "train", **wanted}
    with tenant_scope(owner.tenant.pk):
        return schedule_records.create_schedule(
            LeaseRequest(offering_id=offering().pk, name=name, **values),
            cron=cron,
            project=owner.project,
            actor=owner.actor,
            now=sim.now,
            **{"time_zone": "UTC", **terms},
        )


def change(sim: Simulation, owner: TenantContext, schedule: LeaseSchedule, **wanted: Any) -> LeaseSchedule:
    with tenant_scope(owner.tenant.pk):
        return schedule_records.change_schedule(schedule, actor=owner.actor, now=sim.now, **wanted)


def run_until(sim: Simulation, until: datetime) -> None:
    """Let time pass, with schedules and leases checked every minute."""
    while sim.now < until:
        sim.run(60)
        run_due_schedules(now=sim.now)
        sim.sweep()


def runs(schedule: LeaseSchedule) -> list[tuple[str, str]]:
    with tenant_scope(schedule.tenant_id):
        found = ScheduledRun.objects.filter(schedule=schedule).order_by("due_at")
        return [(f"{each.due_at:%H:%M}", each.result) for each in found]


def test_each_due_time_requests_one_lease(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    assert schedule.next_at == datetime(2026, 11, 21, 10, tzinfo=UTC)
    run_until(sim, sim.now + timedelta(hours=3, minutes=5))
    assert runs(schedule) == [("10:00", "started"), ("11:00", "started"), ("12:00", "started")]
    with tenant_scope(kestrel.tenant.pk):
        names = list(Lease.objects.order_by("created_at").values_list("name", "requested_by"))
    assert names == [(f"nightly-1121-{hour}00", kestrel.actor.id) for hour in (10, 11, 12)]


def test_a_due_time_runs_once_however_often_it_is_checked(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    sim.run(3600)
    assert [run_due_schedules(now=sim.now) for _ in range(3)] == [1, 0, 0]
    with tenant_scope(kestrel.tenant.pk):
        run = ScheduledRun.objects.get()
        with pytest.raises(IntegrityError, match="scheduled_run_once"), transaction.atomic():
            ScheduledRun.objects.create(
                tenant=run.tenant, schedule=schedule, due_at=run.due_at, result="started", made_at=sim.now
            )


def test_a_time_is_skipped_while_the_earlier_lease_runs(sim: Simulation, kestrel: TenantContext) -> None:
    skips = create(sim, kestrel, max_duration_s=5400)
    allows = create(sim, kestrel, name="other", max_duration_s=5400, overlap="allow")
    run_until(sim, sim.now + timedelta(hours=2, minutes=5))
    assert runs(skips) == [("10:00", "started"), ("11:00", "skipped")]
    assert runs(allows) == [("10:00", "started"), ("11:00", "started")]


def test_a_refused_request_is_recorded_with_its_reason(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    kestrel.set_quota(QuotaKind.UNITS, 0)
    run_until(sim, sim.now + timedelta(minutes=61))
    assert runs(schedule) == [("10:00", "refused")]
    with tenant_scope(kestrel.tenant.pk):
        assert "concurrent units is 0 units" in ScheduledRun.objects.get().text
        assert not Lease.objects.exists()


def test_times_that_no_worker_saw_are_missed_not_made_up(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    sim.run(5 * 3600)
    run_until(sim, sim.now + timedelta(minutes=1))
    assert runs(schedule) == [("10:00", "missed")]
    run_until(sim, sim.now + timedelta(hours=1))
    assert runs(schedule) == [("10:00", "missed"), ("15:00", "started")]


def test_a_late_worker_still_requests_the_lease(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    sim.run(3600 + 1800)
    run_due_schedules(now=sim.now)
    assert runs(schedule) == [("10:00", "started")]


@pytest.mark.parametrize("loss", ["member", "tenant"])
def test_a_requester_without_the_right_requests_nothing(sim: Simulation, kestrel: TenantContext, loss: str) -> None:
    schedule = create(sim, kestrel)
    with tenant_scope(kestrel.tenant.pk):
        if loss == "member":
            Member.objects.filter(user=kestrel.actor.id).delete()
        else:
            Tenant.objects.filter(pk=kestrel.tenant.pk).update(suspended_at=sim.now)
    run_until(sim, sim.now + timedelta(minutes=61))
    assert runs(schedule) == [("10:00", "refused")]


def test_a_schedule_ends_with_the_token_it_was_created_with(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.token()
    with tenant_scope(kestrel.tenant.pk):
        token = ApiToken.objects.latest("created_at")
    robot = Actor("service_account", token.service_account_id or "", "robot", token=token.pk)
    schedule = create(sim, TenantContext(kestrel.tenant, kestrel.project, robot))
    run_until(sim, sim.now + timedelta(minutes=61))
    with tenant_scope(kestrel.tenant.pk):
        ApiToken.objects.filter(pk=token.pk).update(revoked_at=sim.now)
    run_until(sim, sim.now + timedelta(minutes=60))
    assert runs(schedule) == [("10:00", "started"), ("11:00", "refused")]


def test_a_paused_schedule_requests_nothing_until_it_is_resumed(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    paused = change(sim, kestrel, schedule, paused=True)
    assert (paused.is_paused, paused.version) == (True, 2)
    run_until(sim, sim.now + timedelta(hours=2))
    assert runs(schedule) == []
    resumed = change(sim, kestrel, paused, paused=False)
    assert resumed.next_at == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert change(sim, kestrel, resumed, paused=False).version == resumed.version


def test_a_changed_schedule_is_next_due_by_its_new_times(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    changed = change(sim, kestrel, schedule, cron="30  4 * * *", time_zone=BERLIN, name="early", overlap="allow")
    assert changed.next_at == datetime(2026, 11, 22, 3, 30, tzinfo=UTC)
    assert (changed.cron, changed.name, changed.overlap) == ("30 4 * * *", "early", "allow")


def test_a_deleted_schedule_leaves_its_leases(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    run_until(sim, sim.now + timedelta(minutes=61))
    with tenant_scope(kestrel.tenant.pk):
        schedule_id = schedule.pk
        schedule_records.delete_schedule(schedule, actor=kestrel.actor, now=sim.now)
        assert Lease.objects.get().state == LeaseState.ACTIVE
        actions = AuditEvent.objects.filter(subject_id=schedule_id).values_list("action", flat=True)
        assert sorted(actions) == ["lease_schedule.create", "lease_schedule.delete"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cron": "every day"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"name": "x" * 101}, "name"),
        ({"retries": 20}, "retries"),
    ],
)
def test_an_invalid_schedule_is_refused(
    sim: Simulation, kestrel: TenantContext, wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        create(sim, kestrel, **wrong)
    assert refused.value.field == field


def test_names_of_schedules_are_unique_in_a_project(sim: Simulation, kestrel: TenantContext) -> None:
    create(sim, kestrel)
    with pytest.raises(ScheduleNameTaken):
        create(sim, kestrel)


def test_a_tenant_has_a_limited_number_of_schedules(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_records, "MAX_SCHEDULES", 1)
    create(sim, kestrel)
    with pytest.raises(TooManySchedules):
        create(sim, kestrel, name="second")


def test_a_time_that_the_clock_skips_is_due_once() -> None:
    before = datetime(2027, 3, 27, 12, tzinfo=UTC)
    found = times_after("30 2 * * *", BERLIN, before)
    assert [f"{next(found):%d %H:%M}" for _ in range(3)] == ["28 01:00", "29 00:30", "30 00:30"]


def test_a_time_that_occurs_twice_is_due_once() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    found = times_after("30 2 * * *", BERLIN, before)
    assert [f"{next(found):%d %H:%M}" for _ in range(2)] == ["25 00:30", "26 01:30"]


def test_in_the_second_pass_of_a_repeated_hour_the_next_time_is_tomorrow() -> None:
    second_pass = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert next_time("30 2 * * *", BERLIN, second_pass) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_a_due_time_that_was_run_already_only_moves_on(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    sim.run(3600)
    assert run_due_schedules(now=sim.now) == 1
    with tenant_scope(kestrel.tenant.pk):
        done = ScheduledRun.objects.get(schedule=schedule)
        LeaseSchedule.objects.filter(pk=schedule.pk).update(next_at=done.due_at)
    assert run_due_schedules(now=sim.now) == 0
    with tenant_scope(kestrel.tenant.pk):
        moved = LeaseSchedule.objects.get(pk=schedule.pk).next_at
    assert moved is not None
    assert moved > sim.now
    assert len(runs(schedule)) == 1


def test_a_schedule_with_a_fault_stops_no_other(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = create(sim, kestrel, name="first")
    second = create(sim, kestrel, name="second")
    sim.run(3600)
    run_schedule = due_schedules._run_schedule

    def run_or_fail(schedule_id: str, *rest: Any) -> bool:
        if schedule_id == first.pk:
            raise ValueError("odd row")
        return run_schedule(schedule_id, *rest)

    monkeypatch.setattr(due_schedules, "_run_schedule", run_or_fail)
    assert run_due_schedules(now=sim.now) == 1
    assert (runs(first), len(runs(second))) == ([], 1)


def test_an_expression_that_is_never_due_is_invalid() -> None:
    with pytest.raises(InvalidCron):
        next_time("0 0 30 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC))


def test_a_renamed_schedule_keeps_its_next_time(sim: Simulation, kestrel: TenantContext) -> None:
    schedule = create(sim, kestrel)
    renamed = change(sim, kestrel, schedule, name="other")
    assert (renamed.name, renamed.next_at) == ("other", schedule.next_at)


def test_a_schedule_that_another_worker_runs_is_left_to_it(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = create(sim, kestrel)
    sim.run(3600)
    request = due_schedules._request_lease

    def run_beside(*args: Any) -> Any:
        assert due_schedules._run_schedule(schedule.pk, kestrel.tenant.pk, sim.now - timedelta(hours=1)) is False
        return request(*args)

    monkeypatch.setattr(due_schedules, "_request_lease", run_beside)
    assert run_due_schedules(now=sim.now) == 1
