"""Storage prices and costs on tenants' pages."""

from datetime import timedelta

import pytest

from broker.models import Offering
from broker.services.volumes import volume_metering
from tests.billing.storage.storage_histories import add_volume_history, create_priced_storage
from tests.simulation import NOW
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


def test_the_volumes_page_shows_storage_prices_and_the_cost_so_far(portal: PortalSession) -> None:
    assert "GiB and month" not in portal.read("/volumes/")
    create_priced_storage(1_000_000, since=NOW - timedelta(days=40))
    add_volume_history(portal.owner.project, 100, NOW - timedelta(hours=10))
    page = portal.read("/volumes/")
    for part in ("eu-1", "€0.73", "/GiB and month", "€1.00 so far"):
        assert part in page, part


def test_a_region_has_exactly_one_storage_offering() -> None:
    first = volume_metering.storage_offering("eu-1", now=NOW)
    assert volume_metering.storage_offering("eu-1", now=NOW) == first
    assert list(Offering.objects.storage()) == [first]
    assert first.is_storage
    with pytest.raises(ValueError, match="not part of a GPU"):
        _ = first.model
