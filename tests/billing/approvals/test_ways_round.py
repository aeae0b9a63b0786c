"""No way to launch, extend or start gets round the limits of approval."""

from datetime import timedelta

import pytest

from billing.domain.approvals import Approver
from billing.models import ApprovalRequest
from billing.services.approvals import approval_requests
from billing.services.quotes import quote_answers
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseSchedule, ScheduledRun
from broker.services.launch_templates import template_store
from broker.services.leases import lease_arrays
from broker.services.leases.end_notices import end_terms, notice_records
from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.lifecycle import extension
from broker.services.leases.schedules import schedule_records
from broker.services.leases.schedules.due_schedules import run_due_schedules
from tenants.services.rls import tenant_scope
from tests.billing.approvals.approval_setup import HOUR, Workplace
from tests.simulation import offering, reload_lease

pytestmark = pytest.mark.django_db


def test_without_limits_nothing_needs_approval(kestrel: Workplace) -> None:
    assert kestrel.launch(hours=700).state == "queued"


@pytest.mark.parametrize(
    ("limits", "small", "large"),
    [
        ({"cents": 500}, {"hours": 4}, {"hours": 6}),
        ({"seconds": 4 * HOUR}, {"hours": 4}, {"hours": 4.01}),
        ({"milli_gpus": 300}, {"quantity": 2}, {"quantity": 3}),
    ],
)
def test_a_launch_above_a_limit_needs_approval(
    kestrel: Workplace, limits: dict[str, int], small: dict[str, float], large: dict[str, float]
) -> None:
    kestrel.set_limits(**limits)
    assert kestrel.launch(**small).state == "queued"
    with pytest.raises(ApprovalRequired) as refused:
        kestrel.launch(**large)
    assert refused.value.extra["approvers"] == ["tenant"]
    assert "an owner of the tenant must approve" in refused.value.detail
    assert refused.value.fix.href == "/api/v1/approval-requests"
    assert len(kestrel.leases()) == 1


def test_an_owner_is_limited_too(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=HOUR)
    kestrel.member = kestrel.owner
    with pytest.raises(ApprovalRequired):
        kestrel.launch(hours=2)
    request = kestrel.ask(hours=2)
    assert kestrel.approve(request, actor=kestrel.owner).state == "approved"  # who may approve, may approve their own


def test_a_quote_does_not_get_round_it(kestrel: Workplace) -> None:
    kestrel.set_limits(cents=500)
    with tenant_scope(kestrel.id):
        answer = quote_answers.answer_quote(
            kestrel.wanted(hours=9), project=kestrel.context.project, actor=kestrel.member, now=kestrel.sim.now
        )
    assert isinstance(answer.refusal, ApprovalRequired)
    assert answer.offer is not None
    with pytest.raises(ApprovalRequired):
        kestrel.launch(hours=9, quote=answer.offer.sealed)


def test_a_template_does_not_get_round_it(kestrel: Workplace) -> None:
    kestrel.set_limits(milli_gpus=150)
    with tenant_scope(kestrel.id):
        saved = template_store.create_template(
            values={"name": "ours", "icon": "package", "shape": "session", "image": "ghcr.io/acme/ours:1"},
            project=kestrel.context.project,
            actor=kestrel.owner,
            now=kestrel.sim.now,
        )
    with pytest.raises(ApprovalRequired):
        kestrel.launch(quantity=2, image="", template_id=saved.pk)
    assert kestrel.approve(kestrel.ask(quantity=2, image="", template_id=saved.pk)).state == "approved"


def test_an_array_is_measured_as_a_whole(kestrel: Workplace) -> None:
    kestrel.set_limits(cents=500)
    with tenant_scope(kestrel.id), pytest.raises(ApprovalRequired) as refused:
        lease_arrays.request_array(
            kestrel.wanted(), size=6, project=kestrel.context.project, actor=kestrel.member, now=kestrel.sim.now
        )
    assert "€6." in refused.value.detail
    assert kestrel.leases() == []
    done = kestrel.approve(kestrel.ask(array_size=6))
    assert (done.array_id is not None, len(kestrel.leases())) == (True, 6)


def test_each_lease_of_an_array_extends_as_if_all_did(kestrel: Workplace) -> None:
    kestrel.set_limits(cents=500)
    with tenant_scope(kestrel.id):
        lease_arrays.request_array(
            kestrel.wanted(), size=4, project=kestrel.context.project, actor=kestrel.member, now=kestrel.sim.now
        )
        first = Lease.objects.filter(array_index=0).get()
        with pytest.raises(ApprovalRequired):
            extension.extend_lease(first, more_s=HOUR, actor=kestrel.member, now=kestrel.sim.now)


def test_small_extensions_do_not_add_up_past_a_limit(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=3 * HOUR)
    lease = kestrel.launch(hours=2)
    with tenant_scope(kestrel.id):
        lease = extension.extend_lease(lease, more_s=HOUR, actor=kestrel.member, now=kestrel.sim.now)
        with pytest.raises(ApprovalRequired):
            extension.extend_lease(lease, more_s=HOUR, actor=kestrel.member, now=kestrel.sim.now)
        asked = approval_requests.request_extension(lease, more_s=HOUR, actor=kestrel.member, now=kestrel.sim.now)
    kestrel.approve(asked)
    assert reload_lease(lease).max_duration_s == 4 * HOUR
    with tenant_scope(kestrel.id), pytest.raises(ApprovalRequired):
        extension.extend_lease(reload_lease(lease), more_s=HOUR, actor=kestrel.member, now=kestrel.sim.now)


def test_automatic_extension_counts_to_its_limit_at_the_launch(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=3 * HOUR)
    with pytest.raises(ApprovalRequired):
        kestrel.launch(hours=1, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    assert kestrel.ask(hours=1, extend_by_s=HOUR, extend_limit_s=9 * HOUR).duration_s == 9 * HOUR


def test_automatic_extension_that_is_turned_on_later_stops_at_the_limit(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=HOUR)
    lease = kestrel.sim.create_lease(kestrel.context, offering(), max_duration_s=HOUR)
    with tenant_scope(kestrel.id):
        end_terms.set_end_terms(
            lease, extend_by_s=HOUR, extend_limit_s=9 * HOUR, actor=kestrel.member, now=kestrel.sim.now
        )
    for _ in range(10):
        kestrel.sim.run(300)
        check_lease_ends(now=kestrel.sim.now)
    assert reload_lease(lease).max_duration_s == HOUR
    with tenant_scope(kestrel.id):
        (why,) = notice_records.refused_extensions([reload_lease(lease)]).values()
    assert "must approve" in why


def test_an_approved_automatic_extension_goes_on_to_its_limit(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=HOUR)
    request = kestrel.approve(kestrel.ask(hours=1, extend_by_s=HOUR, extend_limit_s=2 * HOUR))
    for _ in range(12):
        kestrel.sim.run(300)
        check_lease_ends(now=kestrel.sim.now)
    with tenant_scope(kestrel.id):
        assert Lease.objects.get(pk=request.lease_id).max_duration_s == 2 * HOUR


def test_a_stopped_lease_that_was_extended_needs_approval_to_start(kestrel: Workplace) -> None:
    """While stopped it passes no gate."""
    kestrel.set_limits(seconds=2 * HOUR)
    volume = kestrel.sim.create_volume(kestrel.context)
    lease = kestrel.sim.create_lease(kestrel.context, offering(), max_duration_s=HOUR, volume=volume.pk)
    kestrel.sim.stop_lease(lease, kestrel.context)
    kestrel.sim.run_with_sweeps(60)
    assert reload_lease(lease).state == LeaseState.STOPPED
    with tenant_scope(kestrel.id):
        extension.extend_lease(reload_lease(lease), more_s=9 * HOUR, actor=kestrel.member, now=kestrel.sim.now)
    with pytest.raises(ApprovalRequired):
        kestrel.sim.start_lease(lease, kestrel.context)
    with tenant_scope(kestrel.id):
        asked = approval_requests.request_start(reload_lease(lease), actor=kestrel.member, now=kestrel.sim.now)
    kestrel.approve(asked)
    assert reload_lease(lease).state == LeaseState.QUEUED


def test_a_schedule_asks_at_each_due_time(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=HOUR)
    with tenant_scope(kestrel.id):
        schedule_records.create_schedule(
            kestrel.wanted(hours=2, env={"KEY": "value"}),
            cron="0 * * * *",
            time_zone="UTC",
            project=kestrel.context.project,
            actor=kestrel.member,
            now=kestrel.sim.now,
        )
    kestrel.sim.run(HOUR)
    run_due_schedules(now=kestrel.sim.now)
    assert kestrel.leases() == []
    with tenant_scope(kestrel.id):
        run, request = ScheduledRun.objects.get(), ApprovalRequest.objects.get()
        assert LeaseSchedule.objects.get().next_at == kestrel.sim.now + timedelta(hours=1)
    assert (run.result, request.pk in run.text) == ("refused", True)
    assert "value" not in str(request.request)
    kestrel.approve(request)
    (lease,) = kestrel.leases()
    assert (lease.name, lease.requested_by) == ("fold-1121-1000", kestrel.member.id)


def test_limits_of_operators_are_approved_by_operators(kestrel: Workplace) -> None:
    kestrel.set_limits(cents=500, by=Approver.OPERATOR)
    with pytest.raises(ApprovalRequired) as refused:
        kestrel.launch(hours=6)
    assert refused.value.extra["approvers"] == ["operator"]


def test_an_approved_launch_may_be_stopped_and_started_again(kestrel: Workplace) -> None:
    kestrel.set_limits(seconds=HOUR)
    volume = kestrel.sim.create_volume(kestrel.context)
    asked = kestrel.approve(kestrel.ask(hours=2, volume=volume.pk))
    kestrel.sim.run(30)
    with tenant_scope(kestrel.id):
        lease = Lease.objects.get(pk=asked.lease_id)
    kestrel.sim.stop_lease(lease, kestrel.context)
    kestrel.sim.run_with_sweeps(60)
    assert kestrel.sim.start_lease(lease, kestrel.context).state == LeaseState.QUEUED
