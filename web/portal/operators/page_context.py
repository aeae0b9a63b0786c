"""Request context and confirmation page of the operators' pages.

They are for staff only, read across tenants, and use one moment per request.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from broker.services.leases.lifecycle import eviction
from broker.services.reports.invariant_checks import InvariantResult
from ports import clock
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import staff_scope
from web.http.middleware import set_rejection_reason
from web.portal.authentication import POST as POST
from web.portal.authentication import SAFE, SAFE_HTTP_METHODS, operator_required
from web.portal.authentication import SAFE_OR_POST as SAFE_OR_POST
from web.portal.kept_forms import show_kept_form
from web.portal.operators.list_filters import ListFilter

View = Callable[..., HttpResponse]
Decision = Callable[..., object]
FoundRow = TypeVar("FoundRow", bound=Model)
DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


class OperatorRequest(HttpRequest):
    """Request that an operators' page receives."""

    actor: Actor
    now: datetime
    sees_all: bool  # a page that only reads has staff access; a change has not
    needs_attention: int  # set by a page that counted what needs attention, for the bell of the layout
    list_filter: ListFilter | None  # set by a page with lists
    integrity_checks: Sequence[InvariantResult]  # set by a page that read the checks, so that the layout need not


def operator_page(action: str, *, methods: Sequence[str] = SAFE, repeats: bool = False) -> Callable[[View], View]:
    """Decorate a page for operators; `repeats` marks one that polls."""

    def wrap(view: View) -> View:
        @operator_required(action, methods=methods, repeats=repeats)
        @wraps(view)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            request.now, request.sees_all = clock.now(), request.method in SAFE_HTTP_METHODS
            request.list_filter = None
            response = view(request, *args, **kwargs)
            if request.list_filter is not None and request.list_filter.errors and response.status_code == 200:
                response.status_code = 400
            return response

        return inside  # type: ignore[return-value]

    return wrap


@dataclass(frozen=True)
class Confirmation:
    """A confirmation page: its title, verb, consequences and return URL."""

    title: str
    verb: str
    back: str
    lines: Sequence[str] = ()
    danger: bool = False
    needs_reason: bool = True
    hint: str = ""
    option: str = ""  # what a ticked box `option` says; ticked at first
    decline: str = ""  # words of the link back, where "Cancel" could mean the action itself


def confirm_action(request: OperatorRequest, step: Confirmation, act: Callable[[str], str]) -> HttpResponse:
    """Show a confirmation page; once confirmed, act and show the returned message."""
    return form_page(
        request,
        "operators/confirmation.html",
        lambda _: step,
        lambda: act(request.POST.get("reason", "")),
        back=step.back,
    )


def form_page(
    request: OperatorRequest,
    template: str,
    build: Callable[[ProblemError | None], object],
    change: Callable[[], str],
    *,
    back: str,
) -> HttpResponse:
    """Show a page with a form; a POST changes something and says so.

    A refusal is shown on the same page and rolls the request back.
    """
    refusal: ProblemError | None = None
    if request.method == "POST":
        try:
            messages.success(request, change())
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
        else:
            return redirect(back)
    return render_refused(request, template, build, refusal)


def render_refused(
    request: OperatorRequest,
    template: str,
    build: Callable[[ProblemError | None], object],
    refusal: ProblemError | None,
) -> HttpResponse:
    """Render a page beside the refusal of its form, if it was refused."""
    if refusal:
        show_kept_form(request, getattr(refusal, "field", ""))
    with staff_scope():
        context = {"page": build(refusal), "refusal": refusal}
        return render(request, template, context, status=refusal.status if refusal else 200)


def confirm_decision(
    request: OperatorRequest, about: object, step: Confirmation, act: Decision, done: str
) -> HttpResponse:
    """Show a confirmation page that asks for a reason, then call a service with it."""

    def do(why: str) -> str:
        act(about, why=eviction.clean_reason(why), actor=request.actor, now=request.now)
        return done

    return confirm_action(request, step, do)


def find_row(rows: QuerySet[FoundRow], pk: str, name: str, *, fix: str) -> FoundRow:
    """Return a row of any tenant, or raise ObjectNotFound."""
    with staff_scope():
        return find_in_scope(rows, pk, name, fix=fix)


def find_in_scope(rows: QuerySet[FoundRow], pk: str, name: str, *, fix: str) -> FoundRow:
    """Return a row that this page may read, or raise ObjectNotFound."""
    found = rows.filter(pk=pk).first()
    if found is None:
        raise ObjectNotFound(_("{name} {pk!r} was not found.").format(name=name, pk=pk), fix=fix)
    return found


def parse_seen_amount(text: str) -> int:
    """Return the amount that the page had shown, or raise InvalidValue."""
    if not DIGITS.fullmatch(text):
        raise InvalidValue("seen", _("The form is incomplete."), fix=_("Reload the page."))
    return int(text)
