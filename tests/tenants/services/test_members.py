"""Members, invitations and service accounts: concurrent changes and refusals."""

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.db import connections

from ports import mail
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import AuditEvent, Member
from tenants.services import invitations, members, rls, service_accounts, tokens
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import NotAllowed, ObjectNotFound, StaleVersion
from tenants.services.projects import NameTaken
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ALL_ROLES, TenantWithOwner, current_time

AS_SYSTEM = {"grants": ALL_ROLES, "actor": SYSTEM}


@pytest.fixture
def delta(db: None) -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def events(world: TenantWithOwner, action: str) -> int:
    with rls.tenant_scope(world.tenant.pk):
        return AuditEvent.objects.filter(action=action).count()


def test_a_second_membership_of_the_same_tenant_is_refused(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk), pytest.raises(members.AlreadyMember):
        members.add(
            tenant=delta.tenant,
            user=delta.owner,
            role=Role.VIEWER,
            project=None,
            actor=SYSTEM,
            now=current_time(),
        )


def test_setting_the_same_role_again_changes_nothing(delta: TenantWithOwner) -> None:
    member = delta.membership(delta.user_with_role(Role.VIEWER))
    with rls.tenant_scope(delta.tenant.pk):
        members.change_role(member, role=Role.VIEWER, now=current_time(), **AS_SYSTEM)
    assert events(delta, "member.role") == 0


def test_a_role_change_of_a_stale_membership_is_refused(delta: TenantWithOwner) -> None:
    user = delta.user_with_role(Role.VIEWER)
    first, second = delta.membership(user), delta.membership(user)
    with rls.tenant_scope(delta.tenant.pk):
        members.change_role(first, role=Role.MEMBER, now=current_time(), **AS_SYSTEM)
        with pytest.raises(StaleVersion):
            members.change_role(second, role=Role.ADMIN, now=current_time(), **AS_SYSTEM)


def test_an_admin_cannot_grant_the_owner_role(delta: TenantWithOwner) -> None:
    admin = RoleGrants((RoleGrant(Role.ADMIN),))
    with rls.tenant_scope(delta.tenant.pk), pytest.raises(NotAllowed):
        members.require_may_give(admin, Role.OWNER, None)


def test_a_user_with_another_membership_keeps_their_tokens(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    user = delta.user_with_role(Role.VIEWER)
    text = delta.token(Role.VIEWER)
    with rls.tenant_scope(delta.tenant.pk):
        both = members.add(
            tenant=delta.tenant, user=user, role=Role.MEMBER, project=lab, actor=SYSTEM, now=current_time()
        )
        members.remove(both, now=current_time(), **AS_SYSTEM)
    assert tenant_setup.ApiClient(text).send("GET", "users/me").status_code == 200


def test_one_of_two_owners_can_be_removed(delta: TenantWithOwner) -> None:
    second = tenant_setup.User.objects.create_user("second@example.org")
    with rls.tenant_scope(delta.tenant.pk):
        members.add(tenant=delta.tenant, user=second, role=Role.OWNER, project=None, actor=SYSTEM, now=current_time())
        members.remove(delta.membership(delta.owner), now=current_time(), **AS_SYSTEM)
        assert list(Member.objects.values_list("user_id", flat=True)) == [second.pk]


def test_a_project_owner_can_always_be_removed(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    user = delta.user_with_role(Role.OWNER, project=lab)
    with rls.tenant_scope(delta.tenant.pk):
        members.remove(Member.objects.get(user=user), now=current_time(), **AS_SYSTEM)
        assert not Member.objects.filter(user=user).exists()


@pytest.mark.deep
def test_two_owners_leaving_concurrently_leave_one_owner(own_database: object, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    second = tenant_setup.User.objects.create_user("second@example.org")
    with rls.tenant_scope(delta.tenant.pk):
        members.add(tenant=delta.tenant, user=second, role=Role.OWNER, project=None, actor=SYSTEM, now=current_time())
    outcomes, ready = [], threading.Barrier(2)
    looked, record = threading.Barrier(2), members._record

    def slowly(*args: object, **kwargs: object) -> None:
        with suppress(threading.BrokenBarrierError):  # held back by the lock, the other never comes
            looked.wait(2)
        record(*args, **kwargs)

    monkeypatch.setattr(members, "_record", slowly)

    def leave(user: object) -> None:
        try:
            ready.wait()
            with rls.tenant_scope(delta.tenant.pk):
                members.remove(delta.membership(user), now=current_time(), **AS_SYSTEM)
            outcomes.append("left")
        except members.LastOwner:
            outcomes.append("stays")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=leave, args=[user]) for user in (delta.owner, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["left", "stays"]


def test_an_invitation_email_has_its_link_and_the_role_description(own_database: object) -> None:
    delta, letters = tenant_setup.create_tenant_with_owner("Delta"), []
    with mail.captured_mail(lambda *letter: letters.append(letter)), rls.tenant_scope(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="X@example.org",
            role=Role.VIEWER,
            project=None,
            now=current_time(),
            **AS_SYSTEM,
        )
    ((to, subject, text),) = letters
    assert (to, subject) == ("x@example.org", "Delta invites you to gpubroker")
    assert f"/join/{secret}/" in text
    assert "can view leases" in text


def test_concurrent_acceptances_of_an_invitation_add_one_member(own_database: object) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    with rls.tenant_scope(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=current_time(),
            **AS_SYSTEM,
        )
    users = [tenant_setup.User.objects.create_user(f"u{n}@example.org") for n in range(8)]
    outcomes, ready = [], threading.Barrier(8)

    def click(user: object) -> None:
        try:
            ready.wait()
            invitations.accept(secret, user=user, actor=SYSTEM, now=current_time())
            outcomes.append("in")
        except ObjectNotFound:
            outcomes.append("late")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=click, args=[user]) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["in"] + ["late"] * 7


def test_an_expired_or_revoked_invitation_cannot_be_used(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        invitation, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=current_time(),
            **AS_SYSTEM,
        )
    with pytest.raises(ObjectNotFound):
        invitations.find_offer(secret, now=current_time() + timedelta(days=8))
    with rls.tenant_scope(delta.tenant.pk):
        invitations.revoke(invitation, actor=SYSTEM, now=current_time())
        invitations.revoke(invitation, actor=SYSTEM, now=current_time())
    assert events(delta, "invitation.revoke") == 1
    with pytest.raises(ObjectNotFound):
        invitations.find_offer(secret, now=current_time())


def test_an_invitation_revoked_before_its_acceptance_is_refused(
    delta: TenantWithOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        invitation, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=current_time(),
            **AS_SYSTEM,
        )
    offer = invitations.find_offer(secret, now=current_time())
    with rls.tenant_scope(delta.tenant.pk):
        invitations.revoke(invitation, actor=SYSTEM, now=current_time())
    monkeypatch.setattr(invitations, "find_offer", lambda secret, now: offer)
    user = tenant_setup.User.objects.create_user("late@example.org")
    with pytest.raises(ObjectNotFound, match="already been used"):
        invitations.accept(secret, user=user, actor=SYSTEM, now=current_time())


def create_invitation(
    world: TenantWithOwner, by: object, role: Role, project: tenant_setup.Project | None = None
) -> str:
    """Return the secret of an invitation that a user created."""
    with rls.tenant_scope(world.tenant.pk):
        _, secret = invitations.invite(
            tenant=world.tenant,
            email="x@example.org",
            role=role,
            project=project,
            grants=ALL_ROLES,
            actor=Actor("user", by.pk, by.email),  # type: ignore[attr-defined]
            now=current_time(),
        )
    return secret


def verified_user(address: str, *, verified: bool = True) -> tenant_setup.User:
    user = tenant_setup.User.objects.create_user(address)
    EmailAddress.objects.create(user=user, email=address, verified=verified, primary=True)
    return user


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN, Role.BILLING])
def test_a_privileged_role_needs_the_invited_verified_address(delta: TenantWithOwner, role: Role) -> None:
    secret = create_invitation(delta, delta.owner, role)
    for user in (verified_user("mallory@example.org"), verified_user("x@example.org", verified=False)):
        with pytest.raises(invitations.WrongAddress, match="only to x@"):
            invitations.accept(secret, user=user, actor=SYSTEM, now=current_time())
    assert is_valid_invitation(secret)
    EmailAddress.objects.filter(email="x@example.org").update(verified=True)
    joined = invitations.accept(secret, user=user, actor=SYSTEM, now=current_time())
    assert (joined.user_id, joined.role) == (user.pk, role)


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER])
def test_other_roles_are_links_for_whoever_opens_them(delta: TenantWithOwner, role: Role) -> None:
    secret = create_invitation(delta, delta.owner, role)
    user = tenant_setup.User.objects.create_user("friend@example.org")
    assert invitations.accept(secret, user=user, actor=SYSTEM, now=current_time()).role == role


def test_owners_are_told_who_came_in(own_database: object) -> None:
    delta, letters = tenant_setup.create_tenant_with_owner("Delta"), []
    secret = create_invitation(delta, delta.owner, Role.VIEWER)
    friend = tenant_setup.User.objects.create_user("friend@example.org")
    with mail.captured_mail(lambda *letter: letters.append(letter)):
        invitations.accept(secret, user=friend, actor=SYSTEM, now=current_time())
    ((to, subject, text),) = letters
    assert (to, subject) == (delta.owner.email, "friend@example.org joined Delta")
    assert "with the role viewer, by an invitation to x@example.org" in text
    assert "/team/" in text


def is_valid_invitation(secret: str) -> bool:
    try:
        return bool(invitations.find_offer(secret, now=current_time()))
    except ObjectNotFound:
        return False


def test_a_removed_member_cannot_return_by_their_own_invitation(delta: TenantWithOwner) -> None:
    admin = delta.user_with_role(Role.ADMIN)
    used, theirs, others = (create_invitation(delta, who, Role.ADMIN) for who in (admin, admin, delta.owner))
    friend = verified_user("x@example.org")
    invitations.accept(used, user=friend, actor=SYSTEM, now=current_time())
    with rls.tenant_scope(delta.tenant.pk):
        members.remove(delta.membership(admin), now=current_time(), **AS_SYSTEM)
    assert [is_valid_invitation(theirs), is_valid_invitation(others)] == [False, True]
    with pytest.raises(ObjectNotFound):
        invitations.accept(theirs, user=admin, actor=SYSTEM, now=current_time())
    assert events(delta, "invitation.revoke") == 1
    with rls.tenant_scope(delta.tenant.pk):
        assert not Member.objects.filter(user=admin).exists()
        assert Member.objects.filter(user=friend).exists()


def test_a_lower_role_revokes_only_invitations_beyond_it(delta: TenantWithOwner) -> None:
    admin, lab = delta.user_with_role(Role.ADMIN), delta.create_project("lab")
    with rls.tenant_scope(delta.tenant.pk):
        members.add(tenant=delta.tenant, user=admin, role=Role.ADMIN, project=lab, actor=SYSTEM, now=current_time())
    of_all, of_lab = create_invitation(delta, admin, Role.ADMIN), create_invitation(delta, admin, Role.MEMBER, lab)
    with rls.tenant_scope(delta.tenant.pk):
        members.change_role(delta.membership(admin), role=Role.VIEWER, now=current_time(), **AS_SYSTEM)
    assert [is_valid_invitation(of_all), is_valid_invitation(of_lab)] == [False, True]


def test_service_account_tokens_are_revoked_with_their_creator_only_on_request(delta: TenantWithOwner) -> None:
    admin, robot = delta.user_with_role(Role.ADMIN), delta.create_service_account()
    by_admin = Actor("user", admin.pk, admin.email)
    lead = RoleGrants((RoleGrant(Role.OWNER, (delta.root.pk,)),))
    with rls.tenant_scope(delta.tenant.pk):
        for ends in (timedelta(days=7), timedelta(seconds=1)):
            tokens.issue(
                tenant=delta.tenant,
                name="nightly",
                scopes=["leases:read"],
                expires_at=current_time() + ends,
                actor=by_admin,
                now=current_time(),
                service_account=robot,
            )
        who = {"tenant": delta.tenant, "user_id": admin.pk, "now": current_time() + timedelta(hours=1)}
        with pytest.raises(NotAllowed):
            tokens.revoke_tokens_known_to(grants=lead, actor=SYSTEM, **who)
        tokens.issue(
            tenant=delta.tenant,
            name="made with the first",
            scopes=["leases:read"],
            expires_at=current_time() + timedelta(days=7),
            actor=Actor("service_account", robot.pk, robot.name),
            now=current_time(),
            service_account=robot,
        )
        assert [token.name for token in tokens.tokens_known_to(**who)] == ["nightly", "made with the first"]
        members.remove(delta.membership(admin), now=who["now"], with_machines=True, **AS_SYSTEM)
        assert len(tokens.tokens_known_to(**who)) == 0
    assert events(delta, "token.revoke") == 2


def test_service_account_changes_are_validated_and_audited_once(delta: TenantWithOwner) -> None:
    robot = delta.create_service_account()
    with pytest.raises(NameTaken):
        delta.create_service_account()
    with rls.tenant_scope(delta.tenant.pk):
        service_accounts.change_role(robot, role=Role.MEMBER, now=current_time(), **AS_SYSTEM)
        assert events(delta, "service_account.role") == 0
        again = type(robot).objects.get(pk=robot.pk)
        service_accounts.change_role(robot, role=Role.VIEWER, now=current_time(), **AS_SYSTEM)
        with pytest.raises(StaleVersion):
            service_accounts.change_role(again, role=Role.ADMIN, now=current_time(), **AS_SYSTEM)
        service_accounts.close(robot, now=current_time(), **AS_SYSTEM)
        service_accounts.close(robot, now=current_time(), **AS_SYSTEM)
    assert events(delta, "service_account.close") == 1
