"""Plans of moves: what is proposed, what it costs and wins, and how far one is that was accepted."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker.domain.moves import CANCELLABLE, PlanState
from broker.models import Cluster, Lease, Move, MoveEntry, MovePlan
from broker.portal.operations import ASKS, OpsRequest, Step, ask, decide, page
from broker.services.moving import deciding, proposing
from broker.services.moving.proposing import GOES_THERE, MOVES
from tenants.portal.acts import ops_call, part
from tenants.services.refusals import Missing

KEYS = (
    {"kind": "own", "label": "moves"},
    {"kind": "new", "label": "who waits"},
    {"kind": "oth", "label": "stays"},
    {"kind": "fre", "label": "free"},
)
SHOWN_AS = {0: "oth", MOVES: "own", GOES_THERE: "new"}
Span = tuple[int, int, str, str]  # first unit, units, kind, word


@dataclass(frozen=True)
class Drawn:
    """A card before and after, the slices that move with the number of their step."""

    name: str
    grid: int
    before: Sequence[Span]
    after: Sequence[Span]
    told: tuple[str, str]


def plan_or_missing(pk: str) -> MovePlan:
    found = MovePlan.objects.select_related("cluster").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no plan {pk!r}.", fix="Look at the list of plans.")
    return found


@require_safe
@page("plans")
def plans(request: OpsRequest) -> HttpResponse:
    """Show what is proposed and under way, and what became of the rest."""
    rows = MovePlan.objects.select_related("cluster").annotate(count=Count("moves"))
    listed = part(request, rows.order_by("-proposed_at", "-id"), count=MovePlan.objects.count())
    told = {
        "part": listed,
        "open": MovePlan.objects.open().count(),
        "calls": [ops_call("Plans, the latest first", "ops/plans", sort="-proposed_at", limit=500)],
    }
    return render(request, "ops/plans.html", told)


@require_safe
@page("plan")
def plan(request: OpsRequest, pk: str) -> HttpResponse:
    """Show one plan: why, which leases, at what price, its cards before and after, and every step it took."""
    found = plan_or_missing(pk)
    moves = list(
        Move.objects.filter(plan=found)
        .select_related("lease", "tenant", "from_gpu__node", "to_gpu__node")
        .order_by("n")
    )
    told = {
        "plan": found,
        "moves": moves,
        "cards": [_drawn(card, moves) for card in found.cards],
        "keys": KEYS if found.room_for else [key for key in KEYS if key["kind"] != "new"],
        "room_for": Lease.objects.select_related("tenant").filter(pk=found.room_for).first(),
        "won": "for who waits" if found.room_for else "that can be sold whole again",
        "entries": MoveEntry.objects.filter(plan=found).order_by("-seq"),
        "proposed": found.state == PlanState.PROPOSED,
        "waits": found.state == PlanState.ACCEPTED,
        "cancellable": found.state in {state.value for state in CANCELLABLE},
        "live": not found.over and found.state != PlanState.PROPOSED,
        "over": sum(move.over for move in moves),
        "calls": [ops_call("This plan with its moves and steps", f"ops/plans/{found.pk}")],
    }
    return render(request, "ops/plan.html", told)


def _drawn(card: dict[str, object], moves: Sequence[Move]) -> Drawn:
    gpu, grid, name = card["gpu"], int(str(card["grid"])), str(card["name"])
    leaves = {move.from_start: move.n for move in moves if move.from_gpu_id == gpu}
    comes = {move.to_start: move.n for move in moves if move.to_gpu_id == gpu}
    before, after = _spans(card["before"], leaves, grid), _spans(card["after"], comes, grid)
    return Drawn(name, grid, before, after, (_words(name, "before", before), _words(name, "after", after)))


def _spans(held: object, steps: dict[int, int], grid: int) -> list[Span]:
    spans: list[Span] = []
    end = 0
    for start, size, what in held:  # type: ignore[attr-defined]  # as JSON has it
        if start > end:
            spans.append((end, start - end, "fre", ""))
        spans.append((start, size, SHOWN_AS[what], str(steps.get(start, "")) if what == MOVES else ""))
        end = start + size
    return [*spans, (end, grid - end, "fre", "")] if end < grid else spans


def _words(name: str, when: str, spans: Sequence[Span]) -> str:
    held = sum(size for _, size, kind, _ in spans if kind != "fre")
    return f"{name} {when}: {held} units held" if held else f"{name} {when}: empty"


@ASKS
@page("plans.propose")
def propose(request: OpsRequest) -> HttpResponse:
    """Have every cluster planned by a worker."""
    clusters = list(Cluster.objects.order_by("name"))

    def act(_: str) -> str:
        for cluster in clusters:
            proposing.ask_for(cluster, actor=request.actor, now=request.now)
        return "It is being planned; what is worth moving appears here in a moment."

    step = Step(
        title="Propose a plan now?",
        verb="Propose a plan",
        back=reverse("ops-plans"),
        lines=(
            "Looks for room for whoever waits, then for cards that can be emptied by moving what lies on them.",
            "Only leases whose tenants allow it are moved. Nothing moves before you accept the plan.",
        ),
        needs_reason=False,
    )
    return ask(request, step, act)


def _asked(pk: str, title: str, verb: str, *lines: str, danger: bool = False) -> Step:
    hint = "Stands in the plan's history and in the audit trail."
    return Step(title, verb, reverse("ops-plan", args=[pk]), lines, danger, hint=hint)


@ASKS
@page("plan.accept")
def accept(request: OpsRequest, pk: str) -> HttpResponse:
    """Tell the tenants, and carry a plan out when their notice is over."""
    step = _asked(
        pk,
        "Accept the plan and move its leases?",
        "Accept the plan",
        "Their tenants are told at once, and nothing is moved before their notice is over.",
        "Each program is stopped and started on its next card, one after the other. Nobody is charged in between.",
        "A lease whose next card does not take it goes back to where it was.",
    )
    done = "The plan is accepted; its tenants have been told."
    return decide(request, plan_or_missing(pk), step, deciding.accept, done)


@ASKS
@page("plan.decline")
def decline(request: OpsRequest, pk: str) -> HttpResponse:
    """Put a proposal away."""
    step = _asked(pk, "Decline the plan?", "Decline the plan", "Every lease stays where it is.")
    return decide(request, plan_or_missing(pk), step, deciding.decline, "The plan is declined.")


@ASKS
@page("plan.cancel")
def cancel(request: OpsRequest, pk: str) -> HttpResponse:
    """Call off a plan that was accepted."""
    step = _asked(
        pk,
        "Cancel what is left of the plan?",
        "Cancel the plan",
        "A lease that is under way goes back to where it was; those that have moved stay where they are now.",
        danger=True,
    )
    return decide(request, plan_or_missing(pk), step, deciding.cancel, "The plan is called off.")
