"""SSH key pages of an account: add, list and delete public keys."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from ports import clock
from tenants.domain.ssh_keys import key_comment, key_type
from tenants.models import SshKey
from tenants.services import ssh_keys
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from web.http.errors import refusal_page
from web.portal.action_addresses import allow_methods
from web.portal.actions import api_call, find_or_missing
from web.portal.authentication import enter_tenant_of_session, sign_in_required
from web.portal.confirmation import ActionConfirmation, confirmation_page
from web.portal.page_context import refuse_nul


@dataclass(frozen=True, slots=True)
class SshKeyRow:
    """One saved key, with what its line says."""

    key: SshKey

    @property
    def type(self) -> str:
        return key_type(self.key.public_key)

    @property
    def comment(self) -> str:
        return key_comment(self.key.public_key)


@dataclass(frozen=True, slots=True)
class SshKeyPage:
    """A user's saved keys, with the form that adds one."""

    rows: list[SshKeyRow]
    name: str
    public_key: str
    errors: dict[str, str]
    most: int
    call: str


@allow_methods(["GET", "POST"])
@sign_in_required
def list_ssh_keys(request: Any) -> HttpResponse:
    """List the user's keys; a POST adds one."""
    enter_tenant_of_session(request)  # for the layout; users without a tenant have keys too
    errors = dict[str, str]()
    if request.method == "POST":
        try:
            refuse_nul(request, {})
            key = ssh_keys.add_key(
                name=request.POST.get("name", ""),
                public_key=request.POST.get("public_key", ""),
                actor=acting_user(request),
                now=clock.now(),
            )
        except ProblemError as refusal:
            field = getattr(refusal, "field", "") or "public_key"
            errors = {field: f"{refusal.detail} {refusal.fix.text}"}
        else:
            messages.success(request, _("{name} was saved. Choose it when you launch.").format(name=key.name))
            return redirect("ssh-keys")
    page = build_ssh_key_page(request, errors)
    return render(request, "ssh_keys/ssh_keys.html", {"page": page}, status=400 if errors else 200)


def build_ssh_key_page(request: Any, errors: dict[str, str]) -> SshKeyPage:
    """Read the user's keys.

    What was typed is repeated unless it may be a private key.
    """
    typed = {name: request.POST.get(name, "")[:10_000] for name in ("name", "public_key")}
    if any("PRIVATE" in text for text in typed.values()):
        typed = {"name": "", "public_key": ""}
    return SshKeyPage(
        rows=[SshKeyRow(each) for each in ssh_keys.keys_of(acting_user(request))],
        **typed,
        errors=errors,
        most=ssh_keys.MAX_KEYS,
        call=api_call("ssh-keys"),
    )


@allow_methods(["GET", "POST"])
@sign_in_required
def delete_ssh_key(request: Any, pk: str) -> HttpResponse:
    """Delete one of the user's keys, after a confirmation page."""
    enter_tenant_of_session(request)
    actor = acting_user(request)
    try:
        refuse_nul(request, {"pk": pk})
        key = find_or_missing(ssh_keys.keys_of(actor), pk)
        if request.method != "POST":
            title = _("Delete {name}?").format(name=key.name)
            effect = _("New leases cannot choose it. Leases that have it keep it until they end.")
            page = ActionConfirmation(title, _("Delete key"), reverse("ssh-keys"), (effect,))
            return confirmation_page(request, page)
        ssh_keys.delete_key(key, actor=actor, now=clock.now())
    except ProblemError as refusal:
        return refusal_page(request, refusal)
    messages.success(request, _("{name} was deleted. Leases launched with it keep it.").format(name=key.name))
    return redirect("ssh-keys")


def acting_user(request: Any) -> Actor:
    """Return the signed-in user as an actor, also without a tenant."""
    return Actor("user", request.user.pk, request.user.email, getattr(request, "id", ""))
