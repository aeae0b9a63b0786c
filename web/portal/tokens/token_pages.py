"""Tokens page: the visitor's own, or the tenant's; the caller adds spend caps."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ports import clock
from tenants.domain.roles import Role
from tenants.models import ApiToken, ServiceAccount
from tenants.services import members, tokens
from tenants.services.authentication import project_for
from tenants.services.errors import InvalidValue
from web.portal import form_tokens
from web.portal.actions import api_call, find_or_missing, list_page, outcome_message
from web.portal.authentication import SAFE_OR_POST, tenant_required
from web.portal.confirmation import ActionConfirmation, confirmation_page
from web.portal.forms import TokenForm
from web.portal.team import team_pages

API_PAGE_SIZE = 500
ALREADY_CREATED = gettext_noop(
    "This form was already submitted; its token was shown once. If lost, revoke it and create another."
)


def visible_tokens(request: Any) -> Any:
    """Return the visitor's own tokens, or all for those who lead the tenant."""
    rows = ApiToken.objects.filter(tenant=request.tenant).select_related("user", "service_account", "project", "parent")
    return rows if request.roles.may("tokens.all") else rows.filter(user_id=request.actor.id)


def usable_service_accounts(request: Any) -> dict[str, ServiceAccount]:
    """Return the service accounts for which the visitor may create tokens."""
    rows = ServiceAccount.objects.filter(tenant=request.tenant, closed_at=None).select_related("project")
    mine = (a for a in rows if request.roles.may_give(Role(a.role), members.node_path(a.project)))
    return {account.pk: account for account in mine}


CreatedToken = tuple[ApiToken, str]


def tokens_page(
    request: Any,
    *,
    form_of: type[TokenForm],
    make: Callable[[Any, Any, dict[str, ServiceAccount]], CreatedToken],
    annotate: Callable[[Any, Iterable[ApiToken], datetime], None],
) -> HttpResponse:
    """List tokens; a POST creates one and shows its secret, this once.

    `make` creates the token of a `form_of` form, and `annotate` annotates each token for its row.
    """
    accounts, made, text, status = usable_service_accounts(request), None, "", 200
    form = form_of(
        request.POST or None, projects=request.projects, accounts=[(a.pk, a.name) for a in accounts.values()]
    )
    now = clock.now()
    if request.method == "POST":
        if form_tokens.was_sent_before(this := form_tokens.form_request(request)):
            messages.warning(request, _(ALREADY_CREATED))
            return redirect("tokens")
        if form.is_valid():
            try:
                made, text = make(request, form, accounts)
            except InvalidValue as refusal:
                form.add_error(None, refusal.detail)
            else:
                form_tokens.record_sent(this, now=now)
        status = 200 if made else 400
    rows = visible_tokens(request).order_by("-id")
    shown = list_page(request, rows, count=rows.count())
    team_pages.annotate_creators(request, (row for row in shown.rows if row.service_account_id))
    for row in shown.rows:
        row.alive = row.revoked_at is None and row.expires_at > now
    annotate(request, shown.rows, now)
    context = {
        "tokens": shown,
        "form": form,
        "once": form_tokens.new_form_token(),
        "made": made,
        "text": text,
        "call": api_call("tokens", f"limit={API_PAGE_SIZE}"),
    }
    answer = render(request, "tokens/tokens.html", context, status=status)
    answer["Cache-Control"] = "no-store"
    return answer


def issue_token(request: Any, form: TokenForm, accounts: dict[str, ServiceAccount]) -> CreatedToken:
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


@tenant_required("tokens.write", methods=SAFE_OR_POST)
def revoke_token(request: Any, pk: str) -> HttpResponse:
    """Revoke a token, after a confirmation page."""
    token = find_or_missing(visible_tokens(request), pk)
    if request.method != "POST":
        effect = _(
            "Clients that use it stop working at once, and tokens that were created with it too. It cannot be restored."
        )
        title = _("Revoke {name}?").format(name=token.name)
        return confirmation_page(request, ActionConfirmation(title, _("Revoke token"), reverse("tokens"), (effect,)))
    with outcome_message(request, done=_("{token_name} was revoked.").format(token_name=token.name)):
        tokens.revoke(token, actor=request.actor, now=clock.now())
    return redirect("tokens")
