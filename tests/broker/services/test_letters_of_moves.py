"""Whoever asked for a lease is written to before it is moved; a page is not looked at all day."""

from typing import Any

import pytest

from broker.models import Lease
from ports import mail
from tenants.domain.roles import Role
from tenants.models import Member, User
from tenants.services.walls import as_tenant
from tests.broker.services.movers import accepted, apart, moves
from tests.world import NOW, Home, Life, cards, home

Letter = tuple[str, str, str]


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


def is_somebody(home: Home) -> User:
    """Make whoever acts in the world a person who signs in."""
    user = User.objects.create_user(home.actor.label, pk=home.actor.id)
    with as_tenant(home.tenant.pk):
        Member.objects.create(
            tenant=home.tenant, user=user, role=Role.MEMBER, project=home.project, created_at=NOW
        )
    return user


def letters(life: Life, capture: Any) -> tuple[Lease, list[Letter]]:
    sent: list[Letter] = []
    with mail.carried_by(lambda *letter: sent.append(letter)), capture(execute=True):
        plan = accepted(life)
    (move,) = moves(plan)
    with as_tenant(move.tenant_id):
        return Lease.objects.get(pk=move.lease_id), sent


def test_who_asked_for_a_lease_is_told_when_it_is_moved_and_how_to_keep_it(
    life: Life, kestrel: Home, django_capture_on_commit_callbacks: Any
) -> None:
    is_somebody(kestrel)
    kestrel.member(Role.OWNER)
    apart(life, kestrel, kestrel, movable=True)
    lease, [(to, subject, text)] = letters(life, django_capture_on_commit_callbacks)
    assert (to, subject) == (kestrel.actor.label, f"{lease.name} will be moved to another card")
    assert "not before 09:" in text
    assert "All that it wrote is lost." in text
    assert f"/leases/{lease.pk}/" in text


def test_of_a_lease_with_a_volume_the_letter_says_what_stays(
    life: Life, kestrel: Home, django_capture_on_commit_callbacks: Any
) -> None:
    is_somebody(kestrel)
    for lease in apart(life, kestrel, kestrel, movable=True):
        volume = life.volume(kestrel, f"weights of {lease.pk}").pk
        with as_tenant(kestrel.tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(volume=volume)
    moved, [(_, _, text)] = letters(life, django_capture_on_commit_callbacks)
    assert f"weights of {moved.pk} comes along, and what lies outside its home is lost." in text


def test_where_nobody_asked_who_can_read_those_are_told_who_lead_the_tenant(
    life: Life, kestrel: Home, django_capture_on_commit_callbacks: Any
) -> None:
    somebody = is_somebody(kestrel)
    leads = {kestrel.member(role).email for role in (Role.OWNER, Role.ADMIN)}
    kestrel.member(Role.VIEWER)
    gone = kestrel.member(Role.OWNER)
    User.objects.filter(pk__in=[gone.pk, somebody.pk]).update(is_active=False)
    apart(life, kestrel, kestrel, movable=True)
    _, sent = letters(life, django_capture_on_commit_callbacks)
    assert {to for to, _, _ in sent} == leads


def test_nobody_of_another_tenant_is_told(
    life: Life, kestrel: Home, django_capture_on_commit_callbacks: Any
) -> None:
    home("Merlin").member(Role.OWNER)
    apart(life, kestrel, kestrel, movable=True)
    assert letters(life, django_capture_on_commit_callbacks)[1] == []


def test_where_nothing_is_promised_nobody_is_told(
    life: Life, kestrel: Home, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    is_somebody(kestrel)
    settings.MOVE_NOTICE_S = 0  # it begins at once: a letter would come too late
    apart(life, kestrel, kestrel, movable=True)
    assert letters(life, django_capture_on_commit_callbacks)[1] == []
