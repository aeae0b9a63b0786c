"""Pages that explain the API's problem types."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from web.portal.problems.problem_types import PROBLEM_GROUPS, PROBLEM_TYPES


@require_safe
def list_problem_types(request: HttpRequest) -> HttpResponse:
    """List every problem type."""
    groups = [(heading, list(group.items())) for heading, group in PROBLEM_GROUPS.items()]
    return render(request, "problems/list.html", {"groups": groups})


@require_safe
def show_problem_type(request: HttpRequest, code: str) -> HttpResponse:
    """Explain one problem type."""
    if code not in PROBLEM_TYPES:
        raise Http404
    return render(request, "problems/page.html", {"code": code, "problem": PROBLEM_TYPES[code]})
