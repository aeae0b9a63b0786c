"""Lease schedules: create, change, pause, resume and delete."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from broker.domain.lifecycle.cron_schedules import InvalidCron, next_time
from broker.models import LeaseSchedule, OverlapPolicy
from broker.services.leases import lease_requests
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.secrets import variable_encryption
from tenants.domain.time_zones import time_zone_error
from tenants.models import Project
from tenants.services import audit, projects
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError

MAX_SCHEDULES = 100  # of a tenant
MAX_NAME = 100
NOT_STORED = {"template", "name", "end_date", "starts_at", "quote", "approval", "array", "array_index"}
STORED = [each.name for each in fields(LeaseRequest) if each.name not in NOT_STORED]


class ScheduleNameTaken(ProblemError):
    code, status, title = "schedule-exists", 409, "A schedule of this name exists"


class TooManySchedules(ProblemError):
    code, status, title = "too-many-schedules", 409, "The tenant has too many schedules"


@transaction.atomic
def create_schedule(
    wanted: LeaseRequest,
    *,
    cron: str,
    time_zone: str,
    overlap: str = OverlapPolicy.SKIP,
    project: Project,
    actor: Actor,
    now: datetime,
) -> LeaseSchedule:
    """Save a valid request that is repeated at the times of a cron expression."""
    if len(wanted.name.strip()) > MAX_NAME:
        raise InvalidValue("name", f"A name must have at most {MAX_NAME} characters.", fix="Enter a shorter name.")
    next_at = _first_time(cron, time_zone, now)
    projects.require_open(project)
    # Whether its volume is free is decided when it is due.
    checked = replace(lease_requests.apply_template(wanted, project), volume="", quote="")
    lease_requests.build_lease(checked, project=project, actor=actor, now=now)
    if LeaseSchedule.objects.filter(tenant=project.tenant_id).count() >= MAX_SCHEDULES:
        raise TooManySchedules(f"A tenant can have {MAX_SCHEDULES} schedules.", fix="Delete one first.")
    schedule = LeaseSchedule(
        tenant_id=project.tenant_id,
        project=project,
        name=wanted.name.strip(),
        cron=" ".join(cron.split()),
        time_zone=time_zone,
        overlap=overlap,
        request=_stored_request(wanted),
        next_at=next_at,
        created_at=now,
        requested_by_kind=actor.kind,
        requested_by=actor.id,
        requested_by_label=actor.label,
        requested_with_token=actor.token,
    )
    schedule.request["env"] = variable_encryption.encrypt_variables(wanted.env, owner_id=schedule.pk)
    _save_named(schedule, force_insert=True)
    audit.record("lease_schedule.create", schedule, schedule.name, actor=actor, now=now, cron=schedule.cron)
    return schedule


@transaction.atomic
def change_schedule(
    schedule: LeaseSchedule,
    *,
    name: str | None = None,
    cron: str | None = None,
    time_zone: str | None = None,
    overlap: str | None = None,
    paused: bool | None = None,
    actor: Actor,
    now: datetime,
) -> LeaseSchedule:
    """Change a schedule; a changed one that is not paused is next due after now."""
    schedule = LeaseSchedule.objects.select_for_update(of=("self",)).select_related("project").get(pk=schedule.pk)
    wanted = {"name": name, "cron": cron and " ".join(cron.split()), "time_zone": time_zone, "overlap": overlap}
    changed: dict[str, Any] = {
        key: value for key, value in wanted.items() if value not in (None, getattr(schedule, key))
    }
    before = {key: getattr(schedule, key) for key in changed}
    for key, value in changed.items():
        setattr(schedule, key, value)
    pauses = schedule.is_paused if paused is None else paused
    if not changed and pauses == schedule.is_paused:
        return schedule
    if schedule.is_paused and not pauses:
        projects.require_open(schedule.project)
    if pauses or changed.keys() & {"cron", "time_zone"} or schedule.is_paused:
        first = _first_time(schedule.cron, schedule.time_zone, now)
        schedule.next_at = None if pauses else first
    schedule.version = F("version") + 1
    _save_named(schedule)
    schedule.refresh_from_db(fields=["version"])
    after = {**changed, "paused": pauses}
    audit.record("lease_schedule.change", schedule, schedule.name, actor=actor, now=now, before=before, after=after)
    return schedule


@transaction.atomic
def delete_schedule(schedule: LeaseSchedule, *, actor: Actor, now: datetime) -> None:
    """Delete a schedule with the record of its runs; its leases stay."""
    audit.record("lease_schedule.delete", schedule, schedule.name, actor=actor, now=now)
    schedule.delete()


def request_of(schedule: LeaseSchedule) -> LeaseRequest:
    """Return the saved request, under the schedule's name; VariableUnreadable without its key."""
    env = variable_encryption.decrypt_variables(schedule.request["env"], owner_id=schedule.pk)
    return LeaseRequest(name=schedule.name, **{**schedule.request, "env": env})


def _stored_request(wanted: LeaseRequest) -> dict[str, Any]:
    values = {name: getattr(wanted, name) for name in STORED}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _first_time(cron: str, time_zone: str, now: datetime) -> datetime:
    if error := time_zone_error(time_zone):
        raise InvalidValue("time_zone", error, fix="Choose one such as Europe/Berlin or UTC.")
    try:
        return next_time(cron, time_zone, now)
    except InvalidCron as error:
        raise InvalidValue("cron", str(error), fix="Enter, for example, 0 3 * * 1-5 for 03:00 on weekdays.") from None


def _save_named(schedule: LeaseSchedule, *, force_insert: bool = False) -> None:
    try:
        with transaction.atomic():
            schedule.save(force_insert=force_insert)
    except IntegrityError as error:
        if "lease_schedule_named_once" not in str(error):
            raise
        raise ScheduleNameTaken(
            f"The project has a schedule named {schedule.name}.", fix="Choose another name, or change that schedule."
        ) from None
