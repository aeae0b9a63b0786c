"""Relocation plan pages: proposals with cost and benefit, and progress of accepted ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from broker.domain.lifecycle.relocation_states import CANCELLABLE_PLAN_STATES, RelocationPlanState
from broker.models import Cluster, Lease, Relocation, RelocationLogEntry, RelocationPlan
from broker.services.relocation import plan_decisions, plan_proposals
from broker.services.relocation.plan_proposals import DRAWN_QUEUED, DRAWN_RELOCATED
from web.portal.actions import operator_api_call
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    confirm_decision,
    find_in_scope,
    operator_page,
)

PLAN_LEGEND = (
    {"kind": "own-slice", "label": "moves"},
    {"kind": "new-slice", "label": "queued lease"},
    {"kind": "other-slice", "label": "stays"},
    {"kind": "free-slice", "label": "free"},
)
SLICE_KINDS = {0: "other-slice", DRAWN_RELOCATED: "own-slice", DRAWN_QUEUED: "new-slice"}
Span = tuple[int, int, str, str]  # first unit, units, kind, word


@dataclass(frozen=True)
class RelocationDrawing:
    """A GPU before and after, with the step number of each relocated slice."""

    name: str
    grid: int
    before: Sequence[Span]
    after: Sequence[Span]
    captions: tuple[str, str]


def find_plan(pk: str) -> RelocationPlan:
    rows = RelocationPlan.objects.select_related("cluster")
    return find_in_scope(rows, pk, _("Plan"), fix=_("Select it from the list of plans."))


def _plan_cells(each: RelocationPlan) -> tuple[object, ...]:
    relocations = cast("Any", each).count  # annotated
    return (
        *(each.pk, each.cluster_id, each.cluster.name, each.gpu_model_id, each.state, each.reason, relocations),
        *(each.cost_s, each.gain_milli, csv_time(each.proposed_at), csv_time(each.state_at), each.why),
    )


PLAN_LIST = OperatorList(
    name="relocation-plans",
    heads=("plan cluster cluster_name gpu_model state reason relocations cost_s gain_milli proposed_at state_at why"),
    cells=_plan_cells,
    at="proposed_at",
    states=(
        ListState("", gettext_lazy("All")),
        *(ListState(each.value, each.value.capitalize(), Q(state=each.value)) for each in RelocationPlanState),
    ),
    search=("reason", "cluster__name", "gpu_model__name", "pk"),
)


@operator_page("relocation_plans")
def list_plans(request: OperatorRequest) -> Any:
    """List proposed, running and finished plans."""
    lists = read_lists(request, PLAN_LIST)
    rows = RelocationPlan.objects.select_related("cluster").annotate(count=Count("moves"))
    rows = rows.order_by("-proposed_at", "-id")
    if wants_csv(request):
        return lists.csv((PLAN_LIST, lambda: rows))
    context = {
        "listing": lists.read(PLAN_LIST, rows),
        "filter": lists.count_states(PLAN_LIST, RelocationPlan.objects.all()),
        "open": RelocationPlan.objects.open().count(),
        "calls": [operator_api_call(_("Plans, newest first"), "ops/relocation-plans", sort="-proposed_at", limit=500)],
    }
    return render(request, "operators/relocations/plans.html", context)


@operator_page("relocation_plan")
def show_plan(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show one plan: reason, leases, price, GPUs before and after, and its steps."""
    return render(request, "operators/relocations/plan.html", {"page": build_plan_page(find_plan(pk))})


@dataclass(frozen=True, slots=True)
class RelocationPlanPage:
    """One plan with its relocations, its GPUs before and after, and its steps."""

    plan: RelocationPlan
    relocations: list[Relocation]
    room_for: Lease | None
    entries: QuerySet[RelocationLogEntry]

    @property
    def gpus(self) -> list[RelocationDrawing]:
        return [_draw_gpu(gpu, self.relocations) for gpu in self.plan.gpus]

    @property
    def keys(self) -> list[dict[str, str]]:
        return [key for key in PLAN_LEGEND if self.plan.room_for or key["kind"] != "new-slice"]

    @property
    def gain_note(self) -> str:
        return _("for a queued lease") if self.plan.room_for else _("available as whole GPUs again")

    @property
    def proposed(self) -> bool:
        return self.plan.state == RelocationPlanState.PROPOSED

    @property
    def accepted(self) -> bool:
        return self.plan.state == RelocationPlanState.ACCEPTED

    @property
    def cancellable(self) -> bool:
        return self.plan.state in {state.value for state in CANCELLABLE_PLAN_STATES}

    @property
    def in_progress(self) -> bool:
        return not self.plan.is_over and not self.proposed

    @property
    def finished_count(self) -> int:
        return sum(move.is_over for move in self.relocations)

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(_("This plan with its relocations and steps"), f"ops/relocation-plans/{self.plan.pk}")
        ]


def build_plan_page(found: RelocationPlan) -> RelocationPlanPage:
    """Read the relocations and the history of a plan."""
    moves = Relocation.objects.filter(plan=found).order_by("n")
    return RelocationPlanPage(
        plan=found,
        relocations=list(moves.select_related("lease", "tenant", "from_gpu__node", "to_gpu__node")),
        room_for=Lease.objects.select_related("tenant").filter(pk=found.room_for).first(),
        entries=RelocationLogEntry.objects.filter(plan=found).order_by("-seq"),
    )


def _draw_gpu(drawn: dict[str, object], moves: Sequence[Relocation]) -> RelocationDrawing:
    gpu, grid, name = drawn["gpu"], int(str(drawn["grid"])), str(drawn["name"])
    leaves = {move.from_start: move.n for move in moves if move.from_gpu_id == gpu}
    comes = {move.to_start: move.n for move in moves if move.to_gpu_id == gpu}
    before, after = _slice_spans(drawn["before"], leaves, grid), _slice_spans(drawn["after"], comes, grid)
    return RelocationDrawing(
        name, grid, before, after, (_drawing_text(name, "before", before), _drawing_text(name, "after", after))
    )


def _slice_spans(held: object, steps: dict[int, int], grid: int) -> list[Span]:
    spans: list[Span] = []
    end = 0
    for start, size, what in held:  # type: ignore[attr-defined]  # as JSON has it
        if start > end:
            spans.append((end, start - end, "free-slice", ""))
        spans.append((start, size, SLICE_KINDS[what], str(steps.get(start, "")) if what == DRAWN_RELOCATED else ""))
        end = start + size
    return [*spans, (end, grid - end, "free-slice", "")] if end < grid else spans


def _drawing_text(name: str, when: str, spans: Sequence[Span]) -> str:
    held = sum(size for _, size, kind, _ in spans if kind != "free-slice")
    return (
        _("{name} {when}: {held} units held").format(name=name, when=when, held=held)
        if held
        else _("{name} {when}: empty").format(name=name, when=when)
    )


@operator_page("relocation_plans.propose", methods=SAFE_OR_POST)
def propose_plans(request: OperatorRequest) -> HttpResponse:
    """Queue planning of every cluster."""
    clusters = list(Cluster.objects.order_by("name"))

    def act(_why: str) -> str:
        for cluster in clusters:
            plan_proposals.request_planning(cluster, actor=request.actor, now=request.now)
        return _("Planning started. Proposals appear here shortly.")

    step = Confirmation(
        title=_("Find relocations?"),
        verb=_("Find relocations"),
        back=reverse("ops-relocation-plans"),
        lines=(
            _("Searches for relocations that place queued leases, then for GPUs that can be emptied."),
            _("Only leases that allow relocation are included. Nothing changes before you accept the plan."),
        ),
        needs_reason=False,
    )
    return confirm_action(request, step, act)


def _plan_confirmation(pk: str, title: str, verb: str, *lines: str, danger: bool = False) -> Confirmation:
    hint = _("Recorded in the plan's history and in the audit log.")
    return Confirmation(title, verb, reverse("ops-relocation-plan", args=[pk]), lines, danger, hint=hint)


@operator_page("relocation_plan.accept", methods=SAFE_OR_POST)
def accept_plan(request: OperatorRequest, pk: str) -> HttpResponse:
    """Accept a plan: notify the tenants, and start once the notice is over."""
    step = _plan_confirmation(
        pk,
        _("Accept the plan and relocate its leases?"),
        _("Accept plan"),
        _("Tenants are notified immediately. Relocations start after their notice period."),
        _("Leases are stopped and restarted on their new GPUs one after the other. Downtime is free."),
        _("A lease that cannot start on its new GPU returns to the old one."),
    )
    done = _("Plan accepted. Tenants are notified.")
    return confirm_decision(request, find_plan(pk), step, plan_decisions.accept_plan, done)


@operator_page("relocation_plan.decline", methods=SAFE_OR_POST)
def decline_plan(request: OperatorRequest, pk: str) -> HttpResponse:
    """Decline a proposed plan."""
    step = _plan_confirmation(pk, _("Decline the plan?"), _("Decline plan"), _("No lease is relocated."))
    return confirm_decision(request, find_plan(pk), step, plan_decisions.decline_plan, _("Plan declined."))


@operator_page("relocation_plan.cancel", methods=SAFE_OR_POST)
def cancel_plan(request: OperatorRequest, pk: str) -> HttpResponse:
    """Cancel an accepted plan."""
    step = _plan_confirmation(
        pk,
        _("Cancel the rest of the plan?"),
        _("Cancel plan"),
        _("Relocations in progress are rolled back. Finished relocations stay."),
        danger=True,
    )
    return confirm_decision(request, find_plan(pk), step, plan_decisions.cancel_plan, _("Plan cancelled."))
