"""The team page: members, invitations, service accounts."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from ports import clock
from tenants.domain.roles import IN_WORDS, Role
from tenants.models import ApiToken, Invitation, Member, Project, ServiceAccount
from tenants.portal import once
from tenants.portal.acts import act, call, complain, find, part
from tenants.portal.doors import in_tenant
from tenants.portal.forms import ROLES, InviteForm, MachineForm, RoleForm
from tenants.services import invitations, members, service_accounts, tokens
from tenants.services.permissions import require

MOST = 500  # shown on the page; the API turns pages
INVITED = (
    "This form was sent before: its link was made and shown once. If it is lost, revoke it and make another."
)


def seen(request: Any, rows: Any) -> Any:
    """Leave rows of the tenant, and of nodes whose members the visitor may see."""
    rows = rows.filter(tenant=request.tenant)
    reach = request.roles.projects("members.read")
    if reach is None:
        return rows
    return rows.filter(project__in=Project.objects.filter(path__overlap=sorted(reach)).values("pk"))


def people(request: Any) -> Any:
    return seen(request, Member.objects.select_related("user", "project", "tenant"))


def machines(request: Any) -> Any:
    return seen(request, ServiceAccount.objects.select_related("project", "tenant"))


def offers(request: Any) -> Any:
    return seen(request, Invitation.objects.select_related("project", "tenant"))


def who(request: Any) -> dict[str, Any]:
    return {"grants": request.roles, "actor": request.actor, "now": clock.now()}


def leads(request: Any, project: Project | None) -> None:
    require(request.roles, "members.write", members.node(project))


@require_GET
@in_tenant("members.read")
def team(request: Any) -> HttpResponse:
    """Show who is here and what they may do."""
    return page(request)


def page(request: Any, **more: Any) -> HttpResponse:
    now, lead = clock.now(), request.roles.anywhere("members.write")
    open_offers = offers(request).filter(accepted_at=None, revoked_at=None, expires_at__gt=now)
    here = people(request).order_by("created_at", "id")
    robots = machines(request).filter(closed_at=None).order_by("name", "id")
    shown = part(request, here, count=here.count())
    for row in shown.rows:
        judge(request, row)
    shown_robots = part(request, robots, "machines", count=robots.count())
    makers(request, shown_robots.rows)
    told = {
        "members": shown,
        "invitations": part(request, open_offers.order_by("-id"), "invitations", count=open_offers.count())
        if lead
        else None,
        "machines": shown_robots,
        "leads": lead,
        "call": call("members", f"limit={MOST}"),
        "call_invitations": call("invitations", f"limit={MOST}") if lead else "",
        "call_machines": call("service-accounts", f"limit={MOST}"),
        "role_words": [(role.value, IN_WORDS[role]) for role in Role],
        "once": once.fresh(),
        "invite": InviteForm(projects=request.projects),
        "machine": MachineForm(projects=request.projects, prefix="machine"),
        **more,
    }
    return render(request, "tenants/team.html", told)


def makers(request: Any, rows: Iterable[Any]) -> None:
    """Note on rows who made them, for those who see all tokens, and whether that person has left since."""
    if not request.roles.may("tokens.all"):
        return
    made = [row for row in rows if row.made_by_label]
    here = Member.objects.filter(tenant=request.tenant, user__in={row.made_by for row in made})
    present = set(here.values_list("user_id", flat=True))
    for row in made:
        row.maker = row.made_by_label
        row.maker_left = row.made_by.startswith("usr_") and row.made_by not in present


def left_by(request: Any, member: Member) -> list[ApiToken]:
    """Return the tokens that go on working once a member is gone, for those who may end them."""
    elsewhere = Member.objects.filter(tenant=request.tenant, user=member.user_id).exclude(pk=member.pk)
    if not request.roles.may("tokens.all") or elsewhere.exists():
        return []
    return list(tokens.left_by(tenant=request.tenant, user_id=member.user_id, now=clock.now()))


def judge(request: Any, member: Member) -> None:
    """Note what the visitor may do about a member: go, or change and remove somebody."""
    member.mine = member.user_id == request.actor.id  # type: ignore[attr-defined]  # for the template
    lead = request.roles.anywhere("members.write")
    member.may_change = lead and request.roles.may_give(Role(member.role), members.node(member.project))  # type: ignore[attr-defined]


@require_GET
@in_tenant("members.read")
def one(request: Any, pk: str) -> HttpResponse:
    """Show one member: another role, or the end of the one they have."""
    member = find(people(request), pk)
    if member.user_id != request.actor.id:
        leads(request, member.project)
    judge(request, member)
    told = {"member": member, "roles": ROLES, "left": left_by(request, member)}
    return render(request, "tenants/member.html", told)


@require_POST
@in_tenant("members.write")
def invite(request: Any) -> HttpResponse:
    """Make an invitation and show its link, this once."""
    form = InviteForm(request.POST, projects=request.projects)
    if not form.is_valid():
        return complain(request, form, to=reverse("team"))
    leads(request, form.project)
    if once.before(this := once.sent(request)):
        messages.warning(request, INVITED)
        return redirect("team")
    invitation, secret = invitations.invite(
        tenant=request.tenant,
        email=form.cleaned_data["email"],
        role=Role(form.cleaned_data["role"]),
        project=form.project,
        **who(request),
    )
    once.done(this, now=clock.now())
    link = f"{settings.PUBLIC_URL}{reverse('join', args=[secret])}"
    answer = page(request, invited=invitation, link=link)
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@in_tenant("members.write")
def uninvite(request: Any, pk: str) -> HttpResponse:
    """Take an invitation back."""
    offer = find(offers(request), pk)
    leads(request, offer.project)

    def do() -> None:
        invitations.revoke(offer, actor=request.actor, now=clock.now())

    return act(request, do, done=f"The invitation of {offer.email} no longer works.", to=reverse("team"))


@require_POST
@in_tenant("members.write")
def change_role(request: Any, pk: str) -> HttpResponse:
    """Give a member another role."""
    member = find(people(request), pk)
    leads(request, member.project)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return complain(request, form, to=reverse("team"))
    role = Role(form.cleaned_data["role"])

    def do() -> None:
        members.change_role(member, role=role, **who(request))

    return act(request, do, done=f"{member.user.email} is {role.value} now.", to=reverse("team"))


@require_POST
@in_tenant("members.read")
def remove(request: Any, pk: str) -> HttpResponse:
    """Remove a member, or leave; with the tokens they made for service accounts if one says so."""
    member = find(people(request), pk)
    if member.user_id != request.actor.id:
        leads(request, member.project)
    machines_too = request.POST.get("tokens") == "revoke"
    left = 0 if machines_too else len(left_by(request, member))

    def do() -> None:
        members.remove(member, **who(request), with_machines=machines_too)

    return act(request, do, done=gone(member, left=left), to=reverse("team"))


def gone(member: Member, *, left: int) -> str:
    """Say what somebody who was removed has lost, and what of theirs goes on."""
    email, elsewhere = member.user.email, Member.objects.filter(user=member.user_id).exclude(pk=member.pk)
    if elsewhere.filter(tenant=member.tenant_id).exists():
        return f"{email} has one role less here; their tokens go on with the others."
    words = f"{email} is no longer a member; their tokens have stopped working."
    if left:
        words += f" {left} that they made for service accounts go on: see Tokens."
    return words


@require_POST
@in_tenant("members.write")
def add_machine(request: Any) -> HttpResponse:
    """Make a service account."""
    form = MachineForm(request.POST, projects=request.projects, prefix="machine")
    if not form.is_valid():
        return complain(request, form, to=reverse("team"))
    leads(request, form.project)
    name = form.cleaned_data["name"]

    def do() -> None:
        service_accounts.create(
            tenant=request.tenant,
            name=name,
            role=Role(form.cleaned_data["role"]),
            project=form.project,
            **who(request),
        )

    done = f"{name} is ready. Make a token for it under Tokens."
    return act(request, do, done=done, to=reverse("team"))


@require_http_methods(["GET", "HEAD", "POST"])
@in_tenant("members.write")
def close_machine(request: Any, pk: str) -> HttpResponse:
    """End a service account with all its tokens, after one has seen what that means."""
    account = find(machines(request), pk)
    leads(request, account.project)
    if request.method != "POST":
        return render(request, "tenants/machine_close.html", {"machine": account})

    def do() -> None:
        service_accounts.close(account, **who(request))

    return act(request, do, done=f"{account.name} and its tokens have stopped working.", to=reverse("team"))
