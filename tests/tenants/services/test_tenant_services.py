"""Verbs about tenants, projects, quotas and tokens: what is refused, what is repeated, what is stale."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client

from tenants.domain.roles import Grants
from tenants.models import AuditEvent, Project, Quota, QuotaKind, Tenant
from tenants.services import answers, audit, projects, quotas, tenants, tidying, tokens, walls
from tenants.services.actors import SYSTEM, Actor
from tenants.services.refusals import Invalid, NotAllowed, Stale
from tests.tenants import people
from tests.tenants.people import World, moment

OPERATOR = Actor("staff", "usr_x", "operator@example.org")


@pytest.fixture
def delta(db: None) -> World:
    return people.make("Delta")


def actions(world: World) -> list[str]:
    with walls.as_tenant(world.tenant.pk):
        return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_a_tenant_may_begin_without_an_owner(db: None) -> None:
    with walls.as_tenant(""):
        tenant, root = tenants.create(name="Empty", owner=None, actor=SYSTEM, now=moment())
        assert root.path == [root.pk]
        assert (tenant.time_zone, tenant.currency) == ("UTC", "EUR")


def test_a_time_zone_must_be_one(db: None) -> None:
    with pytest.raises(Invalid, match="no time zone"):
        tenants.create(name="X", owner=None, time_zone="Mars/Base", actor=SYSTEM, now=moment())


@pytest.mark.parametrize(
    "zone", ["CET", "EST5EDT", "Etc/GMT+5", "US/Eastern", "Australia/South", "localtime"]
)
def test_a_tenant_lives_in_a_city_or_in_utc(delta: World, zone: str) -> None:
    with pytest.raises(Invalid, match=r"no city's clock|no time zone"):
        tenants.create(name="X", owner=None, time_zone=zone, actor=SYSTEM, now=moment())
    with walls.as_tenant(delta.tenant.pk), pytest.raises(Invalid):
        tenants.change(delta.tenant, actor=SYSTEM, now=moment(), time_zone=zone)


def test_a_tenant_of_the_first_days_keeps_the_zone_it_has(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        Tenant.objects.update(time_zone="CET")
        old = Tenant.objects.get()
        changed = tenants.change(old, actor=SYSTEM, now=moment(), name="New", time_zone="CET")
        assert (changed.name, changed.time_zone) == ("New", "CET")


def test_a_change_that_the_database_refuses_for_another_reason_is_no_refusal_of_ours(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk), pytest.raises(IntegrityError):
        tenants.change(delta.tenant, actor=SYSTEM, now=moment(), currency=None)


def test_a_change_to_what_it_is_changes_nothing(delta: World) -> None:
    before = actions(delta)
    with walls.as_tenant(delta.tenant.pk):
        tenants.change(delta.tenant, actor=SYSTEM, now=moment(), name="Delta")
    assert actions(delta) == before


def test_a_stale_tenant_is_not_changed(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        old = Tenant.objects.get()
        tenants.change(delta.tenant, actor=SYSTEM, now=moment(), name="New")
        with pytest.raises(Stale):
            tenants.change(old, actor=SYSTEM, now=moment(), name="Newer")


def test_a_tenant_is_suspended_and_resumed_once_each(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        for verb in (tenants.suspend, tenants.suspend, tenants.resume, tenants.resume):
            verb(delta.tenant, actor=OPERATOR, now=moment(), why="test")
    assert [a for a in actions(delta) if "sus" in a or "res" in a] == ["tenant.suspend", "tenant.resume"]
    assert delta.tenant.suspended_at is None


def test_projects_keep_their_rules(delta: World) -> None:
    lab = delta.child("lab")
    with walls.as_tenant(delta.tenant.pk):
        before = actions(delta)
        projects.rename(lab, name="lab", actor=SYSTEM, now=moment())
        assert actions(delta) == before
        old = Project.objects.get(pk=lab.pk)
        projects.rename(lab, name="lab2", actor=SYSTEM, now=moment())
        with pytest.raises(Stale):
            projects.rename(old, name="lab3", actor=SYSTEM, now=moment())
    delta.child("bench")
    with walls.as_tenant(delta.tenant.pk):
        with pytest.raises(projects.NameTaken):
            projects.rename(lab, name="bench", actor=SYSTEM, now=moment())
        projects.archive(lab, actor=SYSTEM, now=moment())
        closed = actions(delta)
        projects.archive(lab, actor=SYSTEM, now=moment())
        assert actions(delta) == closed
        with pytest.raises(projects.TreeRefused, match="archived"):
            projects.create(parent=lab, name="x", actor=SYSTEM, now=moment())


def test_the_roots_quota_is_the_operators_word(delta: World) -> None:
    mine = Actor("user", delta.owner.pk)
    with walls.as_tenant(delta.tenant.pk):
        with pytest.raises(NotAllowed, match="operators"):
            quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=1, actor=mine, now=moment())
        quota = quotas.set_limit(
            project=delta.root, kind=QuotaKind.UNITS, limit=9000, actor=OPERATOR, now=moment()
        )
        assert quota.soft_limit == 9000
        before = actions(delta)
        quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=9000, actor=OPERATOR, now=moment())
        assert actions(delta) == before


def test_the_tightest_quota_on_the_path_decides_what_is_free(delta: World) -> None:
    lab = delta.child("lab")
    with walls.as_tenant(delta.tenant.pk):
        quotas.set_limit(project=lab, kind=QuotaKind.UNITS, limit=50_000, actor=OPERATOR, now=moment())
        quotas.set_limit(project=lab, kind=QuotaKind.BURN, limit=7, actor=OPERATOR, now=moment())
        Quota.objects.filter(project=delta.root).update(used=10_000)
        rooms = {room.kind: room for room in quotas.room([lab, delta.root], now=moment())[lab.pk]}
    assert rooms["units"].project_id == delta.root.pk
    assert rooms["units"].free == 4000
    assert rooms["burn"].free == 7


def test_a_token_needs_scopes_that_exist_and_an_end_within_a_year(delta: World) -> None:
    good = {"scopes": ["leases:read"], "expires_at": moment() + timedelta(days=1)}
    for change in (
        {"scopes": ["root"]},
        {"scopes": []},
        {"expires_at": moment()},
        {"expires_at": moment() + timedelta(days=400)},
    ):
        with walls.as_tenant(delta.tenant.pk), pytest.raises(Invalid):
            tokens.issue(
                tenant=delta.tenant,
                name="x",
                actor=SYSTEM,
                now=moment(),
                user_id=delta.owner.pk,
                **{**good, **change},
            )


def test_a_token_is_revoked_once(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        token, _ = tokens.issue(
            tenant=delta.tenant,
            name="x",
            scopes=["leases:read"],
            expires_at=moment() + timedelta(days=1),
            actor=SYSTEM,
            now=moment(),
            user_id=delta.owner.pk,
        )
        tokens.revoke(token, actor=SYSTEM, now=moment())
        tokens.revoke(token, actor=SYSTEM, now=moment())
    assert actions(delta).count("token.revoke") == 1


def test_a_token_with_the_right_scopes_makes_one_like_itself(delta: World) -> None:
    tokens.not_beyond(Grants(), ["tenant:admin"], None)  # a session is not limited
    reads = Grants(scopes=frozenset({"leases:read", "projects:write"}))
    tokens.not_beyond(reads, ["leases:read", "projects:read", "projects:write"], None)
    with pytest.raises(NotAllowed):
        tokens.not_beyond(reads, ["leases:write"], None)
    with pytest.raises(NotAllowed):
        tokens.not_beyond(reads, ["tenant:admin"], None)


def test_a_second_effect_under_one_key_is_undone(delta: World) -> None:
    asked = answers.Asked(delta.tenant.pk, "usr_x", "POST", "/x", "k", "d")
    with walls.as_tenant(delta.tenant.pk):
        answers.keep(asked, status=201, headers={}, body="{}", now=moment())
    with pytest.raises(answers.InFlight), walls.as_tenant(delta.tenant.pk):
        answers.keep(asked, status=201, headers={}, body="{}", now=moment())


def test_what_an_operator_looked_at_lately_is_remembered(db: None) -> None:
    audit.record("ops.map", actor=OPERATOR, now=moment())
    with walls.as_staff():
        assert audit.noted("ops.map", actor=OPERATOR, since=moment() - timedelta(minutes=1))
        assert not audit.noted("ops.cards", actor=OPERATOR, since=moment() - timedelta(minutes=1))


def test_the_walls_open_and_close(delta: World) -> None:
    people.close_wall()
    assert not Project.objects.exists()
    with walls.as_staff():
        assert Project.objects.count() == 1
    with walls.as_sweep():
        assert Project.objects.count() == 1
    with walls.as_door():
        assert Project.objects.count() == 1
    assert not Project.objects.exists()


@pytest.mark.parametrize("wall", ["staff", "sweep", "door"])
def test_who_looks_across_tenants_does_so_under_a_name_of_its_own_and_changes_nothing(
    delta: World, wall: str
) -> None:
    with getattr(walls, f"as_{wall}")():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user")
            assert cursor.fetchone()[0] == f"gpubroker_{wall}"
        for change in (lambda: Project.objects.update(name="x"), lambda: Project.objects.all().delete()):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                change()


def test_sessions_that_ended_are_forgotten(delta: World) -> None:
    from tenants.tasks import tidy

    browser = Client()
    browser.force_login(delta.owner)
    tidy()
    assert Session.objects.count() == 1
    assert tidying.forget_old(now=moment() + timedelta(days=1)) == 1
    assert not Session.objects.exists()


def test_a_wider_role_ends_with_its_transaction(own_database: object) -> None:
    people.make("Delta")
    with walls.as_sweep():
        assert Project.objects.count() == 1
    assert not Project.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone()[0] == "gpubroker_web"
