"""Verbs about people: what stays true when two hands move at once, and what is refused."""

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connections

from ports import mail
from tenants.domain.roles import Grant, Grants, Role
from tenants.models import AuditEvent, Member
from tenants.services import invitations, members, service_accounts, tokens, walls
from tenants.services.actors import SYSTEM, Actor
from tenants.services.projects import NameTaken
from tenants.services.refusals import Missing, NotAllowed, Stale
from tests.tenants import people
from tests.tenants.people import ALL, World, moment

WHO = {"grants": ALL, "actor": SYSTEM}


@pytest.fixture
def delta(db: None) -> World:
    return people.make("Delta")


def events(world: World, action: str) -> int:
    with walls.as_tenant(world.tenant.pk):
        return AuditEvent.objects.filter(action=action).count()


def test_nobody_is_member_of_one_node_twice(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk), pytest.raises(members.AlreadyMember):
        members.add(
            tenant=delta.tenant,
            user=delta.owner,
            role=Role.VIEWER,
            project=None,
            actor=SYSTEM,
            now=moment(),
        )


def test_the_same_role_again_changes_nothing(delta: World) -> None:
    member = delta.membership(delta.person(Role.VIEWER))
    with walls.as_tenant(delta.tenant.pk):
        members.change_role(member, role=Role.VIEWER, now=moment(), **WHO)
    assert events(delta, "member.role") == 0


def test_a_change_of_what_was_changed_meanwhile_is_refused(delta: World) -> None:
    user = delta.person(Role.VIEWER)
    first, second = delta.membership(user), delta.membership(user)
    with walls.as_tenant(delta.tenant.pk):
        members.change_role(first, role=Role.MEMBER, now=moment(), **WHO)
        with pytest.raises(Stale):
            members.change_role(second, role=Role.ADMIN, now=moment(), **WHO)


def test_a_role_above_ones_own_cannot_be_given(delta: World) -> None:
    admin = Grants((Grant(Role.ADMIN),))
    with walls.as_tenant(delta.tenant.pk), pytest.raises(NotAllowed):
        members.must_give(admin, Role.OWNER, None)


def test_somebody_with_two_memberships_keeps_their_tokens_when_one_ends(delta: World) -> None:
    lab = delta.child("lab")
    user = delta.person(Role.VIEWER)
    text = delta.token(Role.VIEWER)
    with walls.as_tenant(delta.tenant.pk):
        both = members.add(
            tenant=delta.tenant, user=user, role=Role.MEMBER, project=lab, actor=SYSTEM, now=moment()
        )
        members.remove(both, now=moment(), **WHO)
    assert people.Api(text).ask("GET", "users/me").status_code == 200


def test_one_of_two_owners_may_go(delta: World) -> None:
    second = people.User.objects.create_user("second@example.org")
    with walls.as_tenant(delta.tenant.pk):
        members.add(
            tenant=delta.tenant, user=second, role=Role.OWNER, project=None, actor=SYSTEM, now=moment()
        )
        members.remove(delta.membership(delta.owner), now=moment(), **WHO)
        assert list(Member.objects.values_list("user_id", flat=True)) == [second.pk]


def test_an_owner_of_a_project_alone_may_always_go(delta: World) -> None:
    lab = delta.child("lab")
    user = delta.person(Role.OWNER, project=lab)
    with walls.as_tenant(delta.tenant.pk):
        members.remove(Member.objects.get(user=user), now=moment(), **WHO)
        assert not Member.objects.filter(user=user).exists()


def test_two_owners_who_leave_at_once_leave_one(
    own_database: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = people.make("Delta")
    second = people.User.objects.create_user("second@example.org")
    with walls.as_tenant(delta.tenant.pk):
        members.add(
            tenant=delta.tenant, user=second, role=Role.OWNER, project=None, actor=SYSTEM, now=moment()
        )
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
            with walls.as_tenant(delta.tenant.pk):
                members.remove(delta.membership(user), now=moment(), **WHO)
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


def test_an_invitation_is_mailed_with_its_link_and_what_the_role_may(own_database: object) -> None:
    delta, letters = people.make("Delta"), []
    with mail.carried_by(lambda *letter: letters.append(letter)), walls.as_tenant(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="X@example.org",
            role=Role.VIEWER,
            project=None,
            now=moment(),
            **WHO,
        )
    ((to, subject, text),) = letters
    assert (to, subject) == ("x@example.org", "Delta invites you to gpubroker")
    assert f"/join/{secret}/" in text
    assert "may look at leases" in text


def test_an_invitation_clicked_twice_at_once_makes_one_member(own_database: object) -> None:
    delta = people.make("Delta")
    with walls.as_tenant(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=moment(),
            **WHO,
        )
    users = [people.User.objects.create_user(f"u{n}@example.org") for n in range(8)]
    outcomes, ready = [], threading.Barrier(8)

    def click(user: object) -> None:
        try:
            ready.wait()
            invitations.accept(secret, user=user, actor=SYSTEM, now=moment())
            outcomes.append("in")
        except Missing:
            outcomes.append("late")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=click, args=[user]) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["in"] + ["late"] * 7


def test_an_invitation_that_expired_or_was_taken_back_opens_nothing(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        invitation, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=moment(),
            **WHO,
        )
    with pytest.raises(Missing):
        invitations.look(secret, now=moment() + timedelta(days=8))
    with walls.as_tenant(delta.tenant.pk):
        invitations.revoke(invitation, actor=SYSTEM, now=moment())
        invitations.revoke(invitation, actor=SYSTEM, now=moment())
    assert events(delta, "invitation.revoke") == 1
    with pytest.raises(Missing):
        invitations.look(secret, now=moment())


def test_a_link_used_between_looking_and_accepting_is_refused(
    delta: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walls.as_tenant(delta.tenant.pk):
        invitation, secret = invitations.invite(
            tenant=delta.tenant,
            email="x@example.org",
            role=Role.VIEWER,
            project=None,
            now=moment(),
            **WHO,
        )
    offer = invitations.look(secret, now=moment())
    with walls.as_tenant(delta.tenant.pk):
        invitations.revoke(invitation, actor=SYSTEM, now=moment())
    monkeypatch.setattr(invitations, "look", lambda secret, now: offer)
    user = people.User.objects.create_user("late@example.org")
    with pytest.raises(Missing, match="used meanwhile"):
        invitations.accept(secret, user=user, actor=SYSTEM, now=moment())


def offered(world: World, by: object, role: Role, project: people.Project | None = None) -> str:
    """Return the secret of a link that somebody made, and was shown."""
    with walls.as_tenant(world.tenant.pk):
        _, secret = invitations.invite(
            tenant=world.tenant,
            email="x@example.org",
            role=role,
            project=project,
            grants=ALL,
            actor=Actor("user", by.pk, by.email),  # type: ignore[attr-defined]
            now=moment(),
        )
    return secret


def opens(secret: str) -> bool:
    try:
        return bool(invitations.look(secret, now=moment()))
    except Missing:
        return False


def test_who_was_removed_does_not_come_back_by_a_link_of_their_own(delta: World) -> None:
    admin = delta.person(Role.ADMIN)
    used, theirs, others = (offered(delta, who, Role.ADMIN) for who in (admin, admin, delta.owner))
    friend = people.User.objects.create_user("friend@example.org")
    invitations.accept(used, user=friend, actor=SYSTEM, now=moment())
    with walls.as_tenant(delta.tenant.pk):
        members.remove(delta.membership(admin), now=moment(), **WHO)
    assert [opens(theirs), opens(others)] == [False, True]
    with pytest.raises(Missing):
        invitations.accept(theirs, user=admin, actor=SYSTEM, now=moment())
    assert events(delta, "invitation.revoke") == 1
    with walls.as_tenant(delta.tenant.pk):
        assert not Member.objects.filter(user=admin).exists()
        assert Member.objects.filter(user=friend).exists()


def test_a_lesser_role_takes_back_what_one_may_no_longer_offer_and_no_more(delta: World) -> None:
    admin, lab = delta.person(Role.ADMIN), delta.child("lab")
    with walls.as_tenant(delta.tenant.pk):
        members.add(tenant=delta.tenant, user=admin, role=Role.ADMIN, project=lab, actor=SYSTEM, now=moment())
    of_all, of_lab = offered(delta, admin, Role.ADMIN), offered(delta, admin, Role.MEMBER, lab)
    with walls.as_tenant(delta.tenant.pk):
        members.change_role(delta.membership(admin), role=Role.VIEWER, now=moment(), **WHO)
    assert [opens(of_all), opens(of_lab)] == [False, True]


def test_tokens_made_for_machines_end_with_their_maker_only_where_one_who_may_says_so(delta: World) -> None:
    admin, robot = delta.person(Role.ADMIN), delta.machine()
    by_admin = Actor("user", admin.pk, admin.email)
    lead = Grants((Grant(Role.OWNER, (delta.root.pk,)),))
    with walls.as_tenant(delta.tenant.pk):
        for ends in (timedelta(days=7), timedelta(seconds=1)):
            tokens.issue(
                tenant=delta.tenant,
                name="nightly",
                scopes=["leases:read"],
                expires_at=moment() + ends,
                actor=by_admin,
                now=moment(),
                service_account=robot,
            )
        who = {"tenant": delta.tenant, "user_id": admin.pk, "now": moment() + timedelta(hours=1)}
        with pytest.raises(NotAllowed):
            tokens.revoke_left_by(grants=lead, actor=SYSTEM, **who)
        tokens.issue(
            tenant=delta.tenant,
            name="made with the first",
            scopes=["leases:read"],
            expires_at=moment() + timedelta(days=7),
            actor=Actor("service_account", robot.pk, robot.name),
            now=moment(),
            service_account=robot,
        )
        assert [token.name for token in tokens.left_by(**who)] == ["nightly", "made with the first"]
        members.remove(delta.membership(admin), now=who["now"], with_machines=True, **WHO)
        assert len(tokens.left_by(**who)) == 0
    assert events(delta, "token.revoke") == 2


def test_service_accounts_keep_their_rules(delta: World) -> None:
    robot = delta.machine()
    with pytest.raises(NameTaken):
        delta.machine()
    with walls.as_tenant(delta.tenant.pk):
        service_accounts.change_role(robot, role=Role.MEMBER, now=moment(), **WHO)
        assert events(delta, "service_account.role") == 0
        again = type(robot).objects.get(pk=robot.pk)
        service_accounts.change_role(robot, role=Role.VIEWER, now=moment(), **WHO)
        with pytest.raises(Stale):
            service_accounts.change_role(again, role=Role.ADMIN, now=moment(), **WHO)
        service_accounts.close(robot, now=moment(), **WHO)
        service_accounts.close(robot, now=moment(), **WHO)
    assert events(delta, "service_account.close") == 1
