"""What operators do on their pages: always with a reason, always in the trail, never half."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from django.test import Client
from django.utils.html import escape

from billing.models import PriceVersion
from billing.services import prices, proofs, rating
from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, Health, InventoryChange, Node, NodeState, Offering, OfferingState
from tenants.models import AuditEvent
from tenants.services.walls import as_staff
from tests import world
from tests.billing.histories import ran, runs
from tests.billing.portal.desks import words as read
from tests.world import Home, Life

pytestmark = pytest.mark.django_db


def trail(action: str) -> list[AuditEvent]:
    with as_staff():
        return list(AuditEvent.objects.filter(action=action))


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, path
    return answer.content.decode()


@pytest.mark.parametrize(
    ("step", "state"),
    [("cordon", NodeState.CORDONED), ("drain", NodeState.DRAINING), ("lose", NodeState.LOST)],
)
def test_a_node_is_taken_out_of_service_after_asking_with_its_reason_kept(
    life: Life, kestrel: Home, operator: Client, step: str, state: NodeState
) -> None:
    life.lease(kestrel, world.offering("1g.10gb"))
    node = Node.objects.get()
    asked = page(operator, f"/ops/nodes/{node.pk}/{step}/")
    assert "1 lease is on it now, of Kestrel." in asked
    assert Node.objects.get().state == NodeState.READY
    answer = operator.post(f"/ops/nodes/{node.pk}/{step}/", {"reason": "new power supply"})
    assert answer["Location"] == f"/ops/nodes/{node.pk}/"
    assert Node.objects.get().state == state
    assert InventoryChange.objects.get().reason == "new power supply"
    (event,) = trail(f"node.{state}")
    assert (event.actor_label, event.detail["reason"]) == ("operator@example.org", "new power supply")
    shown = page(operator, f"/ops/nodes/{node.pk}/")
    assert "new power supply" in shown
    operator.post(f"/ops/nodes/{node.pk}/ready/", {"reason": "it is in"})
    assert Node.objects.get().state == NodeState.READY


@pytest.mark.parametrize("reason", ["", " ", "x" * 200])
def test_without_a_reason_nothing_changes_and_the_form_says_why(
    kestrel: Home, operator: Client, reason: str
) -> None:
    node = Node.objects.get()
    answer = operator.post(f"/ops/nodes/{node.pk}/drain/", {"reason": reason})
    assert answer.status_code == 400
    assert b"A reason has 1 to 150 characters." in answer.content
    assert Node.objects.get().state == NodeState.READY


def test_a_machine_of_a_real_cluster_cannot_be_lost_on_request(kestrel: Home, operator: Client) -> None:
    Cluster.objects.update(provisioner="kubernetes")
    node = Node.objects.get()
    assert "Lose this node" not in page(operator, f"/ops/nodes/{node.pk}/")
    answer = operator.post(f"/ops/nodes/{node.pk}/lose/", {"reason": "to try"})
    assert answer.status_code == 409
    assert Node.objects.get().state == NodeState.READY
    (event,) = trail("ops.node.lose.refused")
    assert (event.actor_label, event.detail["status"]) == ("operator@example.org", 409)
    assert event.detail["path"] == f"/ops/nodes/{node.pk}/lose/"
    assert escape(event.detail["why"]) in answer.content.decode()


def test_everything_on_a_node_is_released_with_a_reason_tenants_read(
    life: Life, kestrel: Home, operator: Client
) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    node = Node.objects.get()
    world.set_node(node, NodeState.DRAINING, life)
    assert "Release them all" in page(operator, f"/ops/nodes/{node.pk}/")
    assert "Release 1 lease" in page(operator, f"/ops/nodes/{node.pk}/release/")
    operator.post(f"/ops/nodes/{node.pk}/release/", {"reason": "power works from 18:00"})
    step = world.ledger(lease)[-1]
    assert (step.after, step.reason, step.cause) == ("releasing", "by_operator", "power works from 18:00")
    life.run(60)
    assert "It is drained." in page(operator, f"/ops/nodes/{node.pk}/")


def test_a_card_is_quarantined_and_returned(life: Life, kestrel: Home, operator: Client) -> None:
    lease = life.lease(kestrel, world.offering("3g.40gb"))
    gpu = world.held(lease)[0].gpu_id
    assert "1 lease is on it now." in page(operator, f"/ops/cards/{gpu}/quarantine/")
    operator.post(f"/ops/cards/{gpu}/quarantine/", {"reason": "XID 79"})
    assert Gpu.objects.get(pk=gpu).health == Health.UNHEALTHY
    shown = page(operator, f"/ops/cards/{gpu}/")
    assert "XID 79" in shown
    assert lease.name in shown
    operator.post(f"/ops/cards/{gpu}/return/", {"reason": "reseated"})
    assert Gpu.objects.get(pk=gpu).health == Health.HEALTHY
    assert [event.detail["reason"] for event in trail("card.unhealthy") + trail("card.healthy")] == [
        "XID 79",
        "reseated",
    ]


def test_an_ill_card_stands_out_on_the_map_even_when_it_is_sold(
    life: Life, kestrel: Home, operator: Client
) -> None:
    lease = life.lease(kestrel, world.offering("card"))
    assert 'class="ill"' not in page(operator, "/ops/map/")
    operator.post(f"/ops/cards/{world.held(lease)[0].gpu_id}/quarantine/", {"reason": "XID 79"})
    assert page(operator, "/ops/map/").count('class="ill"') == 1


def test_cards_are_listed_with_their_slices_and_can_be_filtered(
    life: Life, kestrel: Home, operator: Client
) -> None:
    lease = life.lease(kestrel, world.offering("3g.40gb"))
    world.fleet(world.Rack("west-2", "eu-west", "A100-80GB", nodes=9), now=life.now)
    first = page(operator, "/ops/cards/")
    assert f"/ops/leases/{lease.pk}/" in first
    assert "1 to 20 shown" in first
    assert "61 to 76 shown" in page(operator, "/ops/cards/?from=60")
    assert "1 card, 1 to 1 shown" in page(operator, "/ops/cards/?show=sold")
    assert "0 of the fleet" in page(operator, "/ops/cards/?show=out")
    for odd in ("?from=-1", "?from=9999999999999", "?show=%00", "?from=x"):
        assert "1 to 20 shown" in page(operator, f"/ops/cards/{odd}")


def test_clusters_show_each_node_with_its_use(life: Life, kestrel: Home, operator: Client) -> None:
    life.lease(kestrel, world.offering("card"))
    shown = page(operator, "/ops/clusters/")
    assert "1.0 of 4 cards sold" in shown
    assert "1.0 sold, 3.0 free" in shown


def test_a_fleet_without_cards_says_how_to_begin(db: None, operator: Client) -> None:
    assert "No cluster yet" in page(operator, "/ops/clusters/")
    assert "0 cards in 0 clusters" in page(operator, "/ops/")


def test_the_queue_shows_who_waits_for_what_and_lets_go(life: Life, kestrel: Home, operator: Client) -> None:
    for _ in range(4):
        life.lease(kestrel, world.offering("card"))
    lease = life.ask(kestrel, world.offering("card"))
    life.run(5)
    shown = page(operator, "/ops/queue/")
    for words in (lease.name, "<span>Kestrel</span>", "Waits for one free H100 whole card.", "1 lease waits"):
        assert words in shown
    assert "It leaves the queue" in page(operator, f"/ops/leases/{lease.pk}/release/")
    answer = operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "asked for twice"})
    assert answer["Location"] == "/ops/queue/"
    assert world.fresh(lease).state == LeaseState.RELEASED
    (event,) = [each for each in trail("lease.release") if each.subject_id == lease.pk]
    assert event.actor_label == "operator@example.org"
    assert "The queue is empty" in page(operator, "/ops/queue/")


def test_a_long_queue_is_paged(
    life: Life, kestrel: Home, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.services.fleet.queue.waiting.__kwdefaults__", {"after": "", "limit": 2})
    for _ in range(4):
        life.lease(kestrel, world.offering("card"))
    names = [life.ask(kestrel, world.offering("card")).name for _ in range(3)]
    first = page(operator, "/ops/queue/")
    assert names[2] not in first
    onward = re.search(r'href="(\?after=[^"]+)"', first)
    assert onward
    assert names[2] in page(operator, f"/ops/queue/{onward.group(1)}")


def test_a_lease_shows_every_step_and_is_released_once(life: Life, kestrel: Home, operator: Client) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    shown = page(operator, f"/ops/leases/{lease.pk}/")
    for words in ("Requested", "Provisioning", "Active", "north-1 / n01 / card", lease.pk):
        assert words in shown
    operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "fan failure"})
    life.run(60)
    over = operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "fan failure"})
    assert over.status_code == 409
    assert b"ended at" in over.content
    assert "/release/" not in page(operator, f"/ops/leases/{lease.pk}/")


def test_ids_that_name_nothing_are_missing(kestrel: Home, operator: Client) -> None:
    for path in ("nodes/nod_x/", "cards/gpu_x/", "leases/lse_x/", "offerings/off_x/", "cards/gpu_x/panel/"):
        page(operator, f"/ops/{path}", 404)
    for path in ("nodes/nod_x/drain/", "cards/gpu_x/return/", "leases/lse_x/release/"):
        assert operator.post(f"/ops/{path}", {"reason": "because"}).status_code == 404


def test_an_offering_is_derived_priced_published_and_retired(
    life: Life, kestrel: Home, operator: Client
) -> None:
    world.fleet(world.Rack("west-2", "eu-west", "A100-80GB", nodes=1, cards_per_node=1), now=life.now)
    Offering.objects.filter(region="eu-west").delete()
    operator.post("/ops/offerings/derive/")
    draft = Offering.objects.filter(region="eu-west", price_class="on_demand").first()
    assert draft
    assert draft.state == OfferingState.DRAFT
    address = f"/ops/offerings/{draft.pk}/"
    unpriced = operator.post(f"{address}publish/")
    assert unpriced.status_code == 409
    assert b"has no price" in unpriced.content
    assert operator.post(address, {"price": "1.234567891", "from": ""}).status_code == 302
    assert (
        prices.of(draft, currency="EUR", moment=life.now + timedelta(seconds=1)).nano_per_hour
        == 1_234_567_891
    )
    life.run(2)
    operator.post(f"{address}publish/")
    assert Offering.objects.get(pk=draft.pk).state == OfferingState.PUBLISHED
    assert "A100" in page(operator, "/ops/offerings/?state=published")
    operator.post(f"{address}retire/")
    assert Offering.objects.get(pk=draft.pk).state == OfferingState.RETIRED
    assert [len(trail(f"offering.{state}")) for state in ("published", "retired")] == [1, 1]


def test_a_later_price_is_scheduled_and_the_running_one_closed(
    life: Life, kestrel: Home, operator: Client
) -> None:
    offering = world.offering("card")
    answer = operator.post(f"/ops/offerings/{offering.pk}/", {"price": "3.10", "from": "2026-12-01T00:00"})
    assert answer.status_code == 302
    first, second = PriceVersion.objects.filter(offering=offering).order_by("valid")
    assert first.valid.upper == second.valid.lower
    assert second.nano_per_hour == 3_100_000_000
    assert second.created_by == "operator@example.org"
    shown = page(operator, f"/ops/offerings/{offering.pk}/")
    assert "scheduled" in shown
    assert "from <time" in page(operator, "/ops/offerings/")


@pytest.mark.parametrize(
    ("price", "since", "words"),
    [
        ("", "", "A price is a number"),
        ("three", "", "A price is a number"),
        ("NaN", "", "A price is a number"),
        ("1e999", "", "A price is a number"),
        ("1.0000000001", "", "A price is a number"),
        ("9" * 30, "", "A price is a number"),
        ("-1", "2027-01-01T00:00", "nought or more"),
        ("2", "yesterday", "A moment looks like"),
        ("2", "9999-12-31T23:59", "A moment looks like"),
        ("2", "9999-12-31T23:59-08:00", "A moment looks like"),
        ("2", "0001-01-01T00:00+08:00", "A moment looks like"),
        ("2", "2026-12-01T00:00+99:00", "A moment looks like"),
        ("2", "2026-12-01T00:00<b>", "A moment looks like"),
        ("2", "2026-11-01T00:00", "already has a price"),
    ],
)
def test_a_price_that_cannot_be_meant_is_refused_beside_its_field(
    kestrel: Home, operator: Client, price: str, since: str, words: str
) -> None:
    offering = world.offering("card")
    before = list(PriceVersion.objects.values_list("pk", "valid"))
    answer = operator.post(f"/ops/offerings/{offering.pk}/", {"price": price, "from": since})
    assert answer.status_code in (400, 409)
    shown = answer.content.decode()
    assert words in shown
    assert all(f'value="{escape(typed)}"' in shown for typed in (price, since) if typed)
    assert list(PriceVersion.objects.values_list("pk", "valid")) == before


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-12-01T00:00", datetime(2026, 12, 1, tzinfo=UTC)),
        ("2026-12-01T00:00Z", datetime(2026, 12, 1, tzinfo=UTC)),
        ("2026-12-01T00:00+02:00", datetime(2026, 11, 30, 22, tzinfo=UTC)),
        ("2026-12-01T00:00-05:30", datetime(2026, 12, 1, 5, 30, tzinfo=UTC)),
    ],
)
def test_a_price_begins_at_the_moment_that_was_typed_with_its_offset(
    kestrel: Home, operator: Client, typed: str, meant: datetime
) -> None:
    offering = world.offering("card")
    operator.post(f"/ops/offerings/{offering.pk}/", {"price": "3.10", "from": typed})
    latest = PriceVersion.objects.filter(offering=offering).order_by("valid").last()
    assert latest
    assert latest.valid.lower == meant


def test_a_price_is_tried_on_last_month_before_it_is_published(
    life: Life, kestrel: Home, operator: Client
) -> None:
    offering = world.offering("card")
    october = life.now - timedelta(days=25)
    for owner, hours in ((kestrel, 10), *((world.home(f"Tern {n}"), 1) for n in range(13))):
        ran(owner.project, offering, october, hours * 3600)
    rating.rate(now=life.now)
    before = list(PriceVersion.objects.values_list("pk", "valid"))
    answer = operator.get(f"/ops/offerings/{offering.pk}/?try=5.60")
    shown = re.sub(r" ([.:])", r"\1", read(answer))
    assert answer.status_code == 200
    assert (
        "October 2026 was €64.40 and would have been €128.80 at €5.60/h: + €64.40. Nothing was published."
        in shown
    )
    assert "Kestrel 1 36,000 €28.00 €56.00 + €28.00" in shown
    assert "and 2 more tenants; the call returns them all." in shown
    assert "Nothing was published." in shown
    assert answer.content.decode().count('value="5.60"') == 2, "it is proposed as the new price"
    assert list(PriceVersion.objects.values_list("pk", "valid")) == before


def test_a_preview_of_nothing_says_so_and_one_of_no_price_is_refused(kestrel: Home, operator: Client) -> None:
    address = f"/ops/offerings/{world.offering('card').pk}/"
    assert "Nobody used it in October 2026" in read(operator.get(f"{address}?try=5"))
    refused = operator.get(f"{address}?try=five")
    assert refused.status_code == 400
    assert "A price is a number" in read(refused)


def test_use_without_a_price_stands_on_the_page_with_the_way_to_mend_it(
    life: Life, kestrel: Home, operator: Client
) -> None:
    offering = world.offering("card")
    assert "without a price." not in page(operator, "/ops/offerings/")
    lease = runs(kestrel.project, offering, life.now - timedelta(days=40))
    shown = page(operator, "/ops/offerings/")
    assert "<b>1 stretch of use without a price.</b>" in shown
    assert lease.pk in shown
    assert f'<a class="link" href="/ops/offerings/{offering.pk}/">' in shown


def test_an_offering_is_renamed_and_a_bad_label_refused(kestrel: Home, operator: Client) -> None:
    address = f"/ops/offerings/{world.offering('card').pk}/"
    operator.post(address, {"label": "H100, the whole of it"})
    assert world.offering("card").label == "H100, the whole of it"
    assert operator.post(address, {"label": ""}).status_code == 400


def test_the_system_page_tells_changes_from_visits(kestrel: Home, operator: Client) -> None:
    node = Node.objects.get()
    operator.post(f"/ops/nodes/{node.pk}/cordon/", {"reason": "new power supply"})
    changes = page(operator, "/ops/system/")
    assert "node.cordoned" in changes
    assert "ops.system" not in changes
    assert f"{len(proofs.EVERY)} of {len(proofs.EVERY)} proofs hold" in changes
    assert "Valkey does not answer" in changes
    visits = page(operator, "/ops/system/?trail=visits")
    assert "ops.node.cordon" in visits
    assert "node.cordoned" not in visits.replace("ops.node.cordon", "")


def test_the_operators_trail_is_sifted_by_its_address_and_its_call_follows(
    kestrel: Home, operator: Client
) -> None:
    node = Node.objects.get()
    for step in ("cordon", "ready", "drain"):
        operator.post(f"/ops/nodes/{node.pk}/{step}/", {"reason": f"because of {step}"})
    asked = f"/ops/system/?trail=changes&action=node.cordoned&subject={node.pk}&day=2026-11-21"
    (event,) = trail("node.cordoned")
    html = page(operator, asked.replace("2026-11-21", event.at.date().isoformat()))
    assert "because of cordon" in html
    assert "because of drain" not in html
    assert 'aria-label="What node.cordoned: remove this filter"' in html
    assert '<input type="hidden" name="trail" value="changes">' in page(operator, "/ops/system/")
    told = unquote(html)
    assert "ops/audit-events?actor_kind=staff&amp;visits=false&amp;action=node.cordoned" in told.replace(
        "&#x27;", "'"
    )
    assert f"subject={node.pk}" in told
    assert f"at__gte={event.at.date()}T00:00:00Z" in told
    assert "Nothing that operators did matches" in page(operator, "/ops/system/?day=2001-01-01")


def test_changes_need_the_forms_secret(kestrel: Home, operator: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    node = Node.objects.get()
    assert strict.post(f"/ops/nodes/{node.pk}/cordon/", {"reason": "x"}).status_code == 403
    assert Node.objects.get().state == NodeState.READY
