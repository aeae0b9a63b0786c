"""A member of one project sees no data of the tenant's other projects.

Alpha is the user's project, Quagga a sibling, zenith the root. An owner of the tenant must find every pattern first;
otherwise the test proves nothing.
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
from broker.models import Lease, LeaseArray, LeaseSchedule, Volume
from broker.services.launch_templates import template_store
from broker.services.leases import lease_arrays
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.schedules import schedule_records
from broker.services.secrets import secret_store
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
from tests.architecture.matrix import TEMPLATE
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
LEASE_DURATION_S = {"quagga": 36_036, "zenith": 25_740}
AMOUNTS = {
    "what ran in quagga": r"7,?777\.7\d",
    "what ran in zenith": r"5,?555\.5\d",
    "seconds in quagga": r"3,?999,?996",
    "seconds in zenith": r"2,?857,?140",
    "what the whole tenant spent": r"13,?3\d\d\.\d\d",
    "the ceiling of quagga": r"7,771\b|7771000",
}
QUERIES = {
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
# For every role: parts of these pages depend on what the role may do.
COMMON_QUERIES = {"spend/": ["group=project"], "leases/": ["state=all&format=csv"]}
# Queries whose placeholders are replaced by ids of other projects' records.
FOREIGN_QUERIES = {
    "launch/": ["again=LEASE", "volume=VOLUME", "runs=ssh&volume=VOLUME&offering=OFFERING"],
    "leases/": ["state=all&q=LEASE", "state=all&cursor=LEASE", "state=all&q=quagga", "state=all&q=zenith"],
    "audit/": ["subject=LEASE"],
    "api/v1/leases": ["project=PROJECT", "q=quagga", "q=LEASE"],
    "api/v1/volumes": ["project=PROJECT", "q=zenith"],
    "api/v1/secrets": ["project=PROJECT", "q=zenith"],
    "api/v1/templates": ["project=PROJECT", "q=zenith"],
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
class ProjectRecords:
    """A project, and the ids of its records."""

    project: Project
    word: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class TenantRecords:
    """A tenant with records of every kind in Alpha and other projects."""

    portal: PortalSession
    alpha: ProjectRecords
    elsewhere: list[ProjectRecords]
    whole: dict[str, str]  # ids of what belongs to the whole tenant
    patterns: dict[str, re.Pattern[str]] = field(default_factory=dict)

    def ids_of(self, thing: str) -> tuple[str, ...] | None:
        """Return the ids for an address: of Alpha or of the whole tenant."""
        if thing == "invoice line":
            return self.whole["invoice"], "1"
        found = self.alpha.ids.get(thing) or self.whole.get(thing)
        return (found,) if found else None


def create_member(owner: TenantContext, word: str, project: Project | None) -> tuple[User, Actor]:
    user = User.objects.create_user(f"{word}-person@example.org")
    with tenant_scope(owner.tenant.pk):
        Member.objects.create(tenant=owner.tenant, user=user, role=Role.OWNER, project=project, created_at=NOW)
    return user, Actor("user", user.pk, user.email)


def create_records(portal: PortalSession, project: Project, word: str) -> ProjectRecords:
    """Create records of every kind in a project, marked with its word."""
    sim, group = portal.sim, ProjectRecords(project, word)
    here = project if project.parent_id else None
    user, actor = create_member(portal.owner, word, here)
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
    since, many = NOW - timedelta(days=2), 111 if word in LEASE_DURATION_S else 1
    over = add_ended_lease(project, offering("whole-gpu"), since, LEASE_DURATION_S.get(word, 3600), quantity=many)
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
        schedule = schedule_records.create_schedule(
            LeaseRequest(offering_id=small.pk, name=f"{word}-schedule", max_duration_s=3600, command=word),
            cron="0 3 * * *", time_zone="UTC", project=project, actor=actor, now=sim.now,
        )  # fmt: skip
        member = Member.objects.get(user=user)
        array = lease_arrays.request_array(
            LeaseRequest(offering_id=small.pk, name=f"{word}-array", max_duration_s=3600),
            size=1, project=project, actor=actor, now=sim.now,
        )  # fmt: skip
        secret = secret_store.create_secret(
            project=project, name=f"{word.upper()}_SECRET", value=word, actor=actor, now=sim.now
        )
        template = template_store.create_template(
            project=project, values={**TEMPLATE, "name": f"{word} template"}, actor=actor, now=sim.now
        )
    group.ids = {
        "lease": active.pk, "volume": volume.pk, "project": project.pk, "member": member.pk,
        "invitation": guest.pk, "service account": robot.pk, "token": token.pk,
        "secret": secret.pk, "lease array": array.pk, "lease schedule": schedule.pk, "template": template.pk,
    }  # fmt: skip
    if here:
        limit = 7_771_000 if word == "quagga" else 900_000
        group.ids["quota"] = portal.owner.set_quota(QuotaKind.UNITS, limit, project).pk
        with tenant_scope(portal.owner.tenant.pk):
            budget = budget_settings.set_budget(
                project=project, limit_minor=limit, actor=portal.owner.actor, now=portal.sim.now
            )
        group.ids["budget"] = group.ids["budget to remove"] = budget.pk
    return group


@pytest.fixture
def records(own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[TenantRecords]:
    monkeypatch.setattr(stream, "CHECK_INTERVAL_S", 0.02)
    with open_portal() as portal:
        alpha = create_records(portal, portal.owner.create_project("Alpha"), "alpha")
        elsewhere = [
            create_records(portal, portal.owner.create_project("Quagga"), "quagga"),
            create_records(portal, portal.owner.project, "zenith"),
        ]
        for group in elsewhere:  # asked for last, and left in the queue
            portal.sim.request_lease(
                portal.owner, offering("whole-gpu"), project=group.project, name=f"{group.word}-waits"
            )
        lease_rating.rate_all_leases(now=portal.sim.now)
        with tenant_scope(portal.owner.tenant.pk):
            drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
            whole = {"tenant": portal.owner.tenant.pk, "invoice": Invoice.objects.get().pk,
                     "event": AuditEvent.objects.latest("id").pk}  # fmt: skip
        found = TenantRecords(portal, alpha, elsewhere, whole)
        found.patterns = identifying_patterns(found)
        wait_until_events_settled()
        yield found


def identifying_patterns(records: TenantRecords) -> dict[str, re.Pattern[str]]:
    """Return all that identifies records of other projects: words, ids, amounts."""
    values = {word: re.compile(word, re.IGNORECASE) for word in ("quagga", "zenith")}
    values |= {name: re.compile(amount) for name, amount in AMOUNTS.items()}
    own, root = records.alpha.project.pk, records.portal.owner.project.pk
    with tenant_scope(records.portal.owner.tenant.pk):
        for model in (Lease, LeaseArray, LeaseSchedule, Volume, Member, Invitation, ServiceAccount, Quota, Budget):
            # the root's quota is shown to members of every project
            for row in model.objects.exclude(project=own):
                if not (model is Quota and row.project_id == root):
                    values[f"{model.__name__} {row}"] = re.compile(row.pk)
        for token in ApiToken.objects.exclude(name="alpha-token").exclude(name="walk"):
            values[f"token {token.name} {token.pk}"] = re.compile(token.pk)
    values["the project beside"] = re.compile(records.elsewhere[0].project.pk)
    return values


@dataclass
class RoleVisitor:
    """A user who opens every page and requests every list."""

    records: TenantRecords
    role_name: str
    user: User
    browser: Client
    token: str
    pages_read: int = 0
    patterns_seen: dict[str, set[str]] = field(default_factory=dict)

    def read_url(self, path: str, *, bearer: bool) -> None:
        """Read a URL, and note foreign patterns in the answer."""
        headers = {"Authorization": f"Bearer {self.token}"} if bearer else {}
        client = Client(raise_request_exception=True) if bearer else self.browser
        answer = client.get(path, headers=headers)
        assert answer.status_code != 500, (self.role_name, path)
        self.pages_read += answer.status_code == 200
        text = MASKS.sub(b"", answer.content).decode(errors="replace") + str(dict(answer.headers))
        for sent in re.findall(r"=([^&]{5,})", path):
            text = text.replace(sent, "")
        self.note(path, text)

    def note(self, path: str, text: str) -> None:
        for name, pattern in self.records.patterns.items():
            if pattern.search(text):
                self.patterns_seen.setdefault(name, set()).add(path)

    def read_all_urls(self, *, filtered: bool) -> None:
        """Read every URL; `filtered` adds all filters and tenantless pages."""
        for route, row in rows("page", "api", "shared", *(("account", "anybody") if filtered else ())):
            if "GET" not in row.methods or row.thing in ("link", "key", "keys", "security key"):
                continue
            if (ids := self.records.ids_of(row.thing) if row.thing else ()) is None:
                continue
            path = routes.address(route, *ids)
            more = [*QUERIES.get(route, []), *self.foreign_queries(route)]
            for query in ["", *(more if filtered else COMMON_QUERIES.get(route, []))]:
                self.read_url(f"{path}?{query}" if query else path, bearer=row.kind in ("api", "shared"))

    def foreign_queries(self, route: str) -> Iterator[str]:
        """Yield queries with the ids of other projects' records."""
        for group in self.records.elsewhere:
            words = [
                ("LEASE", group.ids["lease"]),
                ("VOLUME", group.ids["volume"]),
                ("PROJECT", group.project.pk),
                ("OFFERING", offering("1g.10gb").pk),
            ]
            for query in FOREIGN_QUERIES.get(route, []):
                for word, ident in words:
                    query = query.replace(word, ident)
                yield query

    def read_event_stream(self) -> None:
        """Read the live stream from its beginning."""
        reader = Reader({"Authorization": f"Bearer {self.token}", "last-event-id": "0-0"})
        run(reader.read())
        assert reader.seen, "there are events of one's own"
        self.note("the stream", reader.text.decode())


def sign_in(
    records: TenantRecords, role: Role, project: Project | None, *, within: Project | None = None
) -> RoleVisitor:
    """Return a signed-in user with this role and a full token."""
    portal = records.portal
    other = portal.sign_in_as(role, project)
    with tenant_scope(portal.owner.tenant.pk):
        _, text = tokens.issue(
            tenant=portal.owner.tenant, name="walk", scopes=["tenant:admin"], project=within,
            expires_at=portal.sim.now + timedelta(days=1), actor=portal.owner.actor, now=portal.sim.now,
            user_id=other.user.pk,
        )  # fmt: skip
    return RoleVisitor(records, f"{role} of {project or 'all'}", other.user, other.client, text)


@pytest.mark.deep
def test_a_project_role_reads_no_data_of_other_projects(records: TenantRecords) -> None:
    owner = sign_in(records, Role.OWNER, None)
    owner.read_all_urls(filtered=True)
    owner.read_event_stream()
    assert set(records.patterns) - set(owner.patterns_seen) == set(), "nobody could find these"
    leaks: dict[str, Any] = {}
    for role in Role:
        visitor = sign_in(records, role, records.alpha.project)
        visitor.read_all_urls(filtered=role == Role.OWNER)
        visitor.read_event_stream()
        assert visitor.pages_read > 30, f"{visitor.role_name} read {visitor.pages_read} pages only"
        leaks |= {f"{visitor.role_name} sees {mark}": sorted(paths) for mark, paths in visitor.patterns_seen.items()}
    assert leaks == {}


@pytest.mark.deep
def test_a_token_limited_to_one_project_reads_no_data_of_other_projects(records: TenantRecords) -> None:
    visitor = sign_in(records, Role.OWNER, None, within=records.alpha.project)
    for route, row in rows("api", "shared"):
        if "GET" in row.methods and (ids := records.ids_of(row.thing) if row.thing else ()) is not None:
            for query in ["", *QUERIES.get(route, []), *visitor.foreign_queries(route)]:
                visitor.read_url(routes.address(route, *ids) + (f"?{query}" if query else ""), bearer=True)
    visitor.read_event_stream()
    assert visitor.patterns_seen == {}
