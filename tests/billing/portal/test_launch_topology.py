"""Links between the cards of a gang, at the desk: asked for, quoted, refused, and proposed again."""

import pytest

from broker.models import Gpu, Lease
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk, words
from tests.world import offering

pytestmark = pytest.mark.django_db


def path(**more: str) -> str:
    return "/launch/?" + "&".join(
        f"{name}={value}" for name, value in {"offering": offering("card").pk, "count": "2", **more}.items()
    )


def test_links_are_asked_for_where_whole_cards_are_and_nowhere_else(desk: Desk) -> None:
    assert "Links between cards" in desk.read(path())
    assert "Links between cards" not in desk.read(path(offering=offering("1g.10gb").pk))


def test_a_gang_with_links_is_quoted_launched_shown_and_proposed_again(desk: Desk) -> None:
    for card in Gpu.objects.all():
        Gpu.objects.filter(pk=card.pk).update(fabric=str(card.index // 2))
    page = desk.read(path(topology="nvlink"))
    assert "No fleet of ours" not in page
    assert "card 0" in page
    sent = {"offering": offering("card").pk, "class": "on_demand", "name": "new", "count": "2", "lasts": "8 h",
            "runs": "own", "image": "python:3", "key": "k1", "topology": "nvlink"}  # fmt: skip
    assert desk.post("/launch/", **sent).status_code == 302
    with as_tenant(desk.owner.tenant.pk):
        lease = Lease.objects.get()
    assert (lease.topology, lease.same_node) == ("nvlink", True)
    assert "on one node, linked by NVLink" in desk.read(f"/leases/{lease.pk}/")
    again = desk.get(f"/launch/?again={lease.pk}").content.decode()
    assert '<option value="nvlink" selected>' in again
    assert '"topology": "nvlink"' in again or "topology&quot;: &quot;nvlink" in again


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"topology": "nvlink"}, "by NVLink holds at most 0"),
        ({"topology": "bus"}, "is no way to reach a card"),
    ],
)
def test_links_that_cannot_be_had_are_refused_in_words(desk: Desk, asked: dict[str, str], why: str) -> None:
    assert why in words(desk.get(path(**asked)))


def test_one_card_needs_no_links_whatever_the_form_says(desk: Desk) -> None:
    assert "has nothing to reach" not in desk.read(path(count="1", topology="nvlink"))
