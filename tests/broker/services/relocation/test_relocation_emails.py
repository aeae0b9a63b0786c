"""E-mails before a relocation."""

from typing import Any

import pytest

from broker.models import Lease
from ports import mail
from tenants.domain.roles import Role
from tenants.models import Member, User
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import accept_plan, relocations_of, scatter_leases
from tests.simulation import NOW, Simulation, TenantContext, create_gpus, create_tenant

Email = tuple[str, str, str]


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def create_user_for_actor(home: TenantContext) -> User:
    """Create the user of a tenant's actor."""
    user = User.objects.create_user(home.actor.label, pk=home.actor.id)
    with tenant_scope(home.tenant.pk):
        Member.objects.create(tenant=home.tenant, user=user, role=Role.MEMBER, project=home.project, created_at=NOW)
    return user


def accept_plan_with_emails(sim: Simulation, capture: Any) -> tuple[Lease, list[Email]]:
    sent: list[Email] = []
    with mail.captured_mail(lambda *letter: sent.append(letter)), capture(execute=True):
        plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    with tenant_scope(move.tenant_id):
        return Lease.objects.get(pk=move.lease_id), sent


def test_the_requester_gets_an_email_with_time_and_consequences(
    sim: Simulation, kestrel: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    create_user_for_actor(kestrel)
    kestrel.create_member(Role.OWNER)
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    lease, [(to, subject, text)] = accept_plan_with_emails(sim, django_capture_on_commit_callbacks)
    assert (to, subject) == (kestrel.actor.label, f"{lease.name} will be moved to another GPU")
    assert "not before 09:" in text
    assert "All data on the lease is lost." in text
    assert f"/leases/{lease.pk}/" in text


def test_the_email_for_a_lease_with_a_volume_states_what_is_kept(
    sim: Simulation, kestrel: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    create_user_for_actor(kestrel)
    for lease in scatter_leases(sim, kestrel, kestrel, relocatable=True):
        volume = sim.create_volume(kestrel, f"weights of {lease.pk}").pk
        with tenant_scope(kestrel.tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(volume=volume)
    moved, [(_, _, text)] = accept_plan_with_emails(sim, django_capture_on_commit_callbacks)
    assert f"Volume weights of {moved.pk} is kept; data outside /home is lost." in text


def test_owners_and_admins_get_the_email_if_the_requester_is_inactive(
    sim: Simulation, kestrel: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    requester = create_user_for_actor(kestrel)
    leads = {kestrel.create_member(role).email for role in (Role.OWNER, Role.ADMIN)}
    kestrel.create_member(Role.VIEWER)
    gone = kestrel.create_member(Role.OWNER)
    User.objects.filter(pk__in=[gone.pk, requester.pk]).update(is_active=False)
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    _, sent = accept_plan_with_emails(sim, django_capture_on_commit_callbacks)
    assert {to for to, _, _ in sent} == leads


def test_members_of_another_tenant_get_no_email(
    sim: Simulation, kestrel: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    create_tenant("Merlin").create_member(Role.OWNER)
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    assert accept_plan_with_emails(sim, django_capture_on_commit_callbacks)[1] == []


def test_without_a_notice_period_no_email_is_sent(
    sim: Simulation, kestrel: TenantContext, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    create_user_for_actor(kestrel)
    settings.RELOCATION_NOTICE_S = 0  # it begins at once: an e-mail would come too late
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    assert accept_plan_with_emails(sim, django_capture_on_commit_callbacks)[1] == []
