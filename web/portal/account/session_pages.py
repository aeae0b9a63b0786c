"""Pages that join by invitation, create a tenant, and switch projects."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from billing.services.new_tenants import tenant_creation
from ports import clock
from tenants.domain.roles import ROLE_DESCRIPTIONS
from tenants.models import SignUp, User
from tenants.services import invitations, sign_ups
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.sign_ups import SignUpClosed
from web.http.middleware import set_rejection_reason
from web.portal.account.pending_invitations import SESSION_JOIN
from web.portal.account.sign_up import client_address
from web.portal.account.tenant_fields import TenantFieldsForm, trial_offers, wanted_tenant
from web.portal.authentication import (
    POST,
    SESSION_NO_TENANT,
    SESSION_PROJECT,
    SESSION_TENANT_KEY,
    enter_tenant_of_session,
    sign_in_required,
    tenant_required,
)


def user_actor(request: Any) -> Actor:
    return Actor("user", request.user.pk, request.user.email, getattr(request, "id", ""))


def home_url() -> str:
    """Return the URL of the first page there is."""
    for name in ("home", "projects"):
        try:
            return reverse(name)
        except NoReverseMatch:
            continue
    raise LookupError("no page to return to")


def safe_next_url(request: Any, *, otherwise: str) -> str:
    """Return the form's `next` URL if it stays on this host."""
    wanted = request.POST.get("next", "")
    good = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if good and wanted.startswith("/") else otherwise


@tenant_required(methods=POST)
def switch_project(request: Any) -> HttpResponse:
    """Switch to another project, or to another tenant of the visitor."""
    wanted = request.POST.get("project", "")
    if wanted in {ident for ident, _ in request.visitor.tenants}:
        request.session[SESSION_TENANT_KEY] = wanted
        request.session.pop(SESSION_PROJECT, None)
        return redirect(home_url())  # the previous page belongs to the tenant just left
    if wanted in {p.pk for p in request.projects}:
        request.session[SESSION_TENANT_KEY] = request.tenant.pk
        request.session[SESSION_PROJECT] = wanted
    return redirect(safe_next_url(request, otherwise=home_url()))


@require_http_methods(["GET", "POST"])
def join_by_invitation(request: Any, secret: str) -> HttpResponse:
    """Show an invitation; a POST accepts it."""
    now = clock.now()
    offer = invitations.find_offer(secret, now=now)
    if not request.user.is_authenticated:
        request.session[SESSION_JOIN] = secret
    elif request.method == "POST":
        member = invitations.accept(secret, user=request.user, actor=user_actor(request), now=now)
        request.session.pop(SESSION_JOIN, None)
        request.session.pop(SESSION_NO_TENANT, None)
        request.session[SESSION_TENANT_KEY] = member.tenant_id
        if member.project_id:
            request.session[SESSION_PROJECT] = member.project_id
        return redirect(home_url())
    fits = not offer.needs_invited_address or (
        request.user.is_authenticated and invitations.has_verified_address(request.user, offer.email)
    )
    context = {"offer": offer, "fits": fits, "in_words": ROLE_DESCRIPTIONS[offer.role], "secret": secret}
    answer = render(request, "account/join.html", context)
    answer["Cache-Control"] = "no-store"  # the URL has a secret
    return answer


@require_http_methods(["GET", "POST"])
@sign_in_required
def create_own_tenant(request: Any) -> HttpResponse:
    """Create a tenant: for people who belong to none, or want another."""
    if request.user.is_staff and request.method == "GET" and not enter_tenant_of_session(request):
        request.session[SESSION_NO_TENANT] = True
        try:
            return redirect(reverse("control-room"))
        except NoReverseMatch:
            pass
    form = TenantFieldsForm(request.POST or None, now=clock.now(), initial=_initial_tenant(request.user))
    refusal = _why_closed(request.user)
    if request.method == "POST" and form.is_valid():
        try:
            tenant = tenant_creation.found_tenant(
                wanted_tenant(form.cleaned_data),
                user=request.user,
                ip_address=client_address(request),
                actor=user_actor(request),
                now=clock.now(),
            )
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
        else:
            sign_ups.take_sign_up(request.user)
            request.session[SESSION_TENANT_KEY] = tenant.pk
            request.session.pop(SESSION_PROJECT, None)
            request.session.pop(SESSION_NO_TENANT, None)
            return redirect(home_url())
    context = {"form": form, "refusal": refusal, "trial_offers": trial_offers(clock.now())}
    status = refusal.status if refusal and request.method == "POST" else 200
    return render(request, "account/create_tenant.html", context, status=status)


def _initial_tenant(user: User) -> dict[str, str]:
    """Return what the form starts with: what was refused at sign-up."""
    asked = SignUp.objects.filter(user=user).first()
    if asked is None:
        return {"organisation": user.get_short_name()}
    names = ("organisation", "country", "currency", "time_zone")
    return {name: getattr(asked, name) for name in names}


def _why_closed(user: User) -> ProblemError | None:
    try:
        sign_ups.require_sign_up_open(user.email)
    except SignUpClosed as closed:
        return closed
    return None
