"""The control room: figures, GPU map and attention items."""

import re
from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.models import PriceVersion
from billing.services.ledger import invariant_checks
from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Gpu, GpuHealth, Node, NodeState, Offering
from broker.services.inventory import hardware
from tenants.models import AuditEvent, User
from tenants.services.rls import staff_scope, tenant_scope
from tests import simulation
from tests.simulation import OPERATOR, Simulation, TenantContext

ALL = len(invariant_checks.ALL_INVARIANTS)
pytestmark = pytest.mark.django_db


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def kinds(html: str) -> list[str]:
    """Return the kinds of slices on the map, in order."""
    drawing = html[html.index('class="fleet fleet-map"') :]
    drawing = drawing[: drawing.index("</svg>")]
    return [a or b for a, b in re.findall(r'<rect (?:class="([\w-]+)"|fill="url\(#pattern-(\w+)\)")', drawing)]


def figure(html: str, label: str) -> str:
    found = re.search(rf"<dt>{label}</dt><dd[^>]*>(.*?)</dd>", html)
    assert found, label
    return " ".join(re.sub(r"<[^>]+>", " ", found.group(1)).split())


def test_the_page_shows_sold_share_revenue_and_queue_age(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.create_lease(kestrel, simulation.offering("3g.40gb", price_class="spot"))
    sim.run(600)
    html = page(operator, "/ops/")
    assert figure(html, "Sold now") == "37.5 %"  # 12 of 32 units
    assert figure(html, "Revenue now") == "€4.00 /h"  # 2.80 + 1.20
    assert figure(html, "Queue age p95") == "no queue"
    assert figure(html, "Revenue today").startswith("€0.6")
    assert "4 GPUs in 1 cluster; 1 tenant runs 2 leases" in html


def test_every_gpu_hour_of_the_day_is_explained(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(3600)
    found = re.search(r"([\d.,]+) of ([\d.,]+) accounted for", page(operator, "/ops/"))
    assert found
    assert found.group(1) == found.group(2) == "4.0"


def test_the_map_colours_each_gpu_by_its_use(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.create_lease(kestrel, simulation.offering("whole-gpu", price_class="spot"))
    sim.create_lease(kestrel, simulation.offering("whole-gpu"), LeaseState.PROVISIONING)
    taken = {hold["gpu_id"] for hold in occupied()}
    gpu = Gpu.objects.exclude(pk__in=taken).get()
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    painted = [kind for kind in kinds(page(operator, "/ops/fleet-map/")) if kind != "gpu-outline"]
    assert sorted(painted) == ["reserved", "sold", "spot", "unhealthy"]


def occupied() -> list[dict[str, str]]:
    with staff_scope():
        return list(Allocation.objects.filter(released_at=None).values("gpu_id"))


@pytest.mark.parametrize(("by", "painted"), [("tenant", {"series-1", "series-2"}), ("class", {"series-1", "series-5"})])
def test_the_map_can_be_coloured_by_tenant_and_by_price_class(
    sim: Simulation, kestrel: TenantContext, operator: Client, by: str, painted: set[str]
) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.create_lease(simulation.create_tenant("Tern"), simulation.offering("3g.40gb", price_class="spot"))
    html = page(operator, f"/ops/fleet-map/?by={by}")
    assert painted == {kind for kind in kinds(html) if kind.startswith("series-")}
    assert (">Tern" in html or "Tern <b>" in html) == (by == "tenant")


def test_the_map_gives_at_most_six_tenant_colours_and_groups_the_others(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    for number in range(7):
        sim.create_lease(simulation.create_tenant(f"Tenant {number}"), simulation.offering("1g.10gb"))
    html = page(operator, "/ops/fleet-map/?by=tenant")
    assert "other tenants <b>0.3" in html
    assert {kind for kind in kinds(html) if re.fullmatch(r"series-\d", kind)} == {f"series-{n}" for n in range(1, 7)}


def test_an_unknown_map_colouring_falls_back_to_the_default(kestrel: TenantContext, operator: Client) -> None:
    assert "free" in kinds(page(operator, "/ops/fleet-map/?by=%00"))


def test_the_map_is_sent_again_only_when_it_changed(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    first = operator.get("/ops/fleet-map/")
    tag = {"If-None-Match": first["ETag"]}
    again = operator.get("/ops/fleet-map/", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    changed = operator.get("/ops/fleet-map/", headers=tag)
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_the_page_carries_the_tag_of_the_map_it_shows(kestrel: TenantContext, operator: Client) -> None:
    html = page(operator, "/ops/")
    address = re.search(r'hx-get="(/ops/fleet-map/[^"]+)"', html).group(1).replace("&amp;", "&")  # type: ignore[union-attr]
    tag = re.search(r"If-None-Match[^0-9a-f]+([0-9a-f]{20})", html).group(1)  # type: ignore[union-attr]
    assert operator.get(address, headers={"If-None-Match": f'"{tag}"'}).status_code == 304


def test_viewing_the_map_is_audited_once_a_minute(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    def noted() -> int:
        with staff_scope():
            return AuditEvent.objects.filter(action="ops.fleet_map").count()

    for _ in range(3):
        operator.get("/ops/fleet-map/")
    assert noted() == 1
    sim.clock.at += timedelta(seconds=61)
    operator.get("/ops/fleet-map/")
    assert noted() == 2


def test_attention_items_link_to_the_page_that_helps(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    node, gpu = Node.objects.get(), Gpu.objects.get(pk=simulation.held_allocations(lease)[0].gpu_id)
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    simulation.set_node_state(node, NodeState.LOST, sim)
    extra = Offering.objects.get(pk=lease.offering_id)
    Offering.objects.create(
        gpu_model_id=extra.gpu_model_id,
        profile=extra.profile,
        isolation=extra.isolation,
        price_class="reserved",
        region=extra.region,
        label="H100 unpriced",
        milli_units=1,
        memory_gb=1,
        state="published",
        created_at=sim.now,
    )
    html = page(operator, "/ops/")
    for words in ("is lost", "is unhealthy", "XID 79", "1 published without a price", "H100 unpriced"):
        assert words in html
    for address in (f"/ops/nodes/{node.pk}/", f"/ops/gpus/{gpu.pk}/", "/ops/offerings/"):
        assert f'href="{address}"' in html
    assert "3 items need attention" in html


def test_the_side_panel_describes_a_gpu_with_its_price(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    html = page(operator, f"/ops/gpus/{simulation.held_allocations(lease)[0].gpu_id}/panel/")
    since = f'<time datetime="{lease.active_at:%Y-%m-%dT%H:%M:%S}'
    for words in ("Kestrel", "3g.40gb @", "1.20", f"/ops/leases/{lease.pk}/", since):
        assert words in html


def test_the_tooltip_of_a_gpu_shows_its_tenant_and_start(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    assert lease.active_at
    found = re.findall(r"<title>([^<]*)</title>", page(operator, "/ops/fleet-map/"))
    assert any(f"3g.40gb Kestrel, since {lease.active_at:%d %b %H:%M} UTC" in each for each in found), found
    assert any("; whole GPU Kestrel, since " in each for each in found), found


def test_the_summary_shows_every_integrity_check(kestrel: TenantContext, operator: Client) -> None:
    html = page(operator, "/ops/integrity-checks/")
    assert html.count("<use") == ALL
    assert "no oversell" in html


def meter(html: str) -> str:
    """Return the integrity check meter of the top bar or of a response."""
    found = re.search(r'<span class="meter-value (\w*)" id="integrity-count"[^>]*>([^<]*)</span>', html)
    assert found
    return f"{found.group(2).strip()} {found.group(1)}".strip()


def test_the_top_bar_shows_how_many_integrity_checks_pass(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    queue = page(operator, "/ops/queue/")
    assert meter(queue) == "check", "without a script it leads to the checks"
    assert 'hx-get="/ops/integrity-checks/"' in queue
    assert meter(page(operator, "/ops/system/")) == f"{ALL} of {ALL} success"
    assert meter(page(operator, "/ops/integrity-checks/")) == f"{ALL} of {ALL} success"
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    for row in PriceVersion.objects.all():
        PriceVersion.objects.filter(pk=row.pk).update(valid=DateTimeTZRange(row.valid.lower, sim.now))
    answer = operator.get("/ops/integrity-checks/", headers={"HX-Request": "true", "HX-Target": "integrity-count"})
    assert meter(answer.content.decode()) == f"{ALL - 1} of {ALL} danger"
    assert b"hx-swap-oob" not in answer.content, "what asks for itself is put in its own place"
    assert b'hx-swap-oob="true"' in operator.get("/ops/integrity-checks/", headers={"HX-Target": "proofs"}).content


def test_the_control_room_requests_its_integrity_checks_once(kestrel: TenantContext, operator: Client) -> None:
    assert page(operator, "/ops/").count('hx-get="/ops/integrity-checks/"') == 1


@pytest.mark.deep
def test_the_page_of_a_thousand_partitioned_gpus_stays_below_100_kb(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    simulation.create_fleet(
        *(simulation.SimulatedRack(f"hall-{n}", "eu-north", "H100-80GB", nodes=42) for n in range(3)), now=sim.now
    )
    crowd([kestrel, simulation.create_tenant("Tern"), simulation.create_tenant("Fjord")], sim)
    for by in ("state", "tenant", "class"):
        plain = operator.get(f"/ops/?by={by}").content
        assert b"1,012 GPUs" in plain
        assert len(re.findall(rb"\d:\d/8", plain)) == 1012
        assert len(plain) < 100_000
    packed = operator.get("/ops/", headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert len(packed.content) < 25_000


SHAPES = {"1g.10gb": (1, range(7)), "2g.20gb": (2, (0, 2, 4)), "3g.40gb": (4, (0, 4)), "7g.80gb": (8, (0,))}


def crowd(homes: list[TenantContext], sim: Simulation) -> None:
    """Place random slices; some GPUs and nodes are out of service."""
    dice = Random(7)
    leases = [
        sim.create_lease(each, simulation.offering(price_class=price_class))
        for each in homes
        for price_class in ("on_demand", "spot")
    ]
    leases.append(sim.request_lease(homes[0], simulation.offering()))
    taken: list[Allocation] = []
    with staff_scope():
        held = {row.gpu_id for lease in leases for row in Allocation.objects.filter(lease=lease)}
    for gpu in Gpu.objects.exclude(pk__in=held):
        free, tries = set(range(8)), dice.choice((0, 1, 2, 4, 8))
        for _ in range(tries):
            profile = dice.choice(list(SHAPES))
            size, starts = SHAPES[profile]
            start, lease = dice.choice(list(starts)), dice.choice(leases)
            if free >= set(range(start, start + size)):
                free -= set(range(start, start + size))
                taken.append(
                    Allocation(
                        tenant_id=lease.tenant_id,
                        lease=lease,
                        generation=1,
                        gpu=gpu,
                        placement=NumericRange(start, start + size),
                        profile=profile,
                        isolation="hardware",
                        held_at=sim.now,
                    )
                )
    for each in homes:
        with tenant_scope(each.tenant.pk):
            Allocation.objects.bulk_create(row for row in taken if row.tenant_id == each.tenant.pk)
    Gpu.objects.filter(pk__in=[gpu.pk for gpu in Gpu.objects.all()[::40]]).update(health=GpuHealth.UNHEALTHY)
    Node.objects.filter(name="n05").update(state=NodeState.DRAINING)


def test_a_gpu_is_also_found_by_its_node_and_number(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    gpu = Gpu.objects.get(index=3)
    html = page(operator, f"/ops/gpus/{gpu.node_id}.3/")
    assert f"/ops/gpus/{gpu.pk}/quarantine/" in html
    assert "GPU 3" in page(operator, f"/ops/gpus/{gpu.node_id}.3/panel/")
    assert operator.get(f"/ops/gpus/{gpu.node_id}.9/").status_code == 404


def test_only_operators_can_open_the_control_room(kestrel: TenantContext, db: None) -> None:
    client = Client()
    assert client.get("/ops/")["Location"].startswith("/sign-in/")
    client.force_login(User.objects.create_user("mira@example.org"))
    assert client.get("/ops/").status_code == 404


PAGES = (
    *("", "fleet-map/", "integrity-checks/", "gpus/", "clusters/", "queue/", "offerings/", "system/", "leases/"),
    *("tenants/", "leases/?state=all&tenant=Tenant&since=2026-01-01&q=e", "leases/?state=all&format=csv"),
    *("tenants/?format=csv", "queue/?format=csv", "gpus/?format=csv"),
)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.deep
def test_the_number_of_queries_does_not_grow_with_the_rows(
    sim: Simulation, kestrel: TenantContext, operator: Client, path: str
) -> None:
    sim.create_lease(simulation.create_tenant("Tenant of few"), simulation.offering("1g.10gb"))
    sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    operator.get(f"/ops/{path}")
    few = queries_of(operator, f"/ops/{path}")
    for number in range(3):
        other = simulation.create_tenant(f"Tenant {number}")
        sim.create_lease(other, simulation.offering("1g.10gb"))
        sim.create_lease(other, simulation.offering("1g.10gb"), LeaseState.RELEASED)
    for _ in range(4):
        sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    many = queries_of(operator, f"/ops/{path}")
    assert len(many) == len(few), "\n".join(many)
    assert len([sql for sql in many if not AROUND.match(sql)]) <= MOST, "\n".join(many)


# What every request does whatever its page: session, person, second factor, audit, role, transaction.
AROUND = re.compile(
    r"(?:\s|--[^\n]*\n)*((RELEASE )?SAVEPOINT|SELECT current_setting|SELECT set_config|INSERT INTO tenants_auditevent"
    r'|SELECT .*FROM "(django_session|tenants_user)")'
)
MOST = 16  # four of them ask how clusters stand, what in them is of no lease, what plans wait, and what tenants do


def queries_of(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in seen.captured_queries]


def test_revenue_many_times_that_of_last_week_is_shown_as_a_multiple(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    sim.run(3600)
    sim.clock.at += timedelta(days=7) - timedelta(hours=1)
    sim.create_lease(kestrel, simulation.offering("whole-gpu"), quantity=4)
    sim.run(3600)
    assert re.search(r"\d+ × last Saturday, same hours", page(operator, "/ops/"))


def test_a_node_belongs_to_the_clusters_in_the_navigation(kestrel: TenantContext, operator: Client) -> None:
    html = page(operator, f"/ops/nodes/{Node.objects.get().pk}/")
    assert re.search(r'href="/ops/clusters/"[^>]*aria-current="page"', html)
    assert not re.search(r'href="/ops/"[^>]*aria-current', html)


def test_the_audit_log_formats_price_changes_as_amounts_per_hour(kestrel: TenantContext, operator: Client) -> None:
    offering = simulation.offering("whole-gpu")
    operator.post(f"/ops/offerings/{offering.pk}/", {"price": "3.10", "from": "2026-12-01T00:00"})
    html = page(operator, "/ops/system/")
    text = " ".join(re.sub(r"<[^>]+>", "", html).split())
    assert "€2.80/h → €3.10/h · since 1 Dec 00:00" in text


@pytest.mark.parametrize("profile", ["3g.40gb", "9g.90gb"], ids=["no such place", "no such profile"])
def test_a_gpu_with_inconsistent_allocations_is_reported_and_breaks_no_page(
    sim: Simulation, kestrel: TenantContext, operator: Client, profile: str
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    with tenant_scope(kestrel.tenant.pk):
        lease.allocations.update(profile=profile, placement=NumericRange(1, 5))
    cut = Gpu.objects.exclude(pk=simulation.held_allocations(lease)[0].gpu_id).order_by("pk")[0]
    Gpu.objects.filter(pk=cut.pk).update(
        layout_policy="fixed", fixed_layout=[{"profile": "3g.40gb", "start": 1, "size": 4}]
    )
    sim.run(600)
    room = page(operator, "/ops/")
    assert len(set(re.findall(r"Allocations of (.*?) are inconsistent", room))) == 2
    assert figure(room, "Sold now") == "12.5 %"  # 4 of 32 units, as they are written
    assert "accounted for" in room
    for gpu in (simulation.held_allocations(lease)[0].gpu, cut):
        assert "Inventory conflict" in page(operator, f"/ops/gpus/{gpu.pk}/")
        assert "Inventory conflict" in page(operator, f"/ops/?gpu={gpu.pk}")
    assert "cannot start at unit 1" in page(operator, "/ops/gpus/")
