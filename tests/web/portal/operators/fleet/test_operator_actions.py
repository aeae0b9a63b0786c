"""Operators' actions need a reason and are audited completely."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from django.test import Client
from django.utils.html import escape

from billing.models import PriceVersion
from billing.services.catalogue import price_list
from billing.services.ledger import invariant_checks
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, GpuHealth, InventoryChange, Node, NodeState, Offering, OfferingState
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope
from tests import simulation
from tests.billing.histories import add_ended_lease, add_running_lease
from tests.simulation import Simulation, TenantContext
from tests.web.portal.signed_in_user import visible_text as read
from web.portal.operators import operator_lists

pytestmark = pytest.mark.django_db


def trail(action: str) -> list[AuditEvent]:
    with staff_scope():
        return list(AuditEvent.objects.filter(action=action))


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, path
    return answer.content.decode()


@pytest.mark.parametrize(
    ("step", "state"),
    [("cordon", NodeState.CORDONED), ("drain", NodeState.DRAINING), ("mark-lost", NodeState.LOST)],
)
def test_removing_a_node_from_service_is_confirmed_and_audited(
    sim: Simulation, kestrel: TenantContext, operator: Client, step: str, state: NodeState
) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    node = Node.objects.get()
    wanted = page(operator, f"/ops/nodes/{node.pk}/{step}/")
    assert "1 lease is on this node now, of Kestrel." in wanted
    assert Node.objects.get().state == NodeState.READY
    answer = operator.post(f"/ops/nodes/{node.pk}/{step}/", {"reason": "new power supply"})
    assert answer["Location"] == f"/ops/nodes/{node.pk}/"
    assert Node.objects.get().state == state
    assert InventoryChange.objects.get().reason == "new power supply"
    (event,) = trail(f"node.{state}")
    assert (event.actor_label, event.detail["reason"]) == ("operator@example.org", "new power supply")
    shown = page(operator, f"/ops/nodes/{node.pk}/")
    assert "new power supply" in shown
    operator.post(f"/ops/nodes/{node.pk}/return/", {"reason": "it is in"})
    assert Node.objects.get().state == NodeState.READY


@pytest.mark.parametrize("reason", ["", " ", "x" * 200])
def test_without_a_valid_reason_nothing_changes_and_the_form_shows_an_error(
    kestrel: TenantContext, operator: Client, reason: str
) -> None:
    node = Node.objects.get()
    answer = operator.post(f"/ops/nodes/{node.pk}/drain/", {"reason": reason})
    assert answer.status_code == 400
    assert b"A reason must have 1 to 150 characters." in answer.content
    assert Node.objects.get().state == NodeState.READY


def test_node_loss_cannot_be_simulated_on_a_real_cluster(kestrel: TenantContext, operator: Client) -> None:
    Cluster.objects.update(provisioner="kubernetes")
    node = Node.objects.get()
    assert "Simulate node loss" not in page(operator, f"/ops/nodes/{node.pk}/")
    answer = operator.post(f"/ops/nodes/{node.pk}/mark-lost/", {"reason": "to try"})
    assert answer.status_code == 409
    assert Node.objects.get().state == NodeState.READY
    (event,) = trail("ops.node.mark_lost.refused")
    assert (event.actor_label, event.detail["status"]) == ("operator@example.org", 409)
    assert event.detail["path"] == f"/ops/nodes/{node.pk}/mark-lost/"
    assert escape(event.detail["why"]) in answer.content.decode()


def test_everything_on_a_node_is_released_with_a_reason_tenants_read(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    node = Node.objects.get()
    simulation.set_node_state(node, NodeState.DRAINING, sim)
    assert "Release all leases" in page(operator, f"/ops/nodes/{node.pk}/")
    assert "Release 1 lease" in page(operator, f"/ops/nodes/{node.pk}/release-leases/")
    operator.post(f"/ops/nodes/{node.pk}/release-leases/", {"reason": "power works from 18:00"})
    step = simulation.transitions_of(lease)[-1]
    assert (step.after, step.reason, step.cause) == ("releasing", "by_operator", "power works from 18:00")
    sim.run(60)
    assert "The node is drained." in page(operator, f"/ops/nodes/{node.pk}/")


def test_a_gpu_is_quarantined_and_returned(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    gpu = simulation.held_allocations(lease)[0].gpu_id
    assert "1 lease is on it now." in page(operator, f"/ops/gpus/{gpu}/quarantine/")
    operator.post(f"/ops/gpus/{gpu}/quarantine/", {"reason": "XID 79"})
    assert Gpu.objects.get(pk=gpu).health == GpuHealth.UNHEALTHY
    shown = page(operator, f"/ops/gpus/{gpu}/")
    assert "XID 79" in shown
    assert lease.name in shown
    operator.post(f"/ops/gpus/{gpu}/return/", {"reason": "reseated"})
    assert Gpu.objects.get(pk=gpu).health == GpuHealth.HEALTHY
    assert [event.detail["reason"] for event in trail("gpu.unhealthy") + trail("gpu.healthy")] == [
        "XID 79",
        "reseated",
    ]


def test_a_faulty_gpu_is_marked_on_the_map_even_when_it_is_sold(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    assert 'class="unhealthy"' not in page(operator, "/ops/fleet-map/")
    operator.post(f"/ops/gpus/{simulation.held_allocations(lease)[0].gpu_id}/quarantine/", {"reason": "XID 79"})
    assert page(operator, "/ops/fleet-map/").count('class="unhealthy"') == 1


def test_gpus_are_listed_with_their_slices_and_can_be_filtered(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    simulation.create_fleet(simulation.SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=9), now=sim.now)
    first = page(operator, "/ops/gpus/")
    assert f"/ops/leases/{lease.pk}/" in first
    assert "1–20" in first
    assert "61–76" in page(operator, "/ops/gpus/?from=60")
    assert "1 row<" in page(operator, "/ops/gpus/?show=sold")
    assert "No GPU matches this filter." in page(operator, "/ops/gpus/?show=out")
    for odd in ("?from=-1", "?from=9999999999999", "?show=%00", "?from=x"):
        assert "1–20" in page(operator, f"/ops/gpus/{odd}")


def test_clusters_show_each_node_with_its_use(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    shown = page(operator, "/ops/clusters/")
    assert "1.0 of 4 GPUs sold" in shown
    assert "1.0 sold, 3.0 free" in shown


def test_pages_of_an_empty_fleet_show_a_notice(db: None, operator: Client) -> None:
    assert "No clusters yet" in page(operator, "/ops/clusters/")
    assert "0 GPUs in 0 clusters" in page(operator, "/ops/")


def test_the_queue_lists_waiting_requests_and_cancels_one(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    for _ in range(4):
        sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    lease = sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(5)
    shown = page(operator, "/ops/queue/")
    assert re.search(rf'href="/ops/tenants/{kestrel.tenant.pk}/"\s*>Kestrel</a>', shown)
    for words in (lease.name, "Waits for one free H100 SXM 80GB whole GPU.", "1 lease queued"):
        assert words in shown
    assert "The request leaves the queue" in page(operator, f"/ops/leases/{lease.pk}/release/")
    answer = operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "asked for twice"})
    assert answer["Location"] == "/ops/queue/"
    assert simulation.reload_lease(lease).state == LeaseState.RELEASED
    (event,) = [each for each in trail("lease.release") if each.subject_id == lease.pk]
    assert event.actor_label == "operator@example.org"
    assert "The queue is empty" in page(operator, "/ops/queue/")


def test_a_long_queue_is_paged(
    sim: Simulation, kestrel: TenantContext, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(operator_lists.PageLists.read.__kwdefaults__, "most", 2)
    for _ in range(4):
        sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    names = [sim.request_lease(kestrel, simulation.offering("whole-gpu")).name for _ in range(3)]
    first = page(operator, "/ops/queue/")
    assert names[2] not in first
    onward = re.search(r'href="(\?from=[^"]+)"', first)
    assert onward
    assert names[2] in page(operator, f"/ops/queue/{onward.group(1)}")


def test_a_lease_page_shows_every_transition_and_releases_once(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    shown = page(operator, f"/ops/leases/{lease.pk}/")
    for words in ("Requested", "Provisioning", "Active", "north-1 / n01 / GPU", lease.pk):
        assert words in shown
    operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "fan failure"})
    sim.run(60)
    over = operator.post(f"/ops/leases/{lease.pk}/release/", {"reason": "fan failure"})
    assert over.status_code == 409
    assert b"ended at" in over.content
    assert "/release/" not in page(operator, f"/ops/leases/{lease.pk}/")


def test_unknown_ids_return_404(kestrel: TenantContext, operator: Client) -> None:
    for path in ("nodes/nod_x/", "gpus/gpu_x/", "leases/lse_x/", "offerings/off_x/", "gpus/gpu_x/panel/"):
        page(operator, f"/ops/{path}", 404)
    for path in ("nodes/nod_x/drain/", "gpus/gpu_x/return/", "leases/lse_x/release/"):
        assert operator.post(f"/ops/{path}", {"reason": "because"}).status_code == 404


def test_an_offering_is_derived_priced_published_and_retired(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    simulation.create_fleet(
        simulation.SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=1, gpus_per_node=1), now=sim.now
    )
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
        price_list.price_of(draft, currency="EUR", moment=sim.now + timedelta(seconds=1)).nano_per_hour == 1_234_567_891
    )
    sim.run(2)
    operator.post(f"{address}publish/")
    assert Offering.objects.get(pk=draft.pk).state == OfferingState.PUBLISHED
    assert "A100" in page(operator, "/ops/offerings/?state=published")
    operator.post(f"{address}retire/")
    assert Offering.objects.get(pk=draft.pk).state == OfferingState.RETIRED
    assert [len(trail(f"offering.{state}")) for state in ("published", "retired")] == [1, 1]


def test_a_future_price_is_scheduled_and_ends_the_current_one(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    offering = simulation.offering("whole-gpu")
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
        ("", "", "The price is not a number"),
        ("three", "", "The price is not a number"),
        ("NaN", "", "The price is not a number"),
        ("1e999", "", "The price is not a number"),
        ("1.0000000001", "", "The price is not a number"),
        ("9" * 30, "", "The price is not a number"),
        ("-1", "2027-01-01T00:00", "The price must be 0 to"),
        ("2", "yesterday", "The time is not valid"),
        ("2", "9999-12-31T23:59", "The time is not valid"),
        ("2", "9999-12-31T23:59-08:00", "The time is not valid"),
        ("2", "0001-01-01T00:00+08:00", "The time is not valid"),
        ("2", "2026-12-01T00:00+99:00", "The time is not valid"),
        ("2", "2026-12-01T00:00<b>", "The time is not valid"),
        ("2", "2026-11-01T00:00", "already has a price"),
    ],
)
def test_an_invalid_price_shows_an_error_and_keeps_the_input(
    kestrel: TenantContext, operator: Client, price: str, since: str, words: str
) -> None:
    offering = simulation.offering("whole-gpu")
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
def test_a_price_begins_at_the_entered_time_with_its_offset(
    kestrel: TenantContext, operator: Client, typed: str, meant: datetime
) -> None:
    offering = simulation.offering("whole-gpu")
    operator.post(f"/ops/offerings/{offering.pk}/", {"price": "3.10", "from": typed})
    latest = PriceVersion.objects.filter(offering=offering).order_by("valid").last()
    assert latest
    assert latest.valid.lower == meant


def test_a_price_preview_shows_last_months_usage_at_the_new_price(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    offering = simulation.offering("whole-gpu")
    october = sim.now - timedelta(days=25)
    for owner, hours in ((kestrel, 10), *((simulation.create_tenant(f"Tern {n}"), 1) for n in range(13))):
        add_ended_lease(owner.project, offering, october, hours * 3600)
    lease_rating.rate_all_leases(now=sim.now)
    before = list(PriceVersion.objects.values_list("pk", "valid"))
    answer = operator.get(f"/ops/offerings/{offering.pk}/?try=5.60")
    shown = re.sub(r" ([.:])", r"\1", read(answer))
    assert answer.status_code == 200
    assert "October 2026 was €64.40 and would have been €128.80 at €5.60/h: + €64.40. This is a simulation;" in shown
    assert "Kestrel 1 36,000 €28.00 €56.00 + €28.00" in shown
    assert "and 2 more tenants; the API returns all of them." in shown
    assert "This is a simulation; no price was published." in shown
    assert answer.content.decode().count('value="5.60"') == 2, "it is proposed as the new price"
    assert list(PriceVersion.objects.values_list("pk", "valid")) == before


def test_a_preview_without_usage_shows_a_notice_and_an_invalid_price_is_refused(
    kestrel: TenantContext, operator: Client
) -> None:
    address = f"/ops/offerings/{simulation.offering('whole-gpu').pk}/"
    assert "No usage in October 2026" in read(operator.get(f"{address}?try=5"))
    refused = operator.get(f"{address}?try=five")
    assert refused.status_code == 400
    assert "The price is not a number" in read(refused)


def test_usage_without_a_price_is_listed_with_a_link_to_its_offering(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    offering = simulation.offering("whole-gpu")
    assert "without a price." not in page(operator, "/ops/offerings/")
    lease = add_running_lease(kestrel.project, offering, sim.now - timedelta(days=40))
    shown = page(operator, "/ops/offerings/")
    assert "<b>1 period of usage without a price.</b>" in shown
    assert lease.pk in shown
    assert f'<a class="link" href="/ops/offerings/{offering.pk}/">' in shown


def test_an_offering_is_renamed_and_a_bad_label_refused(kestrel: TenantContext, operator: Client) -> None:
    address = f"/ops/offerings/{simulation.offering('whole-gpu').pk}/"
    operator.post(address, {"label": "H100, the whole of it"})
    assert simulation.offering("whole-gpu").label == "H100, the whole of it"
    assert operator.post(address, {"label": ""}).status_code == 400


def test_the_system_page_distinguishes_writes_from_reads(kestrel: TenantContext, operator: Client) -> None:
    node = Node.objects.get()
    operator.post(f"/ops/nodes/{node.pk}/cordon/", {"reason": "new power supply"})
    changes = page(operator, "/ops/system/")
    assert "node.cordoned" in changes
    assert "ops.system" not in changes
    count = len(invariant_checks.ALL_INVARIANTS)
    assert f"{count} of {count} integrity checks passed" in changes
    assert "Valkey does not respond" in changes
    visits = page(operator, "/ops/system/?trail=visits")
    assert "ops.node.cordon" in visits
    assert "node.cordoned" not in visits.replace("ops.node.cordon", "")


@pytest.mark.deep
def test_the_operators_audit_log_is_filtered_by_url_and_its_api_call_matches(
    kestrel: TenantContext, operator: Client
) -> None:
    node = Node.objects.get()
    for step in ("cordon", "return", "drain"):
        operator.post(f"/ops/nodes/{node.pk}/{step}/", {"reason": f"because of {step}"})
    text = f"/ops/system/?trail=changes&action=node.cordoned&subject={node.pk}&day=2026-11-21"
    (event,) = trail("node.cordoned")
    html = page(operator, text.replace("2026-11-21", event.at.date().isoformat()))
    assert "because of cordon" in html
    assert "because of drain" not in html
    assert 'aria-label="Action node.cordoned: remove this filter"' in html
    assert '<input type="hidden" name="trail" value="changes">' in page(operator, "/ops/system/?trail=changes")
    found = unquote(html)
    assert "ops/audit-events?actor_kind=staff&amp;visits=false&amp;action=node.cordoned" in found.replace("&#x27;", "'")
    assert f"subject={node.pk}" in found
    assert f"at__gte={event.at.date()}T00:00:00Z" in found
    assert "No entries match these filters." in page(operator, "/ops/system/?day=2001-01-01")


def test_changes_need_a_csrf_token(kestrel: TenantContext, operator: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    node = Node.objects.get()
    assert strict.post(f"/ops/nodes/{node.pk}/cordon/", {"reason": "x"}).status_code == 403
    assert Node.objects.get().state == NodeState.READY
