"""What people see of storage: its price, what it has cost, and whether anybody has set one."""

from datetime import timedelta

import pytest

from broker.models import Offering
from broker.services.volumes import histories
from tests.billing.portal.desks import Desk
from tests.billing.storage.shelves import kept, storage
from tests.world import NOW

pytestmark = pytest.mark.django_db


def test_the_page_of_volumes_tells_prices_and_what_each_has_cost(desk: Desk) -> None:
    assert "GiB and month" not in desk.read("/volumes/")
    storage(1_000_000, since=NOW - timedelta(days=40))
    kept(desk.owner.project, 100, NOW - timedelta(hours=10))
    page = desk.read("/volumes/")
    for part in ("eu-1", "€0.73", "/GiB and month", "€1.00 so far"):
        assert part in page, part


def test_a_region_has_one_offering_of_storage_however_often_it_is_asked_for() -> None:
    first = histories.storage_in("eu-1", now=NOW)
    assert histories.storage_in("eu-1", now=NOW) == first
    assert list(Offering.objects.storage()) == [first]
    assert first.is_storage
    with pytest.raises(ValueError, match="no part of a card"):
        _ = first.model
