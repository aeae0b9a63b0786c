"""What this process keeps of the cards in memory is what the books say, whoever changed them, and however."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest
from django.db import connections, transaction

from broker.domain.placement.engines import Engine
from broker.domain.states import EndReason, Isolation
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, Node
from broker.services import capacity
from broker.services.catalogue import profile_of
from broker.services.inventory import Rack
from broker.services.leases import ending, placing
from broker.services.leases.request import Wanted, request
from broker.services.placement import engine, feed
from broker.services.placement.engine import Keeper, choosing_by
from ports import clock, doorbell
from tenants.services.walls import as_sweep, as_tenant
from tests.database import OwnDatabase
from tests.world import MODEL, NOW, REGION, Home, Life, cards, fleet, held, home, offering, soft_offering

POOL = (MODEL, REGION)
KINDS = [
    (isolation, cluster) for isolation in (Isolation.HARDWARE, Isolation.SOFT) for cluster in ("", "north-1")
]
THREES = [{"profile": "3g.40gb", "start": start, "size": 4} for start in (0, 4)]
QUARTERS = [{"profile": "quarter", "start": at, "size": 2, "isolation": "soft"} for at in (0, 2, 4, 6)]


def known(keeper: Keeper) -> dict[object, object]:
    """Return all that a keeper knows: its cards, and what is in its indexes."""
    with keeper.up_to_date() as found:
        told: dict[object, object] = {"cards": dict(found.cards), "clusters": found.clusters(POOL)}
        for kind in KINDS:
            index = found.index(POOL, *kind)
            told[kind] = {gpu: index.best.card(gpu) for gpu in index.cards}
        return told


def exact(keeper: Keeper) -> bool:
    """Tell whether a keeper that has long been at it knows what a new one reads."""
    return known(keeper) == known(Keeper())


def place(owner: Home, profile: str = "1g.10gb") -> Lease:
    with as_tenant(owner.tenant.pk):
        wanted = Wanted(offering_id=offering(profile).pk, name="job", max_duration_s=3600)
        lease = request(wanted, project=owner.project, actor=owner.actor, now=NOW)
    with as_tenant(owner.tenant.pk):
        placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
    return lease


def release_one(owner: Home, chance: Random) -> None:
    with as_tenant(owner.tenant.pk):
        leases = list(Lease.objects.select_related("offering").filter(state="provisioning").order_by("pk"))
        if leases:
            lease = chance.choice(leases)
            ending.release(lease, reason=EndReason.BY_TENANT, now=NOW)
            ending.finish(lease, now=NOW)


def some_card(chance: Random) -> str:
    return chance.choice(sorted(Gpu.objects.values_list("pk", flat=True)))


def change_something(owner: Home, chance: Random) -> None:
    """Do one of all the things that placement has to know of."""
    gpu, node = some_card(chance), chance.choice(sorted(Node.objects.values_list("pk", flat=True)))
    toss = chance.random() < 0.5
    acts: list[Callable[[], object]] = [
        lambda: place(owner),
        lambda: place(owner, "3g.40gb"),
        lambda: place(owner, "card"),
        lambda: release_one(owner, chance),
        lambda: Gpu.objects.filter(pk=gpu).update(health="unhealthy" if toss else "healthy"),
        lambda: Gpu.objects.filter(pk=gpu).update(closed_since=NOW if toss else None),
        lambda: Node.objects.filter(pk=node).update(state="cordoned" if toss else "ready"),
        lambda: Cluster.objects.filter(name="north-2").update(silent_since=NOW if toss else None),
        lambda: Cluster.objects.filter(name="north-2").update(region="eu-south" if toss else REGION),
        lambda: Cluster.objects.update(shares_soft_cards=toss),
        lambda: Gpu.objects.filter(pk=gpu).update(
            layout_policy="fixed" if toss else "dynamic", fixed_layout=chance.choice([THREES, QUARTERS])
        ),
    ]
    chance.choice(acts)()


@contextmanager
def elsewhere() -> Iterator[Callable[[Callable[[], object]], object]]:
    """Have somebody with a connection of their own, who does what they are told and waits in between."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda act: thread.submit(act).result(60)
        thread.submit(connections.close_all).result(60)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_changes_is_known_at_the_next_look_and_what_is_undone_is_forgotten(
    own_database: OwnDatabase, seed: int
) -> None:
    chance, keeper = Random(seed), Keeper()
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), elsewhere() as stranger:
        fleet(
            Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2), Rack("north-2", REGION, MODEL, nodes=1)
        )
        owners = home("Kestrel"), home("Swift")
        for _ in range(25):
            match chance.randrange(4):
                case 0:
                    change_something(owners[0], chance)
                case 1:
                    stranger(lambda: change_something(owners[1], chance))
                case 2:  # somebody is at it, while others look, and thinks better of it
                    with transaction.atomic():
                        change_something(owners[0], chance)
                        assert exact(keeper)
                        stranger(lambda: known(keeper))
                        assert exact(keeper)
                        transaction.set_rollback(chance.random() < 0.5)
                case _:  # only a part of it is undone
                    with transaction.atomic():
                        with transaction.atomic():
                            change_something(owners[0], chance)
                            assert exact(keeper)
                            transaction.set_rollback(True)
                        assert exact(keeper)
            assert exact(keeper)


def test_what_others_have_not_committed_is_seen_when_they_have(own_database: OwnDatabase) -> None:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), elsewhere() as stranger:
        cards(2)
        kestrel, keeper = home(), Keeper()
        with transaction.atomic():
            taken = held(place(kestrel, "card"))[0].gpu_id
            stranger(lambda: Gpu.objects.exclude(pk=taken).update(health="unhealthy"))
            assert exact(keeper)
            stranger(
                lambda: known(keeper)
            )  # who cannot see the place yet, and looks for the last time before
        assert exact(keeper)
        with as_sweep(), keeper.up_to_date() as found:
            assert sum(card.places for card in found.cards.values()) == 1


def test_cards_and_places_that_were_deleted_are_forgotten(life: Life) -> None:
    cards(3)
    keeper, kestrel = Keeper(), home()
    lease = life.lease(kestrel, offering("card"))
    assert exact(keeper)
    with transaction.atomic():
        with as_tenant(kestrel.tenant.pk):
            lease.allocations.all().delete()
        Gpu.objects.filter(index=2).delete()
        assert exact(keeper)
        transaction.set_rollback(True)
    assert exact(keeper)
    with keeper.up_to_date() as found:
        assert len(found.cards) == 3


def test_who_is_too_far_behind_reads_everything(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(4)
    keeper = Keeper()
    assert exact(keeper)
    monkeypatch.setattr(feed, "FAR", 3)
    Gpu.objects.update(health="unhealthy")
    read = []
    every = feed.every_card
    monkeypatch.setattr(feed, "every_card", lambda: read.append(1) or every())
    known(keeper)
    assert read
    assert exact(keeper)


def test_an_error_on_the_way_leaves_nothing_half_known(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(2)
    keeper = Keeper()
    assert exact(keeper)
    Gpu.objects.update(health="unhealthy")
    with monkeypatch.context() as broken:
        broken.setattr(feed, "cards_with", lambda ids: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            known(keeper)
    assert exact(keeper)


def test_what_went_wrong_unseen_is_read_anew_after_five_minutes(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clock.standing_at(NOW):
        cards(2)
    keeper, passed = Keeper(), [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: passed[0])
    with keeper.up_to_date() as found:
        found.drop([some_card(Random(1))])  # as a change of which nobody was told
    passed[0] = engine.ANEW_S - 1
    assert not exact(keeper)
    passed[0] = engine.ANEW_S
    assert exact(keeper)


def test_what_somebody_was_stopped_at_trying_out_is_forgotten(life: Life) -> None:
    cards(2)
    keeper = Keeper()
    assert exact(keeper)

    def stopped_on_the_way() -> None:
        with keeper.up_to_date() as found:
            found.drop([some_card(Random(1))])
            raise TimeoutError

    with pytest.raises(TimeoutError):
        stopped_on_the_way()
    assert exact(keeper)


def test_a_process_that_was_forked_begins_anew() -> None:
    before = engine._keeper
    engine._forget()
    assert engine._keeper is not before


def test_a_card_whose_books_cannot_be_is_not_sold_and_the_others_are(life: Life) -> None:
    cards(2)
    kestrel = home()
    Gpu.objects.filter(index=0).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=[{"profile": "3g.40gb", "start": 1, "size": 4}]
    )
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([offering("card")]) == {offering("card").pk: 1}


def test_an_index_does_not_grow_with_what_came_and_went(life: Life) -> None:
    cards(2)
    keeper = Keeper()
    for health in ("unhealthy", "healthy") * 5:
        Gpu.objects.update(health=health)
        assert exact(keeper)
    with keeper.up_to_date() as found:
        best = found.index(POOL, Isolation.HARDWARE).best
    shelf, _ = best.selling(profile_of(offering("card")))[0]
    assert len(shelf.gpus) == 2


def test_another_rule_chooses_until_its_block_ends_and_ours_again_then(life: Life) -> None:
    cards(2)
    kestrel = home()
    first, second = sorted(Gpu.objects.values_list("pk", flat=True))
    Gpu.objects.filter(pk=first).update(health="unhealthy")
    place(kestrel, "3g.40gb")
    Gpu.objects.update(health="healthy")
    assert [each.gpu_id for each in held(place(kestrel))] == [second]  # which is not empty any more
    usual = engine._keeper
    with choosing_by(Engine.FIRST_FIT):
        assert [each.gpu_id for each in held(place(kestrel))] == [first]
    assert engine._keeper is usual


def test_a_card_in_anothers_hands_is_left_to_them_and_the_next_taken(own_database: OwnDatabase) -> None:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), elsewhere() as stranger:
        cards(2)
        kestrel, swift = home("Kestrel"), home("Swift")
        with transaction.atomic():
            first = place(kestrel, "1g.10gb")
            second = stranger(lambda: place(swift, "1g.10gb"))
            assert isinstance(second, Lease)
        assert held(first)[0].gpu_id != held(second)[0].gpu_id


def test_a_share_goes_to_a_card_of_ones_own_and_never_to_a_strangers(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    kestrel, swift, quarter = home("Kestrel"), home("Swift"), soft_offering()
    first, second = life.lease(kestrel, quarter), life.lease(swift, quarter)
    third = life.lease(swift, quarter)
    assert held(third)[0].gpu_id == held(second)[0].gpu_id != held(first)[0].gpu_id
