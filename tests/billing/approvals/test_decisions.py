"""Requests for approval: approved, declined, withdrawn, expired; launched as asked for."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from billing.domain.approvals import Approver
from billing.models import QueuedEmail, Quote
from billing.services.approvals import approval_decisions
from billing.services.approvals.approval_decisions import ApprovalClosed, ApprovalOutdated, NotRequester
from billing.services.approvals.approval_links import APPROVE, read_decision, sign_decision
from billing.services.approvals.approval_requests import ApprovalNotNeeded, TooManyApprovals
from billing.services.emails import email_delivery
from broker.models import Lease
from tenants.models import AuditEvent, Member, QuotaKind, User
from tenants.services.errors import InvalidValue, NotAllowed, QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.billing.approvals.approval_setup import HOUR, Workplace
from tests.billing.histories import EURO, OPERATOR
from tests.simulation import offering

pytestmark = pytest.mark.django_db


@pytest.fixture
def limited(kestrel: Workplace) -> Workplace:
    kestrel.set_limits(cents=500)
    return kestrel


def audited(place: Workplace) -> list[tuple[str, str]]:
    with tenant_scope(place.id):
        found = AuditEvent.objects.filter(action__startswith="approval.").order_by("id")
        return [(each.action, each.actor_label) for each in found]


def deliver(place: Workplace, letters: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Send the queued e-mails; return new ones."""
    letters.clear()
    with tenant_scope(place.id):
        queued = list(QueuedEmail.objects.filter(sent_at=None, due_at__isnull=False).values_list("pk", flat=True))
    for email_id in queued:
        email_delivery.deliver_email(email_id, place.id, now=place.sim.now)
    return letters


def test_a_request_is_launched_once_approved_at_a_price_that_is_a_ceiling(
    limited: Workplace, letters: list[tuple[str, str]]
) -> None:
    request = limited.ask(hours=6, tags={"team": "nlp"})
    assert (request.state, request.cost_minor, limited.leases()) == ("waiting", 600, [])
    ((to, text),) = deliver(limited, letters)
    assert to == limited.owner.label
    assert "At most €6.00 before tax" in text
    assert f"/approvals/{request.pk}/?offer=" in text
    limited.sim.run(2 * HOUR)  # a quote would have ended long ago
    done = limited.approve(request)
    (lease,) = limited.leases()
    assert (done.state, done.lease_id, lease.requested_by, lease.tags) == (
        "approved",
        lease.pk,
        limited.member.id,
        {"team": "nlp"},
    )
    with tenant_scope(limited.id):
        assert Quote.objects.get().lease_id == lease.pk
    ((to, text),) = deliver(limited, letters)
    assert to == limited.member.label
    assert f"/leases/{lease.pk}/" in text
    assert audited(limited) == [
        ("approval.request", limited.member.label),
        ("approval.approve", limited.owner.label),
    ]


def test_a_price_that_rose_is_refused_with_the_reason_and_the_request_waits(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    limited.sim.run(HOUR)
    set_price_from_now(limited, 2 * EURO)
    with pytest.raises(ApprovalOutdated) as refused:
        limited.approve(request)
    assert "may now cost €12.00; €6.00 was asked for" in refused.value.detail
    assert (limited.reload(request).state, limited.leases()) == ("waiting", [])


def test_a_price_that_fell_is_approved(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    limited.sim.run(HOUR)
    set_price_from_now(limited, EURO // 2)
    assert limited.approve(request).state == "approved"


def set_price_from_now(place: Workplace, nano: int) -> None:
    from billing.services.catalogue import price_list

    now = place.sim.now
    price_list.publish_price(
        offering=offering(),
        currency="EUR",
        nano_per_hour=nano,
        since=now + timedelta(minutes=1),
        actor=OPERATOR,
        now=now,
    )
    place.sim.run(120)


def test_other_gates_still_hold_at_the_approval(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    limited.context.set_quota(QuotaKind.UNITS, 0)
    with pytest.raises(QuotaExceeded):
        limited.approve(request)
    assert limited.reload(request).state == "waiting"


def test_who_has_left_the_tenant_launches_nothing(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    with tenant_scope(limited.id):
        Member.objects.filter(user=limited.member.id).delete()
    with pytest.raises(NotAllowed):
        limited.approve(request)


def test_a_request_is_approved_once(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    limited.approve(request)
    with pytest.raises(ApprovalClosed):
        limited.approve(request)
    assert len(limited.leases()) == 1


def test_a_declined_request_tells_why(limited: Workplace, letters: list[tuple[str, str]]) -> None:
    request = limited.ask(hours=6)
    deliver(limited, letters)
    by: dict[str, Any] = {"approver": Approver.TENANT, "actor": limited.owner, "now": limited.sim.now}
    with tenant_scope(limited.id), pytest.raises(InvalidValue):
        approval_decisions.decline(request, reason=" ", **by)
    with tenant_scope(limited.id):
        approval_decisions.decline(request, reason="Too  long.", **by)
    assert limited.reload(request).state == "declined"
    ((to, text),) = deliver(limited, letters)
    assert (to, "Reason: Too long." in text) == (limited.member.label, True)
    with pytest.raises(ApprovalClosed):
        limited.approve(request)


def test_only_who_asked_withdraws(limited: Workplace) -> None:
    request = limited.ask(hours=6)
    with tenant_scope(limited.id):
        with pytest.raises(NotRequester):
            approval_decisions.withdraw(request, actor=limited.owner, now=limited.sim.now)
        approval_decisions.withdraw(request, actor=limited.member, now=limited.sim.now)
    assert limited.reload(request).state == "withdrawn"


def test_a_request_expires(limited: Workplace, settings: Any, letters: list[tuple[str, str]]) -> None:
    settings.APPROVAL_TTL_HOURS = 2
    request = limited.ask(hours=6)
    deliver(limited, letters)
    assert approval_decisions.expire_due(now=limited.sim.now + timedelta(hours=1)) == 0
    limited.sim.run(2 * HOUR)
    with pytest.raises(ApprovalClosed):  # before the sweep, too
        limited.approve(request)
    assert approval_decisions.expire_due(now=limited.sim.now) == 1
    assert limited.reload(request).state == "expired"
    ((to, text),) = deliver(limited, letters)
    assert (to, "has expired" in text) == (limited.member.label, True)


def test_limits_of_both_need_both_approvals(limited: Workplace, letters: list[tuple[str, str]]) -> None:
    limited.set_limits(seconds=HOUR, by=Approver.OPERATOR)
    User.objects.create_user("operator@example.org", is_staff=True)
    request = limited.ask(hours=6)
    assert [to for to, _ in deliver(limited, letters)] == [limited.owner.label]
    with pytest.raises(ApprovalClosed):
        limited.approve(limited.approve(request))  # an owner does not approve for operators
    assert (limited.reload(request).state, limited.leases()) == ("waiting", [])
    ((to, text),) = deliver(limited, letters)
    assert (to, f"/ops/approvals/{request.pk}/" in text) == ("operator@example.org", True)
    assert limited.approve(request, by=Approver.OPERATOR).state == "approved"


def test_what_needs_no_approval_is_not_asked_for(limited: Workplace) -> None:
    with pytest.raises(ApprovalNotNeeded):
        limited.ask(hours=1)
    assert limited.leases() == []


def test_what_is_refused_anyway_is_not_asked_for(limited: Workplace) -> None:
    limited.context.set_quota(QuotaKind.UNITS, 0)
    with pytest.raises(QuotaExceeded):
        limited.ask(hours=6)


def test_only_so_many_requests_wait(limited: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("billing.services.approvals.approval_requests.MAX_WAITING", 1)
    limited.ask(hours=6)
    with pytest.raises(TooManyApprovals):
        limited.ask(hours=7)


def test_a_link_offers_a_decision_about_the_request_as_it_is(limited: Workplace) -> None:
    request, other = limited.ask(hours=6), limited.ask(hours=7)
    signed = sign_decision(request, APPROVE)
    assert read_decision(signed, request) == APPROVE
    assert read_decision(signed, other) == ""
    assert read_decision(signed + "x", request) == ""
    assert read_decision(signed, limited.approve(request)) == ""


def test_a_start_that_passed_while_it_waited_is_at_once(limited: Workplace) -> None:
    request = limited.ask(hours=6, starts_at=limited.sim.now + timedelta(hours=1))
    limited.sim.run(2 * HOUR)
    limited.approve(request)
    with tenant_scope(limited.id):
        assert Lease.objects.get().starts_at is None


def test_variables_are_stored_encrypted_and_launched_in_clear(limited: Workplace) -> None:
    from broker.services.secrets import variable_encryption

    request = limited.ask(hours=6, env={"TOKEN": "s3cret"})
    assert "s3cret" not in str(limited.reload(request).request)
    limited.approve(request)
    (lease,) = limited.leases()
    assert variable_encryption.decrypt_variables(lease.env, owner_id=lease.pk) == {"TOKEN": "s3cret"}
    assert limited.reload(request).request["env"] == {"TOKEN": ""}


def test_values_of_variables_are_forgotten_once_it_is_closed(limited: Workplace) -> None:
    declined, withdrawn = (limited.ask(hours=6, env={"TOKEN": "s3cret"}) for _ in range(2))
    with tenant_scope(limited.id):
        by: dict[str, Any] = {"now": limited.sim.now}
        approval_decisions.decline(declined, approver=Approver.TENANT, reason="No.", actor=limited.owner, **by)
        approval_decisions.withdraw(withdrawn, actor=limited.member, **by)
    assert [limited.reload(each).request["env"] for each in (declined, withdrawn)] == [{"TOKEN": ""}] * 2


def test_a_waiting_launch_is_approved_after_the_encryption_key_was_replaced(limited: Workplace, settings: Any) -> None:
    request = limited.ask(hours=6, env={"TOKEN": "s3cret"})
    newest = Fernet.generate_key().decode()
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{newest},{settings.CREDENTIAL_ENCRYPTION_KEYS}"
    call_command("reencrypt_secrets", stdout=(printed := StringIO()))
    assert "of 1 launches that wait for approval" in printed.getvalue()
    settings.CREDENTIAL_ENCRYPTION_KEYS = newest
    assert limited.approve(request).state == "approved"
