"""Confirmation page of a tenant's irreversible or costly actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render


@dataclass(frozen=True, slots=True)
class ActionConfirmation:
    """What happens, and the words of the button that does it."""

    title: str
    verb: str
    back: str  # URL of the page the action is on
    lines: Sequence[str]


def confirmation_page(request: Any, page: ActionConfirmation) -> HttpResponse:
    """Ask before acting; the form posts to the same address."""
    return render(request, "confirmation.html", {"page": page})
