"""A member of one project sees no data of the tenant's other projects.

Quagga lies beside Alpha, and what is called zenith lies above both. A walk of an owner of the whole tenant finds every
one of these marks: one that nobody can find would prove nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import Budget, Invoice
from billing.services.funds.budgets import budget_settings
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.models import Lease, Volume
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import (
    ApiToken,
    AuditEvent,
    Invitation,
    Member,
    Project,
    Quota,
    QuotaKind,
    ServiceAccount,
    User,
)
from tenants.services import invitations, service_accounts, tokens
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.architecture import routes
from tests.architecture.visitors import MASKS, rows
from tests.billing.histories import add_ended_lease
from tests.broker.domain.workloads.test_workloads import KEY
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, offering, wait_until_events_settled
from tests.web.http.test_event_stream import Reader, run
from tests.web.portal.signed_in_user import PortalSession, open_portal
from web.http import event_stream as stream

OWNS = RoleGrants((RoleGrant(Role.OWNER),))
# Where it lies: for how long 111 whole GPUs of seven euros ran there, and what of that is on pages.
LONG = {"quagga": 36_036, "zenith": 25_740}
AMOUNTS = {
    "what ran in quagga": r"7,?777\.7\d",
    "what ran in zenith": r"5,?555\.5\d",
    "seconds in quagga": r"3,?999,?996",
    "seconds in zenith": r"2,?857,?140",
    "what the whole tenant spent": r"13,?3\d\d\.\d\d",
    "the ceiling of quagga": r"7,771\b|7771000",
}
GRID = {
    "": ["whose=all", "whose=mine"],
    "leases/": ["state=all", "state=over", "state=all&format=csv", "state=waiting&by=me", "state=all&class=on_demand"],
    "spend/": [
        "by=day&group=project",
        "by=week&group=offering",
        "by=month&group=project",
        "format=csv&group=project",
        "format=csv&group=offering&by=month",
        "class=on_demand",
    ],
    "catalogue/": ["format=csv", "sort=free"],
    "invoices/": ["format=csv"],
    "invoices/<str:pk>/": ["format=csv", "line=1", "line=2"],
    "api/v1/usage": ["group_by=project", "group_by=lease", "from=2026-10-01&group_by=lease"],
    "api/v1/events": ["limit=500"],
    "api/v1/leases": ["tag.team=quagga", "sort=name", "limit=2"],
    "api/v1/members": ["q=quagga", "role=viewer"],
    "api/v1/projects": ["archived=false", "q=quagga"],
}  # fmt: skip
# Of everybody, for what the role may not do decides about parts of these pages.
GRID_OF_ALL = {"spend/": ["group=project"], "leases/": ["state=all&format=csv"]}
# What is named in the address by its id, with ids of elsewhere.
NAMED = {
    "launch/": ["again=LEASE", "volume=VOLUME", "runs=ssh&volume=VOLUME&offering=OFFERING"],
    "leases/": ["state=all&q=LEASE", "state=all&cursor=LEASE", "state=all&q=quagga", "state=all&q=zenith"],
    "audit/": ["subject=LEASE"],
    "api/v1/leases": ["project=PROJECT", "q=quagga", "q=LEASE"],
    "api/v1/volumes": ["project=PROJECT", "q=zenith"],
    "api/v1/queue-entries": ["project=PROJECT"],
    "api/v1/usage": ["project=PROJECT&group_by=lease"],
    "api/v1/usage-forecast": ["project=PROJECT"],
    "api/v1/rated-charges": ["project=PROJECT", "lease=LEASE"],
    "api/v1/quotas": ["project=PROJECT"],
    "api/v1/quota-usage": ["project=PROJECT"],
    "api/v1/projects": ["parent=PROJECT"],
    "api/v1/members": ["project=PROJECT"],
    "api/v1/service-accounts": ["project=PROJECT", "q=quagga"],
    "api/v1/tokens": ["q=quagga"],
    "api/v1/audit-events": ["subject=LEASE"],
}


@dataclass
class Place:
    """A project, and what was planted in it."""

    project: Project
    word: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Planted:
    """A tenant with something of every kind in Alpha, beside it and above it."""

    portal: PortalSession
    alpha: Place
    elsewhere: list[Place]
    whole: dict[str, str]  # ids of what belongs to the whole tenant
    marks: dict[str, re.Pattern[str]] = field(default_factory=dict)

    def ids_of(self, thing: str) -> tuple[str, ...] | None:
        """Return the ids that stand in an address: of Alpha, or of the whole tenant."""
        if thing == "invoice line":
            return self.whole["invoice"], "1"
        found = self.alpha.ids.get(thing) or self.whole.get(thing)
        return (found,) if found else None


def somebody(owner: TenantContext, word: str, project: Project | None) -> tuple[User, Actor]:
    user = User.objects.create_user(f"{word}-person@example.org")
    with tenant_scope(owner.tenant.pk):
        Member.objects.create(tenant=owner.tenant, user=user, role=Role.OWNER, project=project, created_at=NOW)
    return user, Actor("user", user.pk, user.email)


def plant(portal: PortalSession, project: Project, word: str) -> Place:
    """Put something of every kind into a project, each with the word in its name."""
    sim, place = portal.sim, Place(project, word)
    here = project if project.parent_id else None
    user, actor = somebody(portal.owner, word, here)
    theirs = replace(portal.owner, actor=actor)
    volume = sim.create_volume(theirs, f"{word}-volume", project=project)
    sim.create_volume(theirs, f"{word}-kept", project=project)
    wanted = {
        "project": project,
        "image": f"registry.example/{word}:1",
        "command": f"train --for {word}",
        "env": {word.upper(): word},
        "ssh_keys": [KEY.replace("mira", word)],
        "tags": {"team": word},
    }
    small = offering("1g.10gb")
    active = sim.create_lease(theirs, small, name=f"{word}-active", **wanted)
    resting = sim.create_lease(theirs, small, name=f"{word}-resting", volume=volume.pk, **wanted)
    sim.stop_lease(resting, theirs)
    sim.run(30)
    since, many = NOW - timedelta(days=2), 111 if word in LONG else 1
    over = add_ended_lease(project, offering("whole-gpu"), since, LONG.get(word, 3600), quantity=many)
    with tenant_scope(project.tenant_id):
        Lease.objects.filter(pk=over.pk).update(name=f"{word}-over", requested_by_label=actor.label)
        guest, _ = invitations.invite(
            tenant=portal.owner.tenant, email=f"{word}-guest@example.org", role=Role.VIEWER, project=here,
            grants=OWNS, actor=actor, now=sim.now,
        )  # fmt: skip
        robot = service_accounts.create(
            tenant=portal.owner.tenant, name=f"{word}-robot", role=Role.MEMBER, project=here,
            grants=OWNS, actor=actor, now=sim.now,
        )  # fmt: skip
        for bearer in ({"user_id": user.pk}, {"service_account": robot}):
            token, _ = tokens.issue(
                tenant=portal.owner.tenant, name=f"{word}-token", scopes=["leases:read"],
                expires_at=sim.now + timedelta(days=1), actor=actor, now=sim.now, **bearer,
            )  # fmt: skip
        member = Member.objects.get(user=user)
    place.ids = {
        "lease": active.pk, "volume": volume.pk, "project": project.pk, "member": member.pk,
        "invitation": guest.pk, "service account": robot.pk, "token": token.pk,
    }  # fmt: skip
    if here:
        limit = 7_771_000 if word == "quagga" else 900_000
        place.ids["quota"] = portal.owner.set_quota(QuotaKind.UNITS, limit, project).pk
        with tenant_scope(portal.owner.tenant.pk):
            budget = budget_settings.set_budget(
                project=project, limit_minor=limit, actor=portal.owner.actor, now=portal.sim.now
            )
        place.ids["budget"] = place.ids["budget to remove"] = budget.pk
    return place


@pytest.fixture
def planted(own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    monkeypatch.setattr(stream, "POLL_INTERVAL_S", 0.02)
    monkeypatch.setattr(stream, "HEARTBEAT_EVERY_POLLS", 1)
    with open_portal() as portal:
        alpha = plant(portal, portal.owner.create_project("Alpha"), "alpha")
        elsewhere = [
            plant(portal, portal.owner.create_project("Quagga"), "quagga"),
            plant(portal, portal.owner.project, "zenith"),
        ]
        for place in elsewhere:  # asked for last, and left in the queue
            portal.sim.request_lease(
                portal.owner, offering("whole-gpu"), project=place.project, name=f"{place.word}-waits"
            )
        lease_rating.rate_all_leases(now=portal.sim.now)
        with tenant_scope(portal.owner.tenant.pk):
            drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
            whole = {"tenant": portal.owner.tenant.pk, "invoice": Invoice.objects.get().pk,
                     "event": AuditEvent.objects.latest("id").pk}  # fmt: skip
        found = Planted(portal, alpha, elsewhere, whole)
        found.marks = marks(found)
        wait_until_events_settled()
        yield found


def marks(planted: Planted) -> dict[str, re.Pattern[str]]:
    """Return all by which something of elsewhere is known: words, ids, amounts."""
    values = {word: re.compile(word, re.IGNORECASE) for word in ("quagga", "zenith")}
    values |= {name: re.compile(amount) for name, amount in AMOUNTS.items()}
    own, root = planted.alpha.project.pk, planted.portal.owner.project.pk
    with tenant_scope(planted.portal.owner.tenant.pk):
        for model in (Lease, Volume, Member, Invitation, ServiceAccount, Quota, Budget):
            # What a member of the whole tenant is known by is their address, and a ceiling above is told.
            for row in model.objects.exclude(project=own):
                if not (model is Quota and row.project_id == root):
                    values[f"{model.__name__} {row}"] = re.compile(row.pk)
        for token in ApiToken.objects.exclude(name="alpha-token").exclude(name="walk"):
            values[f"token {token.name} {token.pk}"] = re.compile(token.pk)
    values["the project beside"] = re.compile(planted.elsewhere[0].project.pk)
    return values


@dataclass
class Walker:
    """A user who opens every page and requests every list."""

    planted: Planted
    who: str
    user: User
    browser: Client
    token: str
    read: int = 0
    found: dict[str, set[str]] = field(default_factory=dict)

    def look(self, path: str, *, bearer: bool) -> None:
        """Read an address, and report foreign marks in the answer."""
        headers = {"Authorization": f"Bearer {self.token}"} if bearer else {}
        client = Client(raise_request_exception=True) if bearer else self.browser
        answer = client.get(path, headers=headers)
        assert answer.status_code != 500, (self.who, path)
        self.read += answer.status_code == 200
        text = MASKS.sub(b"", answer.content).decode(errors="replace") + str(dict(answer.headers))
        for sent in re.findall(r"=([^&]{5,})", path):
            text = text.replace(sent, "")
        self.note(path, text)

    def note(self, path: str, text: str) -> None:
        for name, mark in self.planted.marks.items():
            if mark.search(text):
                self.found.setdefault(name, set()).add(path)

    def walk(self, *, widely: bool) -> None:
        """Read every address; `widely` adds all filters and tenantless pages."""
        for route, row in rows("page", "api", "shared", *(("account", "anybody") if widely else ())):
            if "GET" not in row.methods or row.thing in ("link", "key", "keys", "security key"):
                continue
            if (ids := self.planted.ids_of(row.thing) if row.thing else ()) is None:
                continue
            path = routes.address(route, *ids)
            more = [*GRID.get(route, []), *self.named(route)] if widely else GRID_OF_ALL.get(route, [])
            queries = ["", *more]
            for query in queries:
                self.look(f"{path}?{query}" if query else path, bearer=row.kind in ("api", "shared"))

    def named(self, route: str) -> Iterator[str]:
        """Yield queries that name what lies elsewhere, or what the walker has."""
        for place in self.planted.elsewhere:
            words = [
                ("LEASE", place.ids["lease"]),
                ("VOLUME", place.ids["volume"]),
                ("PROJECT", place.project.pk),
                ("OFFERING", offering("1g.10gb").pk),
            ]
            for query in NAMED.get(route, []):
                for word, ident in words:
                    query = query.replace(word, ident)
                yield query

    def listen(self) -> None:
        """Read the live stream from its beginning."""
        reader = Reader({"Authorization": f"Bearer {self.token}", "last-event-id": "0-0"})
        run(reader.read())
        assert reader.seen, "there are events of one's own"
        self.note("the stream", reader.text.decode())


def walker(planted: Planted, role: Role, project: Project | None, *, within: Project | None = None) -> Walker:
    """Return a signed-in user with this role and a full token."""
    portal = planted.portal
    other = portal.sign_in_as(role, project)
    with tenant_scope(portal.owner.tenant.pk):
        _, text = tokens.issue(
            tenant=portal.owner.tenant, name="walk", scopes=["tenant:admin"], project=within,
            expires_at=portal.sim.now + timedelta(days=1), actor=portal.owner.actor, now=portal.sim.now,
            user_id=other.user.pk,
        )  # fmt: skip
    return Walker(planted, f"{role} of {project or 'all'}", other.user, other.client, text)


@pytest.mark.deep
def test_a_role_on_one_project_reads_nothing_of_elsewhere(planted: Planted) -> None:
    owner = walker(planted, Role.OWNER, None)
    owner.walk(widely=True)
    owner.listen()
    assert set(planted.marks) - set(owner.found) == set(), "nobody could find these"
    leaks: dict[str, Any] = {}
    for role in Role:
        one = walker(planted, role, planted.alpha.project)
        one.walk(widely=role == Role.OWNER)
        one.listen()
        assert one.read > 30, f"{one.who} read {one.read} pages only"
        leaks |= {f"{one.who} sees {mark}": sorted(paths) for mark, paths in one.found.items()}
    assert leaks == {}


@pytest.mark.deep
def test_a_token_confined_to_one_project_reads_nothing_of_elsewhere(planted: Planted) -> None:
    one = walker(planted, Role.OWNER, None, within=planted.alpha.project)
    for route, row in rows("api", "shared"):
        if "GET" in row.methods and (ids := planted.ids_of(row.thing) if row.thing else ()) is not None:
            for query in ["", *GRID.get(route, []), *one.named(route)]:
                one.look(routes.address(route, *ids) + (f"?{query}" if query else ""), bearer=True)
    one.listen()
    assert one.found == {}
