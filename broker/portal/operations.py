"""What every page of the operators stands on: staff only, read across tenants, at one moment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from broker.services.leases import evicting
from broker.services.proofs import Proof
from ports import clock
from tenants.portal.doors import SAFE, in_operations
from tenants.portal.refused import because
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_staff

View = Callable[..., HttpResponse]
Decision = Callable[..., object]
ASKS = require_http_methods(["GET", "HEAD", "POST"])


class OpsRequest(HttpRequest):
    """What a page of the operators gets."""

    actor: Actor
    now: datetime
    sees_all: bool  # the page itself runs as staff; a change does not
    proofs: Sequence[Proof]  # where the page has checked them, so that its frame need not


def page(action: str, *, repeats: bool = False) -> Callable[[View], View]:
    """Let a page be seen by operators, at one moment; `repeats` when it asks again by itself."""

    def wrap(view: View) -> View:
        @in_operations(action, repeats=repeats)
        @wraps(view)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            request.now, request.sees_all = clock.now(), request.method in SAFE
            return view(request, *args, **kwargs)

        return inside  # type: ignore[return-value]

    return wrap


@dataclass(frozen=True)
class Step:
    """A change that is asked about first: what it is called, what it does, where it leads back to."""

    title: str
    verb: str
    back: str
    lines: Sequence[str] = ()
    danger: bool = False
    needs_reason: bool = True
    hint: str = ""


def ask(request: OpsRequest, step: Step, act: Callable[[str], str]) -> HttpResponse:
    """Show what a change would do; once it is confirmed, do it and say what `act` says.

    A refusal is shown where it was asked, and undoes the request.
    """
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            messages.success(request, act(request.POST.get("reason", "")))
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect(step.back)
    told = {"step": step, "refusal": refusal, "reason": request.POST.get("reason", "")}
    with as_staff():
        return render(request, "ops/confirm.html", told, status=refusal.status if refusal else 200)


def decide(request: OpsRequest, about: object, step: Step, act: Decision, done: str) -> HttpResponse:
    """Ask for a reason, and let a service decide about something for it."""

    def do(why: str) -> str:
        act(about, why=evicting.reason(why), actor=request.actor, now=request.now)
        return done

    return ask(request, step, do)
