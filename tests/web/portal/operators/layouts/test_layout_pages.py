"""Layout pages: partitioning, decisions and their audit log."""

import pytest
from django.test import Client

from broker import tasks
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Cluster, Gpu, Node, Repartition
from broker.services.inventory import cluster_options
from broker.services.leases.lease_requests import PlacementImpossible
from broker.services.reports import fleet_gpus
from broker.services.reports.attention_items import _node_items
from broker.services.reports.gpu_usage import UnitUse
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope
from tests.broker.services.repartition.fixed_layouts import Driver, break_node, create_fixed_nodes, propose_repartition
from tests.simulation import OPERATOR, Simulation, TenantContext, create_tenant, offering, reload_lease


@pytest.fixture
def node(sim: Simulation) -> Node:
    return create_fixed_nodes()[0]


@pytest.fixture
def kestrel(node: Node, sim: Simulation) -> TenantContext:
    """A tenant whose queued lease needs a slice that no GPU offers."""
    made = create_tenant("Kestrel")
    sim.request_lease(made, offering("3g.40gb"), quantity=2)
    sim.run(180)
    return made


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def trail() -> list[tuple[str, str, str]]:
    with staff_scope():
        events = AuditEvent.objects.filter(action__startswith="layout").exclude(action__endswith=".seen")
        return [
            (event.action, event.actor_label, event.detail.get("reason", ""))
            for event in events.order_by("at", "id")
            if "path" not in event.detail
        ]


@pytest.mark.deep
def test_a_plan_is_requested_approved_and_carried_out_on_the_pages(
    sim: Simulation, node: Node, kestrel: TenantContext, operator: Client
) -> None:
    Cluster.objects.update(auto_repartition=False)
    here = f"/ops/clusters/{node.cluster_id}/layouts/"
    assert here in page(operator, "/ops/clusters/")
    shown = page(operator, here)
    assert "2 GPUs with 7 × 1g.10gb" in shown
    assert "demand: 2 × 3g.40gb" in shown
    assert "A plan changes nothing until you approve it." in page(operator, f"{here}plan/")
    assert operator.post(f"{here}plan/")["Location"] == here
    sim.run(1)
    change = Repartition.objects.get()
    assert "1 GPU with 2 × 3g.40gb" in page(operator, here)
    one = f"/ops/layout-changes/{change.pk}/"
    assert "Approve" in page(operator, one)
    assert "Running leases continue until they end" in page(operator, f"{one}approve/")
    operator.post(f"{one}approve/", {"reason": "they have waited long enough"})
    driver = Driver(sim, change)
    driver.until(RepartitionStep.DONE)
    shown = page(operator, one)
    assert all(word in shown for word in ("Draining", "Repartitioning", "Done", "the node offers the new layout"))
    assert "they have waited long enough" in shown
    assert trail() == [
        ("layouts.plan", "operator@example.org", ""),
        ("layout_change.closing", "operator@example.org", "they have waited long enough"),
    ]
    assert "Current layout" in page(operator, here)


def test_with_automatic_repartitioning_a_refused_lease_gets_its_gpus(
    sim: Simulation, node: Node, operator: Client
) -> None:
    Cluster.objects.update(auto_repartition=False)
    swift, here = create_tenant("Swift"), f"/ops/clusters/{node.cluster_id}/layouts/"
    with pytest.raises(PlacementImpossible):
        sim.request_lease(swift, offering("3g.40gb"), quantity=2)
    assert f"{here}enable-automatic/" in page(operator, here)
    assert "No lease is interrupted" in page(operator, f"{here}enable-automatic/")
    assert operator.post(f"{here}enable-automatic/", {"reason": " "}).status_code == 400
    assert operator.post(f"{here}enable-automatic/", {"reason": "it is theirs"})["Location"] == here
    assert operator.post(f"{here}enable-automatic/", {"reason": "it is theirs"}).status_code == 302
    waiting = sim.request_lease(swift, offering("3g.40gb"), quantity=2)
    sim.run(180)
    tasks.plan_repartitions(node.cluster_id)
    sim.run_with_sweeps(180)
    assert reload_lease(waiting).state == "active"
    assert f"{here}disable-automatic/" in page(operator, here)
    assert "are refused" in page(operator, f"{here}disable-automatic/")
    operator.post(f"{here}disable-automatic/", {"reason": "no longer"})
    assert not Cluster.objects.get().auto_repartition
    begun = [(action, reason) for action, _, reason in trail() if action == "layouts.enable_automatic"]
    assert begun == [("layouts.enable_automatic", "it is theirs"), ("layouts.enable_automatic", "no longer")]
    assert operator.get("/ops/clusters/clu_x/layouts/enable-automatic/").status_code == 404


def test_enabling_automatic_repartitioning_plans_the_cluster_at_once(sim: Simulation, node: Node) -> None:
    hint = ("broker.plan_repartitions", node.cluster_id)
    for auto_repartition in (False, True):
        cluster_options.set_cluster_option(
            cluster_options.AUTO_REPARTITION,
            node.cluster,
            auto_repartition,
            why="as agreed",
            actor=OPERATOR,
            now=sim.now,
        )
        assert (hint in {each[2:4] for each in sim.messages}) is auto_repartition


def test_a_layout_change_is_cancelled_with_a_reason(
    sim: Simulation, node: Node, kestrel: TenantContext, operator: Client
) -> None:
    change = propose_repartition(node, sim)
    one = f"/ops/layout-changes/{change.pk}/"
    assert "Cancel change" in page(operator, one)
    assert operator.post(f"{one}cancel/", {"reason": ""}).status_code == 400
    operator.post(f"{one}cancel/", {"reason": "not this week"})
    change.refresh_from_db()
    assert (change.step, change.why) == (RepartitionStep.CANCELLED, "not this week")
    refused = operator.post(f"{one}approve/", {"reason": "after all"})
    assert refused.status_code == 409
    assert "cancelled, not planned" in refused.content.decode()


@pytest.mark.parametrize(("verb", "cut"), [("retry", "3g.40gb"), ("roll-back", "1g.10gb")])
def test_a_quarantined_layout_change_is_retried_or_rolled_back_on_its_page(
    sim: Simulation, node: Node, kestrel: TenantContext, operator: Client, verb: str, cut: str
) -> None:
    break_node(node, "fails")
    change = propose_repartition(node, sim)
    one = f"/ops/layout-changes/{change.pk}/"
    operator.post(f"{one}approve/", {"reason": "go"})
    Driver(sim, change).until(RepartitionStep.QUARANTINED)
    assert "The change failed; the node takes no leases." in page(operator, one)
    assert "Quarantined" in page(operator, f"/ops/clusters/{node.cluster_id}/layouts/")
    with staff_scope():
        (need,) = [each for each in _node_items(fleet_gpus.load_gpus()) if each.urgent]
        assert {gpu.idle_use for gpu in fleet_gpus.load_gpus()} == {UnitUse.UNHEALTHY}
    assert (need.what, need.subject) == ("mig-1 / n01 is quarantined", node.pk)
    assert page(operator, f"{one}{verb}/")
    operator.post(f"{one}{verb}/", {"reason": "a screw was loose"})
    Driver(sim, Repartition.objects.order_by("planned_at").last() or change).until(RepartitionStep.DONE)
    assert {each["profile"] for gpu in Gpu.objects.all() for each in gpu.fixed_layout} >= {cut}


def test_the_demand_for_whole_gpus_is_shown_in_words(sim: Simulation, node: Node, operator: Client) -> None:
    sim.request_lease(create_tenant("Swift"), offering("whole-gpu"), quantity=2)
    sim.run(180)
    shown = page(operator, f"/ops/clusters/{node.cluster_id}/layouts/")
    assert "demand: 2 × whole GPU" in shown
    assert "whole-gpu" not in shown


def test_a_cluster_without_fixed_layouts_shows_a_notice(sim: Simulation, node: Node, operator: Client) -> None:
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[])
    here = f"/ops/clusters/{node.cluster_id}/layouts/"
    assert "No fixed layouts" in page(operator, here)
    assert here not in page(operator, "/ops/clusters/")
    assert "start automatically" in page(operator, f"{here}plan/")


def test_unknown_layout_changes_and_clusters_return_404(operator: Client) -> None:
    for path in ("/ops/layout-changes/lch_x/", "/ops/clusters/clu_x/layouts/"):
        assert operator.get(path).status_code == 404


@pytest.mark.deep
def test_a_layout_change_shows_that_it_waits_for_the_last_lease(
    sim: Simulation, node: Node, kestrel: TenantContext, operator: Client
) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=1200)
    change = propose_repartition(node, sim)
    operator.post(f"/ops/layout-changes/{change.pk}/approve/", {"reason": "go"})
    driver = Driver(sim, change)
    driver.on()
    driver.on()
    with staff_scope():
        assert {gpu.idle_use for gpu in fleet_gpus.load_gpus()} == {UnitUse.MAINTENANCE}
    assert "Waiting for the last lease to end." in page(operator, f"/ops/layout-changes/{change.pk}/")
