"""A simulated cluster takes its time to cut a slice, and none for one that is still cut."""

from django.test.utils import override_settings

from broker.domain.placement.warmth import Cutting
from broker.domain.states import LeaseState
from broker.models import Lease, SimulatedPod
from broker.provisioners.base import order_name
from broker.services.leases import placing
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.world import Home, Life, cards, fresh, home, offering

TWO, THREE, SEVEN, CARD = "2g.20gb", "3g.40gb", "7g.80gb", "card"


def end(life: Life, lease: Lease) -> None:
    life.release(lease)
    life.run(10)


def cuttings(lease: Lease) -> list[Cutting | None]:
    with as_tenant(lease.tenant_id):
        return [each.cutting for each in order_of(fresh(lease)).slices]


def provisioned_s(lease: Lease) -> float:
    pod = SimulatedPod.objects.get(name=order_name(lease.pk, fresh(lease).generation))
    assert pod.ready_at
    return (pod.ready_at - pod.created_at).total_seconds()


def asked_for(life: Life, owner: Home, profile: str) -> Lease:
    """Return a lease that was placed, and that nobody has looked at yet."""
    lease = life.ask(owner, offering(profile))
    with as_tenant(lease.tenant_id):
        assert placing.place(fresh(lease), now=life.now)
    return lease


def test_a_simulated_cluster_is_told_once_what_its_card_needs(life: Life) -> None:
    cards(1)
    kestrel = home()
    for profile, how in (
        (TWO, Cutting.FREE),
        (TWO, Cutting.WARM),
        (SEVEN, Cutting.ANEW),
        (CARD, Cutting.ANEW),
        (CARD, Cutting.FREE),
    ):
        lease = asked_for(life, kestrel, profile)
        assert cuttings(lease) == [how]
        life.run()
        assert cuttings(lease) == [None]
        end(life, lease)


def test_cutting_takes_its_time_and_what_is_still_cut_takes_none(life: Life) -> None:
    cards(1)
    kestrel, took = home(), []
    for profile, cut_s, destroy_s in (
        (TWO, 60, 0),
        (TWO, 60, 0),
        (SEVEN, 0, 900),
        (CARD, 60, 900),
        (CARD, 60, 900),
    ):
        with override_settings(SIMULATED_CUT_S=cut_s, SIMULATED_DESTROY_S=destroy_s):
            lease = asked_for(life, kestrel, profile)
            life.run()
        took.append(provisioned_s(lease))
        end(life, lease)
    quick = 15  # pulling and starting take less each time
    assert [seconds > quick for seconds in took] == [True, False, True, True, False]


def test_while_its_slice_is_cut_a_lease_says_so(life: Life) -> None:
    cards(1)
    with override_settings(SIMULATED_CUT_S=60):
        lease = asked_for(life, home(), TWO)
        told = []
        for _ in range(400):
            life.run(0.5)
            if (now := fresh(lease)).state != LeaseState.PROVISIONING:
                break
            told.append(now.progress.get("text"))
    assert list(dict.fromkeys(told)) == ["pulling image", "cutting 2g.20gb", "starting"]


def test_without_a_time_for_it_nobody_asks(life: Life) -> None:
    cards(1)
    with override_settings(SIMULATED_CUT_S=0, SIMULATED_DESTROY_S=0):
        assert cuttings(asked_for(life, home(), TWO)) == [None]


def test_a_gang_is_cut_side_by_side(life: Life) -> None:
    cards(2)
    kestrel = home()
    end(life, life.lease(kestrel, offering(THREE)))
    lease = life.ask(kestrel, offering(THREE), quantity=3)
    with as_tenant(lease.tenant_id):
        assert placing.place(fresh(lease), now=life.now)
    assert sorted(cuttings(lease), key=str) == [Cutting.WARM, Cutting.FREE, Cutting.FREE]
