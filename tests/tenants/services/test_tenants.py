"""Tenants, projects, quotas and tokens: refusals, repeats, stale versions."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client

from tenants.domain.roles import RoleGrants
from tenants.models import AuditEvent, Project, Quota, QuotaKind, Tenant
from tenants.services import audit, cleanup, idempotency, projects, quotas, rls, tenants, tokens
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import InvalidValue, NotAllowed, ProjectArchived, StaleVersion
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time

OPERATOR = Actor("staff", "usr_x", "operator@example.org")


@pytest.fixture
def delta(db: None) -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def actions(world: TenantWithOwner) -> list[str]:
    with rls.tenant_scope(world.tenant.pk):
        return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_a_tenant_can_be_created_without_an_owner(db: None) -> None:
    with rls.tenant_scope(""):
        tenant, root = tenants.create(name="Empty", owner=None, actor=SYSTEM, now=current_time())
        assert root.path == [root.pk]
        assert (tenant.time_zone, tenant.currency) == ("UTC", "EUR")


def test_an_unknown_time_zone_of_a_tenant_is_refused(db: None) -> None:
    with pytest.raises(InvalidValue, match="is not a time zone"):
        tenants.create(name="X", owner=None, time_zone="Mars/Base", actor=SYSTEM, now=current_time())


@pytest.mark.parametrize("zone", ["CET", "EST5EDT", "Etc/GMT+5", "US/Eastern", "Australia/South", "localtime"])
def test_a_tenant_time_zone_without_a_region_is_refused(delta: TenantWithOwner, zone: str) -> None:
    with pytest.raises(InvalidValue, match=r"not a region's time zone|not a time zone"):
        tenants.create(name="X", owner=None, time_zone=zone, actor=SYSTEM, now=current_time())
    with rls.tenant_scope(delta.tenant.pk), pytest.raises(InvalidValue):
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), time_zone=zone)


def test_an_existing_tenant_keeps_an_unpermitted_time_zone(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        Tenant.objects.update(time_zone="CET")
        old = Tenant.objects.get()
        changed = tenants.change(old, actor=SYSTEM, now=current_time(), name="New", time_zone="CET")
        assert (changed.name, changed.time_zone) == ("New", "CET")


def test_an_unexpected_integrity_error_is_not_converted(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk), pytest.raises(IntegrityError):
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), currency=None)


def test_a_change_without_a_difference_is_not_audited(delta: TenantWithOwner) -> None:
    before = actions(delta)
    with rls.tenant_scope(delta.tenant.pk):
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), name="Delta")
    assert actions(delta) == before


def test_a_stale_tenant_is_not_changed(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        old = Tenant.objects.get()
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), name="New")
        with pytest.raises(StaleVersion):
            tenants.change(old, actor=SYSTEM, now=current_time(), name="Newer")


def test_a_tenant_is_suspended_and_resumed_once_each(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        for verb in (tenants.suspend, tenants.suspend, tenants.resume, tenants.resume):
            verb(delta.tenant, actor=OPERATOR, now=current_time(), why="test")
    assert [a for a in actions(delta) if "sus" in a or "res" in a] == ["tenant.suspend", "tenant.resume"]
    assert delta.tenant.suspended_at is None


def test_project_changes_are_validated_and_audited_once(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    with rls.tenant_scope(delta.tenant.pk):
        before = actions(delta)
        projects.rename(lab, name="lab", actor=SYSTEM, now=current_time())
        assert actions(delta) == before
        old = Project.objects.get(pk=lab.pk)
        projects.rename(lab, name="lab2", actor=SYSTEM, now=current_time())
        with pytest.raises(StaleVersion):
            projects.rename(old, name="lab3", actor=SYSTEM, now=current_time())
    delta.create_project("bench")
    with rls.tenant_scope(delta.tenant.pk):
        with pytest.raises(projects.NameTaken):
            projects.rename(lab, name="bench", actor=SYSTEM, now=current_time())
        projects.archive(lab, actor=SYSTEM, now=current_time())
        closed = actions(delta)
        projects.archive(lab, actor=SYSTEM, now=current_time())
        assert actions(delta) == closed
        with pytest.raises(ProjectArchived):
            projects.create(parent=lab, name="x", actor=SYSTEM, now=current_time())


def test_only_operators_set_the_quota_of_the_root_project(delta: TenantWithOwner) -> None:
    mine = Actor("user", delta.owner.pk)
    with rls.tenant_scope(delta.tenant.pk):
        with pytest.raises(NotAllowed, match="operators"):
            quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=1, actor=mine, now=current_time())
        quota = quotas.set_limit(
            project=delta.root, kind=QuotaKind.UNITS, limit=9000, actor=OPERATOR, now=current_time()
        )
        assert quota.soft_limit == 9000
        before = actions(delta)
        quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=9000, actor=OPERATOR, now=current_time())
        assert actions(delta) == before


def test_free_quota_is_that_of_the_tightest_quota_on_the_path(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    with rls.tenant_scope(delta.tenant.pk):
        quotas.set_limit(project=lab, kind=QuotaKind.UNITS, limit=50_000, actor=OPERATOR, now=current_time())
        quotas.set_limit(project=lab, kind=QuotaKind.BURN, limit=7, actor=OPERATOR, now=current_time())
        Quota.objects.filter(project=delta.root).update(used=10_000)
        rooms = {room.kind: room for room in quotas.remaining_quotas([lab, delta.root], now=current_time())[lab.pk]}
    assert rooms["units"].project_id == delta.root.pk
    assert rooms["units"].free == 4000
    assert rooms["burn"].free == 7


def test_a_token_needs_valid_scopes_and_an_expiry_within_a_year(delta: TenantWithOwner) -> None:
    good = {"scopes": ["leases:read"], "expires_at": current_time() + timedelta(days=1)}
    for change in (
        {"scopes": ["root"]},
        {"scopes": []},
        {"expires_at": current_time()},
        {"expires_at": current_time() + timedelta(days=400)},
    ):
        with rls.tenant_scope(delta.tenant.pk), pytest.raises(InvalidValue):
            tokens.issue(
                tenant=delta.tenant,
                name="x",
                actor=SYSTEM,
                now=current_time(),
                user_id=delta.owner.pk,
                **{**good, **change},
            )


def test_revoking_a_token_twice_is_audited_once(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        token, _ = tokens.issue(
            tenant=delta.tenant,
            name="x",
            scopes=["leases:read"],
            expires_at=current_time() + timedelta(days=1),
            actor=SYSTEM,
            now=current_time(),
            user_id=delta.owner.pk,
        )
        tokens.revoke(token, actor=SYSTEM, now=current_time())
        tokens.revoke(token, actor=SYSTEM, now=current_time())
    assert actions(delta).count("token.revoke") == 1


def test_a_token_creates_tokens_only_within_its_scopes(delta: TenantWithOwner) -> None:
    tokens.require_within(RoleGrants(), ["tenant:admin"], None)  # a session is not limited
    reads = RoleGrants(scopes=frozenset({"leases:read", "projects:write"}))
    tokens.require_within(reads, ["leases:read", "projects:read", "projects:write"], None)
    with pytest.raises(NotAllowed):
        tokens.require_within(reads, ["leases:write"], None)
    with pytest.raises(NotAllowed):
        tokens.require_within(reads, ["tenant:admin"], None)


def test_a_second_request_with_one_idempotency_key_is_refused(delta: TenantWithOwner) -> None:
    wanted = idempotency.KeyedRequest(delta.tenant.pk, "usr_x", "POST", "/x", "k", "d")
    with rls.tenant_scope(delta.tenant.pk):
        idempotency.store_record(wanted, status=201, headers={}, body="{}", now=current_time())
    with pytest.raises(idempotency.RequestInFlight), rls.tenant_scope(delta.tenant.pk):
        idempotency.store_record(wanted, status=201, headers={}, body="{}", now=current_time())


def test_a_recent_audit_record_of_an_operator_is_found(db: None) -> None:
    audit.record("ops.map", actor=OPERATOR, now=current_time())
    with rls.staff_scope():
        assert audit.was_recorded("ops.map", actor=OPERATOR, since=current_time() - timedelta(minutes=1))
        assert not audit.was_recorded("ops.gpus", actor=OPERATOR, since=current_time() - timedelta(minutes=1))


def test_rls_scopes_open_and_close(delta: TenantWithOwner) -> None:
    tenant_setup.leave_tenant()
    assert not Project.objects.exists()
    with rls.staff_scope():
        assert Project.objects.count() == 1
    with rls.system_scope():
        assert Project.objects.count() == 1
    with rls.auth_scope():
        assert Project.objects.count() == 1
    assert not Project.objects.exists()


@pytest.mark.parametrize("scope", ["staff", "system", "auth"])
def test_cross_tenant_scopes_have_their_own_role_and_are_read_only(delta: TenantWithOwner, scope: str) -> None:
    with getattr(rls, f"{scope}_scope")():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user")
            assert cursor.fetchone()[0] == f"gpubroker_{scope}"
        for change in (lambda: Project.objects.update(name="x"), lambda: Project.objects.all().delete()):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                change()


def test_expired_sessions_are_deleted(delta: TenantWithOwner) -> None:
    from tenants.tasks import delete_expired_rows

    browser = Client()
    browser.force_login(delta.owner)
    delete_expired_rows()
    assert Session.objects.count() == 1
    assert cleanup.delete_expired(now=current_time() + timedelta(days=1)) == 1
    assert not Session.objects.exists()


def test_a_cross_tenant_scope_ends_with_its_transaction(own_database: object) -> None:
    tenant_setup.create_tenant_with_owner("Delta")
    with rls.system_scope():
        assert Project.objects.count() == 1
    assert not Project.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone()[0] == "gpubroker_web"
