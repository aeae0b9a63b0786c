"""The tokens page: one's own, and for those who lead everybody's. What tokens may spend is added a floor above."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from ports import clock
from tenants.domain.roles import Role
from tenants.models import ApiToken, ServiceAccount
from tenants.portal import once, team
from tenants.portal.acts import act, call, find, part
from tenants.portal.doors import in_tenant
from tenants.portal.forms import TokenForm
from tenants.services import members, tokens
from tenants.services.permissions import project_for
from tenants.services.refusals import Invalid

MOST = 500
MADE = (
    "This form was sent before: its token was made and shown once. If it is lost, revoke it and make another."
)


def seen(request: Any) -> Any:
    """Leave the visitor's own tokens, or all for those who lead the tenant."""
    rows = ApiToken.objects.filter(tenant=request.tenant).select_related("user", "service_account", "project")
    return rows if request.roles.may("tokens.all") else rows.filter(user_id=request.actor.id)


def machines(request: Any) -> dict[str, ServiceAccount]:
    """Return the service accounts for which the visitor may make tokens."""
    rows = ServiceAccount.objects.filter(tenant=request.tenant, closed_at=None).select_related("project")
    mine = (a for a in rows if request.roles.may_give(Role(a.role), members.node(a.project)))
    return {account.pk: account for account in mine}


Made = tuple[ApiToken, str]


def page(
    request: Any,
    *,
    form_of: type[TokenForm],
    make: Callable[[Any, Any, dict[str, ServiceAccount]], Made],
    tell: Callable[[Any, Iterable[ApiToken], datetime], None],
) -> HttpResponse:
    """Show the tokens; make one and show its secret, this once.

    `make` makes what a form of `form_of` asks for, and `tell` notes on each token what else its row says.
    """
    accounts, made, text, status = machines(request), None, "", 200
    form = form_of(
        request.POST or None,
        projects=request.projects,
        accounts=[(a.pk, a.name) for a in accounts.values()],
    )
    now = clock.now()
    if request.method == "POST":
        if once.before(this := once.sent(request)):
            messages.warning(request, MADE)
            return redirect("tokens")
        if form.is_valid():
            try:
                made, text = make(request, form, accounts)
            except Invalid as refusal:
                form.add_error(None, refusal.detail)
            else:
                once.done(this, now=now)
        status = 200 if made else 400
    rows = seen(request).order_by("-id")
    shown = part(request, rows, count=rows.count())
    team.makers(request, (row for row in shown.rows if row.service_account_id))
    for row in shown.rows:
        row.alive = row.revoked_at is None and row.expires_at > now
    tell(request, shown.rows, now)
    told = {
        "tokens": shown,
        "form": form,
        "once": once.fresh(),
        "made": made,
        "text": text,
        "call": call("tokens", f"limit={MOST}"),
    }
    answer = render(request, "tenants/tokens.html", told, status=status)
    answer["Cache-Control"] = "no-store"
    return answer


def issue(request: Any, form: TokenForm, accounts: dict[str, ServiceAccount]) -> Made:
    wanted, now = form.cleaned_data, clock.now()
    project = form.project and project_for(request.roles, "tokens.write", form.project.pk)
    account = accounts.get(wanted.get("bearer", ""))
    return tokens.issue(
        tenant=request.tenant,
        name=wanted["name"],
        scopes=wanted["scopes"],
        expires_at=now + timedelta(days=int(wanted["days"])),
        project=project,
        actor=request.actor,
        now=now,
        user_id=None if account else request.actor.id,
        service_account=account,
    )


@require_POST
@in_tenant("tokens.write")
def revoke(request: Any, pk: str) -> HttpResponse:
    """End a token at once."""
    token = find(seen(request), pk)

    def do() -> None:
        tokens.revoke(token, actor=request.actor, now=clock.now())

    return act(request, do, done=f"{token.name} has stopped working.", to=reverse("tokens"))
