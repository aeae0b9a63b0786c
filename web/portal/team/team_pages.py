"""Team pages: members, invitations, service accounts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ports import clock
from tenants.domain.roles import PRIVILEGED_ROLES, ROLE_DESCRIPTIONS, Role
from tenants.models import ApiToken, Invitation, Member, Project, ServiceAccount
from tenants.services import invitations, members, service_accounts, tokens
from tenants.services.authentication import require
from web.portal import form_tokens
from web.portal.actions import ListPage, api_call, find_or_missing, list_page, outcome_message, redirect_with_errors
from web.portal.authentication import POST, SAFE_OR_POST, tenant_required
from web.portal.confirmation import ActionConfirmation, confirmation_page
from web.portal.forms import ROLES, InviteForm, RoleForm, ServiceAccountForm

ROWS_SHOWN = 38  # of each of three lists: the page stays below 100 kB
API_PAGE_SIZE = 500  # page size of the example API calls
ALREADY_INVITED = gettext_noop(
    "This form was already submitted; its link was shown once. If lost, revoke it and create another."
)


def visible_rows(request: Any, rows: Any) -> Any:
    """Return rows of the tenant whose project's members the visitor may see."""
    rows = rows.filter(tenant=request.tenant)
    reach = request.roles.projects("members.read")
    if reach is None:
        return rows
    return rows.filter(project__in=Project.objects.filter(path__overlap=sorted(reach)).values("pk"))


def visible_members(request: Any) -> Any:
    return visible_rows(request, Member.objects.select_related("user", "project", "tenant"))


def visible_service_accounts(request: Any) -> Any:
    return visible_rows(request, ServiceAccount.objects.select_related("project", "tenant"))


def visible_invitations(request: Any) -> Any:
    return visible_rows(request, Invitation.objects.select_related("project", "tenant"))


def acting_user(request: Any) -> dict[str, Any]:
    return {"grants": request.roles, "actor": request.actor, "now": clock.now()}


def require_lead(request: Any, project: Project | None) -> None:
    require(request.roles, "members.write", members.node_path(project))


@tenant_required("members.read")
def show_team(request: Any) -> HttpResponse:
    """Show the members and their roles."""
    return render(request, "team/team.html", {"page": build_team_page(request)})


@dataclass(frozen=True, slots=True)
class TeamPage:
    """Members, invitations and service accounts that the visitor may see."""

    members: ListPage
    invitations: ListPage | None
    machines: ListPage
    leads: bool
    projects: list[Project]
    invited: Invitation | None  # just invited, with its link
    link: str

    role_words = tuple((role.value, ROLE_DESCRIPTIONS[role]) for role in Role)

    @property
    def once(self) -> str:
        return form_tokens.new_form_token()

    @property
    def invite(self) -> InviteForm:
        return InviteForm(projects=self.projects)

    @property
    def machine(self) -> ServiceAccountForm:
        return ServiceAccountForm(projects=self.projects, prefix="machine")

    @property
    def calls(self) -> dict[str, str]:
        query = f"limit={API_PAGE_SIZE}"
        return {
            "members": api_call("members", query),
            "invitations": api_call("invitations", query) if self.leads else "",
            "machines": api_call("service-accounts", query),
        }

    @property
    def only_invited(self) -> bool:
        """Return whether only the invited address may accept the invitation."""
        return self.invited is not None and self.invited.role in PRIVILEGED_ROLES


def build_team_page(request: Any, *, invited: Invitation | None = None, link: str = "") -> TeamPage:
    """Read the team; `invited` was just invited by a `link` that is shown once."""
    now, lead = clock.now(), request.roles.anywhere("members.write")
    open_offers = visible_invitations(request).filter(accepted_at=None, revoked_at=None, expires_at__gt=now)
    here = visible_members(request).order_by("created_at", "id")
    robots = visible_service_accounts(request).filter(closed_at=None).order_by("name", "id")
    page = TeamPage(
        members=list_page(request, here, count=here.count(), most=ROWS_SHOWN),
        invitations=list_page(
            request, open_offers.order_by("-id"), "invitations", count=open_offers.count(), most=ROWS_SHOWN
        )
        if lead
        else None,
        machines=list_page(request, robots, "machines", count=robots.count(), most=ROWS_SHOWN),
        leads=lead,
        projects=request.projects,
        invited=invited,
        link=link,
    )
    for row in page.members.rows:
        annotate_permissions(request, row)
    annotate_creators(request, page.machines.rows)
    return page


def annotate_creators(request: Any, rows: Iterable[Any]) -> None:
    """Annotate rows with their creator, and whether that person has left.

    Only for visitors who see all tokens.
    """
    if not request.roles.may("tokens.all"):
        return
    made = [row for row in rows if row.made_by_label]
    here = Member.objects.filter(tenant=request.tenant, user__in={row.made_by for row in made})
    present = set(here.values_list("user_id", flat=True))
    for row in made:
        row.maker = row.made_by_label
        row.maker_left = row.made_by.startswith("usr_") and row.made_by not in present


def tokens_left_by(request: Any, member: Member) -> list[ApiToken]:
    """Return the tokens that outlive a member, for those who may revoke them."""
    elsewhere = Member.objects.filter(tenant=request.tenant, user=member.user_id).exclude(pk=member.pk)
    if not request.roles.may("tokens.all") or elsewhere.exists():
        return []
    return list(tokens.tokens_known_to(tenant=request.tenant, user_id=member.user_id, now=clock.now()))


def annotate_permissions(request: Any, member: Member) -> None:
    """Annotate a member with what the visitor may do: leave, or change and remove."""
    member.mine = member.user_id == request.actor.id  # type: ignore[attr-defined]  # for the template
    lead = request.roles.anywhere("members.write")
    member.may_change = lead and request.roles.may_give(Role(member.role), members.node_path(member.project))  # type: ignore[attr-defined]


@tenant_required("members.read")
def show_member(request: Any, pk: str) -> HttpResponse:
    """Show one member: change the role, or remove."""
    member = find_or_missing(visible_members(request), pk)
    if member.user_id != request.actor.id:
        require_lead(request, member.project)
    annotate_permissions(request, member)
    context = {"member": member, "roles": ROLES, "left": tokens_left_by(request, member)}
    return render(request, "team/member.html", context)


@tenant_required("members.write", methods=POST)
def invite_member(request: Any) -> HttpResponse:
    """Create an invitation and show its link, this once."""
    form = InviteForm(request.POST, projects=request.projects)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("team"))
    require_lead(request, form.project)
    if form_tokens.was_sent_before(this := form_tokens.form_request(request)):
        messages.warning(request, _(ALREADY_INVITED))
        return redirect("team")
    invitation, secret = invitations.invite(
        tenant=request.tenant,
        email=form.cleaned_data["email"],
        role=Role(form.cleaned_data["role"]),
        project=form.project,
        **acting_user(request),
    )
    form_tokens.record_sent(this, now=clock.now())
    link = f"{settings.PUBLIC_URL}{reverse('join', args=[secret])}"
    page = build_team_page(request, invited=invitation, link=link)
    answer = render(request, "team/team.html", {"page": page})
    answer["Cache-Control"] = "no-store"
    return answer


@tenant_required("members.write", methods=SAFE_OR_POST)
def revoke_invitation(request: Any, pk: str) -> HttpResponse:
    """Revoke an invitation, after a confirmation page."""
    offer = find_or_missing(visible_invitations(request), pk)
    require_lead(request, offer.project)
    if request.method != "POST":
        title = _("Revoke the invitation of {email}?").format(email=offer.email)
        effect = _("Its link stops working at once. You can invite them again.")
        return confirmation_page(request, ActionConfirmation(title, _("Revoke invitation"), reverse("team"), (effect,)))
    with outcome_message(request, done=_("The invitation of {email} no longer works.").format(email=offer.email)):
        invitations.revoke(offer, actor=request.actor, now=clock.now())
    return redirect("team")


@tenant_required("members.write", methods=POST)
def change_member_role(request: Any, pk: str) -> HttpResponse:
    """Change a member's role."""
    member = find_or_missing(visible_members(request), pk)
    require_lead(request, member.project)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("team"))
    role = Role(form.cleaned_data["role"])
    with outcome_message(
        request, done=_("{email} now has the role {value}.").format(email=member.user.email, value=role.value)
    ):
        members.change_role(member, role=role, **acting_user(request))
    return redirect("team")


@tenant_required("members.read", methods=POST)
def remove_member(request: Any, pk: str) -> HttpResponse:
    """Remove a member, or leave; optionally revoke tokens made for service accounts."""
    member = find_or_missing(visible_members(request), pk)
    if member.user_id != request.actor.id:
        require_lead(request, member.project)
    machines_too = request.POST.get("tokens") == "revoke"
    left = 0 if machines_too else len(tokens_left_by(request, member))
    with outcome_message(request, done=removal_text(member, left=left)):
        members.remove(member, **acting_user(request), with_machines=machines_too)
    return redirect("team")


def removal_text(member: Member, *, left: int) -> str:
    """Describe what a removed member has lost, and which tokens remain."""
    email, elsewhere = member.user.email, Member.objects.filter(user=member.user_id).exclude(pk=member.pk)
    if elsewhere.filter(tenant=member.tenant_id).exists():
        return _("{email} lost this role; their tokens keep working with their other roles.").format(email=email)
    words = _("{email} is no longer a member; their tokens have stopped working.").format(email=email)
    if left:
        words += _(" {left} that they created for service accounts keep working: see Tokens.").format(left=left)
    return words


@tenant_required("members.write", methods=POST)
def create_service_account(request: Any) -> HttpResponse:
    """Create a service account."""
    form = ServiceAccountForm(request.POST, projects=request.projects, prefix="machine")
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("team"))
    require_lead(request, form.project)
    name = form.cleaned_data["name"]
    done = _("{name} was created. Create a token for it under Tokens.").format(name=name)
    with outcome_message(request, done=done):
        service_accounts.create(
            tenant=request.tenant,
            name=name,
            role=Role(form.cleaned_data["role"]),
            project=form.project,
            **acting_user(request),
        )
    return redirect("team")


@tenant_required("members.write", methods=SAFE_OR_POST)
def close_service_account(request: Any, pk: str) -> HttpResponse:
    """Close a service account and its tokens, after a confirmation page."""
    account = find_or_missing(visible_service_accounts(request), pk)
    require_lead(request, account.project)
    if request.method != "POST":
        return render(request, "team/service_account_close.html", {"machine": account})
    with outcome_message(
        request, done=_("{account_name} and its tokens have stopped working.").format(account_name=account.name)
    ):
        service_accounts.close(account, **acting_user(request))
    return redirect("team")
