"""Approvals in the portal: asked on the launch page, decided on both sides."""

from typing import Any

import pytest
from django.test import Client

from billing.domain.approvals import Approver, LaunchLimits
from billing.models import ApprovalLimit, ApprovalRequest
from billing.services.approvals import approval_limits
from billing.services.approvals.approval_links import APPROVE, sign_decision
from broker.models import Lease
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.histories import OPERATOR
from tests.simulation import NOW, offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
FORM = {"name": "fold", "lasts": "6 h", "runs": "batch", "command": "train"}


@pytest.fixture
def limited(portal: PortalSession, settings: Any) -> PortalSession:
    from config.env import EnvironmentSettings

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    set_limit(portal, Approver.TENANT)
    return portal


def set_limit(portal: PortalSession, approver: Approver) -> None:
    with tenant_scope(portal.owner.tenant.pk):
        approval_limits.set_limits(
            portal.owner.tenant, LaunchLimits(approver, None, None, 3600), actor=OPERATOR, now=NOW
        )


def ask(portal: PortalSession, **more: str) -> ApprovalRequest:
    answer = portal.post("/launch/", offering=offering().pk, **{**FORM, **more})
    assert answer.status_code == 302, visible_text(answer)
    with tenant_scope(portal.owner.tenant.pk):
        request = ApprovalRequest.objects.get()
    assert answer["Location"] == f"/approvals/{request.pk}/"
    return request


def leases(portal: PortalSession) -> int:
    with tenant_scope(portal.owner.tenant.pk):
        return Lease.objects.count()


def test_the_launch_page_asks_for_approval_once(limited: PortalSession) -> None:
    page = limited.read(f"/launch/?offering={offering().pk}&lasts=6+h")
    assert "Request approval — max" in page
    assert "must approve it" in page
    request = ask(limited, key="same")
    assert ask(limited, key="same").pk == request.pk
    assert leases(limited) == 0
    assert "fold" in limited.read("/approvals/")


def test_an_owner_approves_by_the_link_of_the_letter(limited: PortalSession) -> None:
    request = ask(limited)
    page = limited.read(f"/approvals/{request.pk}/?offer={sign_decision(request, APPROVE)}")
    assert "Approve this?" in page
    assert leases(limited) == 0  # a GET decides nothing
    answer = limited.post(f"/approvals/{request.pk}/decide/", do="approve")
    assert answer.status_code == 302, visible_text(answer)
    assert leases(limited) == 1
    page = limited.read(f"/approvals/{request.pk}/?offer={sign_decision(request, APPROVE)}")
    assert "no longer valid" in page
    assert limited.post(f"/approvals/{request.pk}/decide/", do="approve").status_code == 409


def test_a_refused_approval_says_why_and_a_decline_needs_a_reason(limited: PortalSession) -> None:
    request = ask(limited)
    answer = limited.post(f"/approvals/{request.pk}/decide/", do="decline")
    assert answer.status_code == 409
    assert "Say why" in visible_text(answer)
    assert limited.post(f"/approvals/{request.pk}/decide/", do="decline", reason="no").status_code == 302
    assert "Declined" in limited.read(f"/approvals/{request.pk}/")


def test_an_owner_sets_limits(portal: PortalSession) -> None:
    answer = portal.post("/approvals/limits/", max_cost="500", max_gpus="0.5", max_hours="12")
    assert answer.status_code == 302
    with tenant_scope(portal.owner.tenant.pk):
        row = ApprovalLimit.objects.get()
    assert (row.max_minor, row.max_milli_gpus, row.max_duration_s) == (50_000, 500, 12 * 3600)
    assert 'value="500.00"' in portal.client.get("/approvals/").content.decode()
    refused = portal.post("/approvals/limits/", max_cost="many", max_gpus="", max_hours="")
    assert refused["Location"] == "/approvals/"
    assert "is not an amount in EUR" in portal.read("/approvals/")
    with tenant_scope(portal.owner.tenant.pk):
        assert ApprovalLimit.objects.get().max_minor == 50_000


def test_an_extension_above_a_limit_asks_for_approval(limited: PortalSession) -> None:
    lease = limited.sim.create_lease(limited.owner, offering(), max_duration_s=3600)
    answer = limited.post(f"/leases/{lease.pk}/extend/", hours="4")
    assert answer["Location"].startswith("/approvals/apr_")
    with tenant_scope(limited.owner.tenant.pk):
        assert ApprovalRequest.objects.get().kind == "extension"


def test_operators_set_limits_and_decide(limited: PortalSession, operator: Client) -> None:
    tenant = limited.owner.tenant
    path = f"/ops/tenants/{tenant.pk}/approval-limits/"
    assert operator.get(path).status_code == 200
    assert operator.post(path, {"max_cost": "", "max_gpus": "0", "max_hours": ""}).status_code == 302
    request = ask(limited)
    assert limited.post(f"/approvals/{request.pk}/decide/", do="approve").status_code == 302
    assert leases(limited) == 0
    assert "fold" in operator.get("/ops/approvals/").content.decode()
    where = f"/ops/approvals/{request.pk}/"
    assert operator.get(where).status_code == 200
    assert operator.post(where, {"do": "approve"}).status_code == 302
    assert leases(limited) == 1
    assert "Nothing waits for an operator" in operator.get("/ops/approvals/").content.decode()


def test_a_member_sees_no_decision(limited: PortalSession) -> None:
    request = ask(limited)
    member = limited.sign_in_as(Role.MEMBER)
    assert "Approve — max" not in member.read(f"/approvals/{request.pk}/")
    assert "Approve — max" in limited.read(f"/approvals/{request.pk}/")
    assert member.post(f"/approvals/{request.pk}/decide/", do="approve").status_code == 403
