"""A tenant's quota that an operator sets on the page of tenants holds from that moment."""

import re

import pytest
from django.test import Client

from broker.domain.states import LeaseState
from tenants.models import Quota, QuotaKind
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_tenant
from tests import world
from tests.billing.ops.test_acting import page, trail
from tests.billing.portal.desks import words
from tests.world import Home, Life

pytestmark = pytest.mark.django_db


def set_quota(operator: Client, owner: Home, kind: str, limit: str) -> None:
    answer = operator.post(f"/ops/tenants/{owner.tenant.pk}/quota/", {"kind": kind, "limit": limit})
    assert (answer.status_code, answer["Location"]) == (302, "/ops/tenants/")


def test_a_lower_quota_refuses_the_next_lease_and_ends_none(
    life: Life, kestrel: Home, operator: Client
) -> None:
    slice_ = world.offering("1g.10gb")
    running = [life.lease(kestrel, slice_) for _ in range(2)]
    set_quota(operator, kestrel, "units", "2")
    with pytest.raises(QuotaExceeded):
        life.ask(kestrel, slice_)
    set_quota(operator, kestrel, "units", "1")
    life.go(60)
    assert {world.fresh(lease).state for lease in running} == {LeaseState.ACTIVE}
    life.release(running[0])
    life.run(60)
    with pytest.raises(QuotaExceeded):
        life.ask(kestrel, slice_)
    assert "1 of 1" in words(operator.get("/ops/tenants/"))


def test_a_higher_quota_lets_the_next_lease_in_and_is_in_the_trail(
    life: Life, kestrel: Home, operator: Client
) -> None:
    set_quota(operator, kestrel, "units", "1")
    life.lease(kestrel, world.offering("1g.10gb"))
    set_quota(operator, kestrel, "units", "4")
    life.lease(kestrel, world.offering("3g.40gb"))
    assert "4 of 4" in words(operator.get("/ops/tenants/"))
    lowered, raised = sorted(trail("quota.set"), key=lambda event: event.pk)
    assert (lowered.detail["before"], lowered.detail["after"]) == (1_000_000, 1_000)
    assert (raised.detail["before"], raised.detail["after"]) == (1_000, 4_000)
    assert (raised.actor_kind, raised.actor_label) == ("staff", "operator@example.org")


@pytest.mark.parametrize(
    ("kind", "limit", "kept"),
    [
        (QuotaKind.UNITS, "2.5", 2_500),
        (QuotaKind.GPU_SECONDS, "1.5", 5_400_000),
        (QuotaKind.STORAGE, "40", 40),
        (QuotaKind.BURN, "12.5", 12_500_000_000),
    ],
)
def test_each_kind_is_kept_exactly_as_it_was_given(
    kestrel: Home, operator: Client, kind: QuotaKind, limit: str, kept: int
) -> None:
    set_quota(operator, kestrel, kind, limit)
    with as_tenant(kestrel.tenant.pk):
        assert Quota.objects.get(project=kestrel.project, kind=kind).soft_limit == kept
    field = re.search(rf'<input[^>]*id="l-{kind}-{kestrel.tenant.pk}"[^>]*>', page(operator, "/ops/tenants/"))
    assert field
    assert f'value="{limit}"' in field.group()


def test_nobody_but_that_tenant_has_it(life: Life, kestrel: Home, operator: Client) -> None:
    other = world.home("Merlin")
    set_quota(operator, kestrel, "units", "0")
    life.lease(other, world.offering("1g.10gb"))
    with pytest.raises(QuotaExceeded):
        life.ask(kestrel, world.offering("1g.10gb"))
