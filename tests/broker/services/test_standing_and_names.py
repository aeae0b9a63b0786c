"""Where leases stand while they wait, and what people call them."""

import pytest

from broker.models import Lease
from broker.services.leases import naming, standing
from tenants.models import AuditEvent
from tenants.services.refusals import Stale
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, offering


def test_positions_count_every_tenants_queue_and_show_only_ones_own(life: Life) -> None:
    cards(1)
    kestrel, swift = home("Kestrel"), home("Swift")
    life.lease(kestrel, offering("card"))
    theirs = life.ask(swift, offering("card"))
    life.run(1)
    mine = life.ask(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        assert standing.positions([mine, theirs]) == {mine.pk: standing.Position(2, 2)}
        assert standing.positions([]) == {}


def test_starts_that_had_not_to_queue_are_told_by_their_seconds(life: Life) -> None:
    cards(2)
    kestrel = home()
    for _ in range(3):
        life.lease(kestrel, offering())
    with as_tenant(kestrel.tenant.pk):
        seconds = standing.starts(kestrel.tenant.pk, offering())
    assert len(seconds) == 3
    assert list(seconds) == sorted(seconds)
    assert 1 < seconds[0] < 20


def test_a_new_name_and_new_tags_are_kept_and_audited(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering(), name="old")
    with as_tenant(kestrel.tenant.pk):
        naming.rename(lease, name="new", tags={"team": "nlp"}, actor=kestrel.actor, now=life.now)
        detail = AuditEvent.objects.get(action="lease.rename").detail
    assert (fresh(lease).name, fresh(lease).tags) == ("new", {"team": "nlp"})
    assert detail["before"] == {"name": "old", "tags": {}}


def test_the_same_name_again_changes_nothing(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering(), name="old")
    with as_tenant(kestrel.tenant.pk):
        assert naming.rename(lease, name="old", actor=kestrel.actor, now=life.now).version == lease.version


def test_who_read_an_older_version_is_refused(life: Life) -> None:
    cards(1)
    kestrel = home()
    lease = life.ask(kestrel, offering())
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(version=9)
        with pytest.raises(Stale):
            naming.rename(lease, name="new", actor=kestrel.actor, now=life.now)
