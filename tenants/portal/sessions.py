"""Coming in: by invitation, with a new tenant, and from one project to another."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from ports import clock
from tenants.domain.roles import IN_WORDS
from tenants.portal.doors import (
    SESSION_NO_TENANT,
    SESSION_PROJECT,
    SESSION_TENANT,
    enter,
    in_tenant,
    signed_in,
)
from tenants.portal.forms import TenantForm
from tenants.services import invitations, tenants
from tenants.services.actors import Actor

SESSION_JOIN = "join"  # the invitation somebody came with, until they have signed in


def actor_of(request: Any) -> Actor:
    return Actor("user", request.user.pk, request.user.email, getattr(request, "id", ""))


def home() -> str:
    """Return the address of the first page there is."""
    for name in ("home", "projects"):
        try:
            return reverse(name)
        except NoReverseMatch:
            continue
    raise LookupError("no page to come home to")


def after(request: Any, *, otherwise: str) -> str:
    """Return the `next` of a form, if it stays on this host."""
    wanted = request.POST.get("next", "")
    good = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if good and wanted.startswith("/") else otherwise


@require_POST
@in_tenant()
def switch(request: Any) -> HttpResponse:
    """Open another project, or another tenant the visitor belongs to."""
    wanted = request.POST.get("project", "")
    if wanted in {ident for ident, _ in request.visitor.tenants}:
        request.session[SESSION_TENANT] = wanted
        request.session.pop(SESSION_PROJECT, None)
        return redirect(home())  # the page one was on belongs to the tenant one left
    if wanted in {p.pk for p in request.projects}:
        request.session[SESSION_TENANT] = request.tenant.pk
        request.session[SESSION_PROJECT] = wanted
    return redirect(after(request, otherwise=home()))


@require_http_methods(["GET", "POST"])
def join(request: Any, secret: str) -> HttpResponse:
    """Show what an invitation offers, and accept it."""
    now = clock.now()
    offer = invitations.look(secret, now=now)
    if not request.user.is_authenticated:
        request.session[SESSION_JOIN] = secret
    elif request.method == "POST":
        member = invitations.accept(secret, user=request.user, actor=actor_of(request), now=now)
        request.session.pop(SESSION_JOIN, None)
        request.session.pop(SESSION_NO_TENANT, None)
        request.session[SESSION_TENANT] = member.tenant_id
        if member.project_id:
            request.session[SESSION_PROJECT] = member.project_id
        return redirect(home())
    told = {"offer": offer, "in_words": IN_WORDS[offer.role], "secret": secret}
    answer = render(request, "tenants/join.html", told)
    answer["Cache-Control"] = "no-store"  # the address is a secret
    return answer


@require_http_methods(["GET", "POST"])
@signed_in
def start(request: Any) -> HttpResponse:
    """Make a tenant of one's own: for people who belong to none, or want another."""
    if request.user.is_staff and request.method == "GET" and not enter(request):
        request.session[SESSION_NO_TENANT] = True
        try:
            return redirect(reverse("control-room"))
        except NoReverseMatch:
            pass
    form = TenantForm(request.POST or None, initial={"name": request.user.get_short_name()})
    if request.method == "POST" and form.is_valid():
        tenant, _ = tenants.create(
            name=form.cleaned_data["name"],
            time_zone=form.cleaned_data["time_zone"],
            owner=request.user,
            actor=actor_of(request),
            now=clock.now(),
        )
        request.session[SESSION_TENANT] = tenant.pk
        request.session.pop(SESSION_PROJECT, None)
        request.session.pop(SESSION_NO_TENANT, None)
        return redirect(home())
    return render(request, "tenants/start.html", {"form": form})
