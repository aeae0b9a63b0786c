"""Help, and the API reference as a page."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from web.http import openapi
from web.portal.authentication import sign_in_required

OPERATORS_PREFIX = "/api/v1/ops/"


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation of the API: method, address and what it does."""

    method: str
    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """The operations on one noun."""

    noun: str
    operations: tuple[ApiOperation, ...]


@dataclass(frozen=True, slots=True)
class ApiReferencePage:
    """Every operation that the visitor could call, by noun."""

    groups: list[ApiGroup]

    @property
    def count(self) -> int:
        return sum(len(group.operations) for group in self.groups)


@sign_in_required
def show_help(request: HttpRequest) -> HttpResponse:
    """Show how to launch, what is billed, and where to read on."""
    return render(request, "help/help.html")


@sign_in_required
def show_api_reference(request: HttpRequest) -> HttpResponse:
    """List the operations of the API; those of operators for operators only."""
    staff = bool(getattr(request.user, "is_staff", False))
    groups = [each for each in api_groups() if staff or not each.noun.startswith("ops/")]
    return render(request, "help/api_reference.html", {"page": ApiReferencePage(groups)})


@cache
def api_groups() -> tuple[ApiGroup, ...]:
    """Return the operations by noun, as the OpenAPI description lists them."""
    paths: dict[str, dict[str, Any]] = json.loads(openapi.openapi_document())["paths"]
    found: dict[str, list[ApiOperation]] = {}
    for path, address in sorted(paths.items()):
        for method in openapi.METHODS:
            if method in address:
                found.setdefault(_noun_of(path), []).append(
                    ApiOperation(method.upper(), path, _first_sentence(address[method].get("description", "")))
                )
    nouns = sorted(found, key=lambda noun: (noun.startswith("ops/"), noun))
    return tuple(ApiGroup(noun, tuple(found[noun])) for noun in nouns)


def _noun_of(path: str) -> str:
    parts = path.removeprefix("/api/v1/").split("/")
    return "/".join(parts[:2]) if path.startswith(OPERATORS_PREFIX) else parts[0]


def _first_sentence(text: str) -> str:
    return text.strip().split("\n")[0].partition(". ")[0].rstrip(".")
