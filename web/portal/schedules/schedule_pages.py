"""Pages of lease schedules: list, one schedule with its runs, pause, resume, delete."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from broker.domain.lifecycle.cron_schedules import times_after
from broker.domain.workloads.templates import TEMPLATES
from broker.models import LeaseSchedule, Offering, ScheduledRun
from broker.services.launch_templates import template_choice
from broker.services.leases.schedules import schedule_records
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from web.portal import api_examples
from web.portal.actions import ListPage, list_page
from web.portal.durations import format_seconds
from web.portal.page_context import GET_OR_POST, PageRequest, may_in_project, require_in_project, tenant_page

NEXT_TIMES, LATEST_RUNS, API_PAGE_SIZE = 3, 30, 500


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule with its next times and the result of its latest one."""

    schedule: LeaseSchedule
    next_times: Sequence[datetime]
    latest: ScheduledRun | None


@dataclass(frozen=True, slots=True)
class ScheduleListPage:
    """The schedules of a project."""

    listed: ListPage  # of ScheduleRow
    may_write: bool
    call: str


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """One schedule with its request and its latest runs."""

    schedule: LeaseSchedule
    offering: Offering | None
    next_times: Sequence[datetime]
    runs: list[ScheduledRun]
    error: str
    may_write: bool
    call: str

    @property
    def workload_label(self) -> str:
        if saved_id := self.schedule.request.get("template_id"):
            saved = template_choice.launchable_templates(self.schedule.project)
            return next((each.name for each in saved if each.pk == saved_id), _("Deleted template"))
        template = TEMPLATES.get(self.schedule.request["workload"])
        return template.label if template else _("Own image")

    @property
    def duration(self) -> str:
        return format_seconds(self.schedule.request["max_duration_s"])


@tenant_page("leases.read")
def list_schedules(request: PageRequest) -> HttpResponse:
    return render(request, "schedules/schedules.html", {"page": build_schedule_list_page(request)})


@tenant_page("leases.read", methods=GET_OR_POST)
def show_schedule(request: PageRequest, pk: str) -> HttpResponse:
    """Show a schedule; a POST changes its times, pauses it or resumes it."""
    schedule, error = find_schedule(request, pk), ""
    if request.method == "POST":
        require_in_project(request, "leases.write", schedule.project)
        try:
            change_schedule(request, schedule)
        except ProblemError as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(request, _("{name} was changed.").format(name=schedule.name))
            return redirect("schedule", pk=schedule.pk)
    page = build_schedule_page(request, schedule, error)
    return render(request, "schedules/schedule.html", {"page": page}, status=409 if error else 200)


@tenant_page("leases.read", methods=GET_OR_POST)
def delete_schedule(request: PageRequest, pk: str) -> HttpResponse:
    """Delete a schedule, after a confirmation page."""
    schedule = find_schedule(request, pk)
    require_in_project(request, "leases.write", schedule.project)
    if request.method == "POST":
        schedule_records.delete_schedule(schedule, actor=request.actor, now=request.now)
        messages.success(request, _("{name} was deleted. Its leases stay.").format(name=schedule.name))
        return redirect("schedules")
    return render(request, "schedules/delete.html", {"schedule": schedule})


def change_schedule(request: PageRequest, schedule: LeaseSchedule) -> None:
    """Apply the pressed button: pause, resume, or save the times."""
    by: dict[str, Any] = {"actor": request.actor, "now": request.now}
    match request.POST.get("do", ""):
        case "pause":
            schedule_records.change_schedule(schedule, paused=True, **by)
        case "resume":
            schedule_records.change_schedule(schedule, paused=False, **by)
        case "save":
            cron = request.POST.get("cron", "")[:100]
            overlap = "allow" if "overlap" in request.POST else "skip"
            time_zone = request.POST.get("time_zone", "").strip()[:64]
            schedule_records.change_schedule(schedule, cron=cron, time_zone=time_zone, overlap=overlap, **by)
        case _other:
            raise InvalidValue("do", _("This action does not exist."), fix=_("Reload the page."))


def find_schedule(request: PageRequest, pk: str) -> LeaseSchedule:
    """Return a schedule, or raise ObjectNotFound if the visitor may not see it."""
    rows = LeaseSchedule.objects.filter(tenant=request.tenant, pk=pk).select_related("project")
    schedule = rows.first()
    if schedule is None or not request.roles.may("leases.read", schedule.project.path):
        raise ObjectNotFound(_("This schedule does not exist."), fix=_("Choose one from the list of schedules."))
    return schedule


def build_schedule_list_page(request: PageRequest) -> ScheduleListPage:
    """Read the schedules of the open project with their latest runs; three queries."""
    found = visible_schedules(request)
    listed = list_page(request, found, count=found.count())
    runs = ScheduledRun.objects.filter(schedule__in=[each.pk for each in listed.rows])
    latest = {run.schedule_id: run for run in runs.order_by("schedule", "-due_at").distinct("schedule")}
    rows = [ScheduleRow(each, next_times(each), latest.get(each.pk)) for each in listed.rows]
    return ScheduleListPage(
        listed=replace(listed, rows=rows),
        may_write=may_in_project(request, "leases.write"),
        call=api_examples.curl_list("/lease-schedules", request.scope, limit=API_PAGE_SIZE),
    )


def build_schedule_page(request: PageRequest, schedule: LeaseSchedule, error: str) -> SchedulePage:
    """Read what the page of one schedule shows."""
    runs = ScheduledRun.objects.filter(schedule=schedule).select_related("lease").order_by("-due_at")
    return SchedulePage(
        schedule=schedule,
        offering=Offering.objects.filter(pk=schedule.request["offering_id"]).first(),
        next_times=next_times(schedule),
        runs=list(runs[:LATEST_RUNS]),
        error=error,
        may_write=request.roles.may("leases.write", schedule.project.path),
        call=api_examples.curl_get(f"/lease-schedules/{schedule.pk}"),
    )


def next_times(schedule: LeaseSchedule) -> Sequence[datetime]:
    """Return the next due times; none while it is paused."""
    if schedule.next_at is None:
        return []
    later = times_after(schedule.cron, schedule.time_zone, schedule.next_at)
    return [schedule.next_at, *islice(later, NEXT_TIMES - 1)]


def visible_schedules(request: PageRequest) -> QuerySet[LeaseSchedule]:
    """Return the open project's schedules and those below."""
    rows = LeaseSchedule.objects.filter(tenant=request.tenant)
    if not request.scope.whole:
        rows = rows.filter(project__in=request.scope.projects().values("pk"))
    return rows.select_related("project").order_by("project__name", "name")
