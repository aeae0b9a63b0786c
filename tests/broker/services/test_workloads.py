"""A wish for what runs, from the request to the order that a provisioner gets."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases import vetting
from broker.services.leases.orders import access_token, order_of
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant
from tests.broker.domain.test_workloads import KEY
from tests.world import Home, Life, fleet, home, offering


@pytest.fixture
def kestrel(life: Life) -> Home:
    fleet()
    return home("Kestrel")


def test_a_wish_reaches_the_provisioner_as_it_was_made(life: Life, kestrel: Home) -> None:
    lease = life.lease(
        kestrel, offering(), workload="ssh", env={"B": "2", "A": "$1"}, ssh_keys=[KEY], image="acme/box:1"
    )
    with as_tenant(kestrel.tenant.pk):
        order = order_of(Lease.objects.select_related("offering").get(pk=lease.pk))
    assert (order.workload, order.image) == ("ssh", "acme/box:1")
    assert order.env == (("A", "$1"), ("B", "2"))
    assert order.ssh_keys == (KEY,)
    assert order.access_token == access_token(lease.pk)
    assert lease.state == LeaseState.ACTIVE


def test_every_lease_has_a_secret_of_its_own() -> None:
    assert access_token("lse_a") == access_token("lse_a") != access_token("lse_b")
    assert len(access_token("lse_a")) == 40


def test_a_wish_that_must_not_run_is_refused_with_everything_that_is_wrong(life: Life, kestrel: Home) -> None:
    with pytest.raises(Invalid) as refused:
        life.ask(
            kestrel,
            offering(),
            workload="vllm",
            image="169.254.169.254/x",
            env={"NVIDIA_VISIBLE_DEVICES": "all"},
        )
    told = [each["field"] for each in refused.value.extra["errors"]]  # type: ignore[attr-defined]
    assert (refused.value.field, told) == ("image", ["image", "env"])
    with as_tenant(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_a_box_that_was_asked_for_needs_a_key() -> None:
    with pytest.raises(Invalid, match="Nobody could enter"):
        vetting.check("ssh", "", "", {}, ())


def test_a_lease_for_which_nothing_was_chosen_needs_none() -> None:
    vetting.check("", "", "", {}, ())


def test_a_key_that_was_given_is_judged_even_so() -> None:
    with pytest.raises(Invalid, match="begins with"):
        vetting.check("", "", "", {}, ("nonsense",))
