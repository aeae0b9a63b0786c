"""Who has waited for an hour holds the younger back, but only while there is something to wait for."""

from datetime import timedelta

import pytest
from django.db import DataError

from broker.models import Gpu, Health, Lease
from broker.services import inventory
from broker.services.leases import bursts, placing
from broker.services.leases.placing import PATIENCE
from tests.world import MODEL, OPERATOR, REGION, Life, cards, fresh, held, home, offering

POOL = (MODEL, REGION)


def test_a_gang_that_the_cards_in_service_cannot_hold_halts_nobody(life: Life) -> None:
    cards(4)
    kestrel = home("Kestrel")
    running = life.lease(kestrel, offering("card"))
    gang = life.ask(kestrel, offering("card"), quantity=4)
    life.run()
    elsewhere = Gpu.objects.exclude(pk=held(running)[0].gpu_id).earliest("index")
    inventory.set_health(elsewhere, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    life.clock.at += PATIENCE + timedelta(seconds=1)
    small = life.ask(home("Swift"), offering("1g.10gb"))
    life.run()
    assert (fresh(gang).state, fresh(small).state) == ("queued", "provisioning")


def test_who_is_held_back_is_told_behind_what(life: Life) -> None:
    cards(4)
    kestrel, swift = home("Kestrel"), home("Swift")
    running = life.lease(kestrel, offering("card"), max_duration_s=40 * 3600)
    gang = life.ask(kestrel, offering("card"), quantity=4)
    life.run()
    life.clock.at += PATIENCE + timedelta(seconds=1)
    small, other = life.ask(swift, offering("1g.10gb")), life.ask(kestrel, offering("1g.10gb"))
    life.run()
    for lease in (small, other):
        assert fresh(lease).state == "queued"
        assert fresh(lease).waits_for == (
            f"Waits behind an older request for 4 × {gang.offering.label}, which has waited for more than an hour"
            " and is placed first."
        )
    version = fresh(small).version
    placing.serve(POOL, now=life.now)
    assert fresh(small).version == version
    life.release(running)
    life.go(60)
    assert (fresh(gang).state, fresh(small).state) == ("active", "queued")
    assert "free H100 1g.10gb" in fresh(small).waits_for


def test_a_lease_that_cannot_even_be_read_holds_up_no_other(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    kestrel = home("Kestrel")
    broken, whole = life.ask(kestrel, offering("card")), life.ask(kestrel, offering("card"))
    place = placing.place

    def unwritable(choices: list[bursts.Choice], now: object) -> set[str]:
        assert broken.pk in {choice.row.id for choice in choices}
        raise DataError("timestamp too large (after year 10K)")

    def unreadable(lease: Lease, *, now: object) -> bool:
        if lease.pk == broken.pk:
            raise DataError("timestamp too large (after year 10K)")
        return place(lease, now=now)  # type: ignore[arg-type]

    monkeypatch.setattr(bursts, "_take", unwritable)
    monkeypatch.setattr(placing, "place", unreadable)
    assert placing.serve(POOL, now=life.now) == 1
    assert (fresh(broken).state, fresh(whole).state) == ("queued", "provisioning")
