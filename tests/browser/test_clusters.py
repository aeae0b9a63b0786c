"""Cluster pages in a browser: accessible, without horizontal scrolling, usable without scripts."""

import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, Route, expect

from broker.models import Cluster, ClusterExamination, Gpu, LayoutPolicy, Node, Orphan
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.services.clusters.registration import cluster_registration
from ports import clock
from tenants.models import User
from tests.broker.services.clusters.kubeconfigs import KUBECONFIG
from tests.browser.portal import Portal
from tests.browser.test_operations import opened
from tests.browser.test_pages import AXE, RULES, WIDTHS, WIDTHS_AND_THEMES
from tests.simulation import MODEL, OPERATOR, REGION, run_task
from tests.web.portal.operators.fleet.test_cluster_pages import kubeconfig

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("SCREENSHOTS", "")  # a folder; each page is then kept as it looked
FINDINGS = [
    ClusterFinding("Version", CheckOutcome.OK, "v1.36.3", "Older ones lack what we use.", ""),
    ClusterFinding(
        "MIG strategy",
        CheckOutcome.BAD,
        "single on 3 of 8 nodes",
        "A slice cannot be told from a GPU there.",
        "Set mig.strategy to mixed in the ClusterPolicy.",
    ),
    ClusterFinding(
        "Clock",
        CheckOutcome.WARN,
        "4 s behind ours",
        "Spans are taken from its clock.",
        "Let its nodes follow a time server.",
    ),
    ClusterFinding(
        "Egress of pods",
        CheckOutcome.UNKNOWN,
        "no probe ran",
        "Tenants could reach each other.",
        "Run it again.",
    ),
]


@pytest.fixture(scope="module")
def operator_portal(portal: Portal) -> Iterator[Portal]:
    """The portal for an operator, with a cluster and all its troubles."""
    client, now = Client(), clock.now()
    operator = User.objects.create_user("clusters@example.org", is_staff=True)
    with (
        pytest.MonkeyPatch.context() as patch,
        override_settings(OPERATORS_REQUIRE_MFA=False, CREDENTIAL_ENCRYPTION_KEYS=Fernet.generate_key().decode()),
    ):
        client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")  # stored with that key
        patch.setattr("tests.browser.portal.run_task", _simulate_examination)
        cluster = cluster_registration.register_cluster(
            name="east-1",
            region=REGION,
            kubeconfig=KUBECONFIG,
            driver="device_plugin",
            actor=OPERATOR,
            now=now,
        )
        Cluster.objects.filter(pk=cluster.pk).update(
            unreachable_since=now - timedelta(minutes=7),
            unreachable_reason="connection refused",
            inventory_paused_reason="It reports only 3 of 16 GPUs. Check whether this is correct.",
            frozen="its versions are older than what was seen: was it restored from a backup?",
        )
        _create_node_with_gpus(cluster)
        findings = [{**asdict(each), "outcome": str(each.outcome)} for each in FINDINGS]
        ClusterExamination.objects.create(
            cluster=cluster,
            asked_at=now,
            asked_by="ops",
            done_at=now - timedelta(minutes=3),
            findings=findings,
        )
        Orphan.objects.bulk_create(
            [Orphan(cluster=cluster, name=f"l-{number:026d}-g2", found_at=now, held_at=now) for number in range(15)]
        )
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


def _simulate_examination(task: str, subject: str, tenant_id: str, *, now: datetime) -> None:
    """Run a task, but simulate the examination of an absent cluster.

    The sweep that unfreezing enqueues does nothing: nobody could say what runs in such a cluster.
    """
    if task == "broker.examine_cluster":
        found = [{**asdict(each), "outcome": str(each.outcome)} for each in FINDINGS[1:2]]
        ClusterExamination.objects.filter(cluster=subject).update(done_at=now, findings=found)
    elif task != "broker.sweep_all":
        run_task(task, subject, tenant_id, now=now)


def _create_node_with_gpus(cluster: Cluster) -> None:
    node = Node.objects.create(cluster=cluster, name="gpu-1.east", state_since=clock.now())
    cut = [{"profile": "1g.10gb", "start": n, "size": 1, "isolation": "hardware"} for n in range(7)]
    for index in range(4):
        Gpu.objects.create(
            node=node,
            index=index,
            gpu_model_id=MODEL,
            uuid=f"{node.pk}/{index}",
            layout_policy=LayoutPolicy.FIXED,
            fixed_layout=cut,
            health_since=clock.now(),
        )


def page_paths() -> dict[str, str]:
    cluster, simulated = Cluster.objects.get(name="east-1"), Cluster.objects.exclude(name="east-1")[0]
    here = f"/ops/clusters/{cluster.pk}"
    return {
        "clusters": "/ops/clusters/",
        "add": "/ops/clusters/add/",
        "doctor": f"{here}/checks/",
        "doctor of a simulated one": f"/ops/clusters/{simulated.pk}/checks/",
        "examine": f"{here}/checks/rerun/",
        "credentials": f"{here}/credentials/",
        "access": f"{here}/access/",
        "accept-inventory": f"{here}/accept-inventory/",
        "layouts": f"{here}/layouts/",
        "plan": f"{here}/layouts/plan/",
        "begin": f"{here}/layouts/enable-automatic/",
        "orphans": f"{here}/orphans/delete/",
        "unfreeze": f"{here}/unfreeze/",
    }


@pytest.mark.parametrize(("width", "theme"), WIDTHS_AND_THEMES)
def test_no_rule_of_accessibility_is_broken(operator_portal: Portal, chromium: Browser, width: int, theme: str) -> None:
    found = []
    viewport = {"width": width, "height": 900}
    with opened(operator_portal, chromium, viewport=viewport, color_scheme=theme, bypass_csp=True) as page:
        for name, address in page_paths().items():
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200, name
            if SHOTS:
                page.screenshot(path=Path(SHOTS, f"{name}-{width}-{theme}.png"), full_page=True)
            page.evaluate(AXE)
            broken = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
            found += [(name, rule["id"], rule["nodes"][0]["html"][:300]) for rule in broken]
    assert found == []


def test_no_width_scrolls_sideways_and_no_csp_violation_occurs(operator_portal: Portal, chromium: Browser) -> None:
    wide = []
    with opened(operator_portal, chromium) as page:
        for name, address in page_paths().items():
            page.goto(address)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    wide.append((name, width))
    assert (wide, operator_portal.complaints) == ([], [])


@pytest.mark.parametrize("scripts", [True, False])
def test_a_cluster_is_added_checked_and_given_access(operator_portal: Portal, chromium: Browser, scripts: bool) -> None:
    name = f"west-{scripts}".lower()
    with opened(operator_portal, chromium, java_script_enabled=scripts) as page:
        page.goto("/ops/clusters/add/")
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Region").fill("eu-west")
        page.get_by_label("Kubeconfig").fill("not a kubeconfig")
        page.get_by_role("button", name="Add and check").click()
        expect(page.locator("input[name=name]")).to_have_value(name)  # what was right is kept
        page.get_by_label("Kubeconfig").fill(kubeconfig())
        page.get_by_role("button", name="Add and check").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"Health check of {name}")
        _fill_access_form(page)
    kept = Cluster.objects.get(name=name)
    assert (kept.domain, kept.allowed_namespaces) == ("leases.example.org", "edge ssh")


def _fill_access_form(page: Page) -> None:
    page.get_by_role("link", name="Access").click()
    page.get_by_label("Domain").fill("leases.example.org")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("need each other")).to_be_visible()
    page.get_by_label("Ingress").fill("ingress/public")
    page.get_by_label("Allowed namespaces").fill("gt-somebodys")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("could reach all leases")).to_be_visible()
    page.get_by_label("Allowed namespaces").fill("edge, ssh")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Health check of")


def test_what_is_typed_before_the_script_of_forms_runs_stays(operator_portal: Portal, chromium: Browser) -> None:
    cluster = Cluster.objects.get(name="east-1")
    with opened(operator_portal, chromium) as page:
        page.goto(f"/ops/clusters/{cluster.pk}/access/")
        page.get_by_label("Domain").fill("leases.example.org")
        waiting: list[Route] = []
        page.route("**/forms.js", lambda route: waiting.append(route))
        page.get_by_role("button", name="Save").click(no_wait_after=True)
        expect(page.get_by_text("need each other")).to_be_visible()
        page.get_by_label("Ingress").fill("ingress/public")
        waiting[0].continue_()
        page.wait_for_load_state("load")
        expect(page.get_by_label("Ingress")).to_have_value("ingress/public")
        expect(page.get_by_label("Ingress")).to_be_focused()


def test_a_frozen_cluster_is_accepted_in_its_current_state_with_a_reason(
    operator_portal: Portal, chromium: Browser
) -> None:
    cluster = Cluster.objects.get(name="east-1")
    with opened(operator_portal, chromium) as page:
        page.goto(f"/ops/clusters/{cluster.pk}/unfreeze/")
        page.get_by_label("reason").or_(page.locator("[name=reason]")).first.fill("restored on purpose")
        page.get_by_role("button", name="Accept current state").click()
        expect(page).to_have_url(f"{operator_portal.url}/ops/clusters/")
    assert Cluster.objects.get(pk=cluster.pk).frozen == ""
