"""The lease page: timeline, costs, placement and actions."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion
from billing.services.catalogue import price_list
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Cluster, NodeState, Offering
from broker.services.leases.lifecycle import termination
from broker.services.leases.provision_specs import access_token
from config.env import EnvironmentSettings
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.billing.quotes.test_quote_redemption import active_since, make_quote, request_quoted_lease
from tests.broker.domain.workloads.test_workloads import KEY
from tests.simulation import OPERATOR, create_tenant, node_of, offering, reload_lease, set_node_state
from tests.web.portal.signed_in_user import EURO, PortalSession, visible_text

pytestmark = pytest.mark.django_db


def test_an_active_lease_shows_its_steps_with_durations(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("3g.40gb"), name="fold", max_duration_s=8 * 3600)
    portal.sim.run(3600)
    page = portal.read(f"/leases/{lease.pk}/")
    for part in ("fold Active", "Requested", "Placed + 0 s · GPU 0", "verified", "Now 1 h 00 min", "Stops"):
        assert part in page
    assert lease.pk in page


def test_cost_is_split_where_the_price_changed_and_free_time_is_named(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    assert lease.active_at is not None
    price_list.publish_price(
        offering=lease.offering,
        currency="EUR",
        nano_per_hour=3 * EURO,
        since=lease.active_at + timedelta(hours=1),
        actor=OPERATOR,
        now=portal.sim.now,
    )
    portal.sim.clock.at = lease.active_at + timedelta(hours=3)
    page = portal.read(f"/leases/{lease.pk}/")
    assert "3,600 s €1.00" in page
    assert "7,200 s €6.00" in page
    assert "So far €7.00" in page
    assert "free" in page


def test_a_quoted_lease_shows_a_lower_price_and_keeps_its_maximum(portal: PortalSession, settings: Any) -> None:
    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    what = offering("1g.10gb")
    lease = request_quoted_lease(portal.sim, portal.owner, make_quote(portal.owner, portal.sim))
    portal.sim.run(60)
    began = active_since(lease)
    for hours, nano in ((1, EURO // 2), (2, 5 * EURO)):
        price_list.publish_price(
            offering=what,
            currency="EUR",
            nano_per_hour=nano,
            since=began + timedelta(hours=hours),
            actor=OPERATOR,
            now=portal.sim.now,
        )
    portal.sim.clock.at = began + timedelta(minutes=90)
    page = portal.read(f"/leases/{lease.pk}/")
    for part in ("3,600 s €1.00", "1,800 s €0.25", "So far €1.25"):
        assert part in page
    assert "€0.50/h" in page
    assert f"max €2.00 · Price capped by quote {reload_lease(lease).quote_id}" in page


def test_the_cost_bar_is_labelled_with_amounts(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=2 * 3600)
    portal.sim.clock.at = lease.active_at + timedelta(hours=1)
    assert 'aria-label="€1.00 of at most €2.00"' in portal.get(f"/leases/{lease.pk}/").content.decode()


def test_the_current_usage_period_updates_live_like_the_total(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), quantity=2, max_duration_s=9 * 3600)
    portal.sim.run(3600)
    body = portal.get(f"/leases/{lease.pk}/").content.decode()
    runs = re.search(r"<div>\s*<dt>(?:(?!</div>).)*now\s+<span.*?</div>", body)
    total = re.search(r'<div class="total">.*?</div>', body)
    assert runs
    assert total
    assert 'data-tick="seconds" data-from="3600"' in runs[0]
    grows = re.compile(r'data-tick="money" data-from="\d+" data-per-second="[\d.]+"')
    assert grows.findall(runs[0]) == grows.findall(total[0]) != []


def test_the_cost_of_a_lease_whose_price_ended_stays_constant(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    portal.sim.run(3600)
    for version in PriceVersion.objects.all():
        PriceVersion.objects.filter(pk=version.pk).update(valid=DateTimeTZRange(version.valid.lower, portal.sim.now))
    portal.sim.run(3600)
    for address in (f"/leases/{lease.pk}/", "/leases/", "/"):
        assert 'data-tick="money"' not in portal.get(address).content.decode()
    assert "So far €1.00" in portal.read(f"/leases/{lease.pk}/")


def test_the_usage_periods_add_up_to_the_rated_charge(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("2g.20gb"), quantity=3, max_duration_s=9 * 3600)
    portal.sim.run(1234)
    portal.sim.release_lease(lease)
    portal.sim.run(10)
    before = portal.read(f"/leases/{lease.pk}/")
    lease_rating.rate_all_leases(now=portal.sim.now)
    assert before == portal.read(f"/leases/{lease.pk}/")
    assert "1,234 s × 3 €2.06" in before
    assert "Total €2.06" in before


def test_the_cost_of_a_charged_lease_links_to_its_invoice_line(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("2g.20gb"), name="other", max_duration_s=600)
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), name="fold", max_duration_s=9 * 3600)
    address = f"/leases/{lease.pk}/"
    portal.sim.run(1200)
    portal.sim.release_lease(lease)
    portal.sim.run(10)
    assert explain_links(portal, address) == []
    lease_rating.rate_all_leases(now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
    [link] = explain_links(portal, address)
    assert "fold 1,200 s" in portal.read(link)
    assert "other" not in portal.read(link)
    assert explain_links(portal.sign_in_as(Role.VIEWER), address) == []


def explain_links(portal: PortalSession, address: str) -> list[str]:
    """Return the addresses behind "Explain" on a page."""
    return re.findall(r'<a [^>]*href="([^"]*)"[^>]*>\s*Explain\s*</a>', portal.get(address).content.decode())


def test_a_spot_lease_reclaimed_within_the_free_start_is_free(portal: PortalSession) -> None:
    spot = Offering.objects.get(profile="1g.10gb", price_class="spot", region=offering("1g.10gb").region)
    since = portal.sim.now + timedelta(seconds=1)
    price_list.publish_price(
        offering=spot, currency="EUR", nano_per_hour=EURO, since=since, actor=OPERATOR, now=portal.sim.now
    )
    portal.sim.run(2)
    lease = portal.sim.create_lease(portal.owner, spot, max_duration_s=9 * 3600)
    portal.sim.run(60)
    with tenant_scope(portal.owner.tenant.pk):
        termination.release_lease(reload_lease(lease), reason=EndReason.PREEMPTED, now=portal.sim.now)
    portal.sim.run(10)
    lease_rating.rate_all_leases(now=portal.sim.now)
    page = portal.read(f"/leases/{lease.pk}/")
    assert "Preempted after 60 s free" in page
    assert "Total €0.00" in page


def test_the_page_states_whether_other_tenants_use_the_gpu(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    alone = portal.read(f"/leases/{lease.pk}/")
    assert "No other tenant uses this GPU" in alone
    portal.sim.create_lease(create_tenant("Stranger"), offering("1g.10gb"))
    assert "Grey slices are used by others" in portal.read(f"/leases/{lease.pk}/")


def test_slices_of_other_tenants_are_drawn_without_names(portal: PortalSession) -> None:
    outsider = create_tenant("Stranger")
    portal.sim.create_lease(outsider, offering("1g.10gb"), name="strangers-work")
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    page = portal.get(f"/leases/{lease.pk}/").content.decode()
    assert "yours" in page
    assert "1 others" in page
    assert "strangers-work" not in page


def test_a_queued_lease_shows_its_reason_and_position(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    first = portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
    second = portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
    portal.sim.run(1)
    assert "1 of 2 in line" in portal.read(f"/leases/{first.pk}/")
    page = portal.read(f"/leases/{second.pk}/")
    assert "2 of 2 in line" in page
    assert "Waits for one free H100 SXM 80GB whole GPU" in page
    assert "Not placed yet" in page


def test_a_changing_lease_page_polls_often_and_a_stable_one_seldom(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), LeaseState.PROVISIONING)
    assert "every 2s" in portal.get(f"/leases/{lease.pk}/").content.decode()
    row = portal.get(f"/leases/{lease.pk}/row/").content.decode()
    # The list around a row selects its own id; a row that inherited that would be replaced by nothing.
    assert all(word in row for word in ("every 2s", 'hx-select="unset"', 'hx-select-oob="unset"'))
    portal.sim.run(60)
    assert "every 2s" not in portal.get(f"/leases/{lease.pk}/").content.decode()
    assert "hx-get" not in portal.get(f"/leases/{lease.pk}/row/").content.decode()


def test_extending_moves_the_end_and_shows_the_new_end(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=3600)
    assert "Extend 2 h — €2.00 at most" in portal.read(f"/leases/{lease.pk}/extend/")
    answer = portal.post(f"/leases/{lease.pk}/extend/", hours="2")
    assert answer["Location"] == f"/leases/{lease.pk}/"
    assert reload_lease(lease).max_duration_s == 3 * 3600
    assert "is extended by 2 h. Stops at" in portal.read(f"/leases/{lease.pk}/")


@pytest.mark.parametrize("hours", ["", "x", "0", "99999", "-1", "9999"])
def test_an_invalid_extension_shows_an_error_and_changes_nothing(portal: PortalSession, hours: str) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=3600)
    answer = portal.post(f"/leases/{lease.pk}/extend/", hours=hours)
    assert answer.status_code == 409
    assert 'role="alert"' in answer.content.decode()
    assert reload_lease(lease).max_duration_s == 3600


def test_an_extension_beyond_the_quota_is_refused_with_its_figures(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.GPU_SECONDS, 2 * 3600 * 1000)
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=3600)
    answer = portal.post(f"/leases/{lease.pk}/extend/", hours="8")
    assert "The quota of this project" in visible_text(answer)
    assert reload_lease(lease).max_duration_s == 3600


def test_a_lease_is_released_after_a_confirmation(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    portal.sim.run(1800)
    page = portal.read(f"/leases/{lease.pk}/release/")
    assert "Billing stops immediately." in page
    assert "Charged so far €1.00" in page
    assert reload_lease(lease).state == "active"
    answer = portal.post(f"/leases/{lease.pk}/release/")
    assert answer["Location"] == f"/leases/{lease.pk}/"
    assert reload_lease(lease).state == "releasing"
    assert "Charging has stopped." in portal.read(f"/leases/{lease.pk}/")


def test_a_lease_that_is_over_cannot_be_released_again(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), LeaseState.RELEASED)
    answer = portal.post(f"/leases/{lease.pk}/release/")
    assert answer.status_code == 409
    assert "This lease has ended" in visible_text(answer)


def test_a_lease_of_another_project_returns_404(portal: PortalSession) -> None:
    mine, yours = portal.owner.create_project("mine"), portal.owner.create_project("yours")
    lease = portal.sim.create_lease(portal.owner, offering(), project=yours)
    outsider = portal.sign_in_as(Role.MEMBER, mine)
    for address in ("", "row/", "extend/", "release/"):
        assert outsider.get(f"/leases/{lease.pk}/{address}").status_code == 404


def test_a_condition_is_shown_beside_the_state(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=9 * 3600)
    set_node_state(node_of(lease), NodeState.LOST, portal.sim)
    portal.sim.sweep()
    portal.sim.run_with_sweeps(10)
    page = portal.read(f"/leases/{lease.pk}/")
    assert "unreachable" in page


@pytest.mark.deep
def test_the_cost_of_a_lease_on_an_unreachable_cluster_stays_constant(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=9 * 3600)
    portal.sim.run_with_sweeps(600)
    assert 'data-tick="money"' in portal.get(f"/leases/{lease.pk}/").content.decode()
    Cluster.objects.update(unreachable_since=portal.sim.now)
    seen = (reload_lease(lease).seen_at or portal.sim.now).replace(microsecond=0)
    text = f"currently nothing after {max(seen, portal.sim.now):%H:%M:%S} is charged"
    portal.sim.clock.at += timedelta(hours=1)
    for path in (f"/leases/{lease.pk}/", f"/leases/{lease.pk}/row/", "/leases/", "/"):
        assert 'data-tick="money"' not in portal.get(path).content.decode()
    page = portal.read(f"/leases/{lease.pk}/")
    assert text in page
    cost = re.search(r"So far (€[\d.]+)", page)
    assert cost
    portal.sim.clock.at += timedelta(hours=1)
    assert f"So far {cost[1]}" in portal.read(f"/leases/{lease.pk}/")


def test_the_cost_of_a_lease_that_just_started_is_live(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    portal.sim.clock.at = reload_lease(lease).state_since
    assert 'data-tick="money"' in portal.get(f"/leases/{lease.pk}/").content.decode()


def test_the_api_drawer_shows_calls_with_the_id_of_the_lease(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    page = portal.read(f"/leases/{lease.pk}/")
    assert f"/api/v1/leases/{lease.pk}'" in page
    assert f"/api/v1/leases/{lease.pk}/release" in page
    assert "<id>" not in page


def test_only_members_who_may_use_a_lease_see_its_address_and_token(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), workload="jupyter")
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", ingress="ingress/public")
    page = portal.get(f"/leases/{lease.pk}/").content.decode()
    address = f"https://{lease.pk.removeprefix('lse_')}.leases.example/"
    assert f'href="{address}lab?token={access_token(lease.pk)}"' in page
    assert access_token(lease.pk) in page
    looks = portal.sign_in_as(Role.VIEWER).get(f"/leases/{lease.pk}/").content.decode()
    assert address not in looks
    assert access_token(lease.pk) not in looks


def test_an_ssh_lease_shows_its_ssh_command_and_an_endpoint_its_curl_command(portal: PortalSession) -> None:
    box = portal.sim.create_lease(portal.owner, offering(), workload="ssh", ssh_keys=[KEY])
    endpoint = portal.sim.create_lease(portal.owner, offering(), workload="vllm")
    ways = {"domain": "leases.example", "ingress": "ingress/public", "bastion": "in.example"}
    Cluster.objects.update(provisioner="kubernetes", **ways)
    inside = (
        f"l-{box.pk.removeprefix('lse_')}-g{reload_lease(box).generation}.gt-{box.project_id.removeprefix('prj_')}.svc"
    )
    assert f"SSH ssh -J gpubroker@in.example gpubroker@{inside}" in portal.read(f"/leases/{box.pk}/")
    html = portal.get(f"/leases/{box.pk}/").content.decode()
    assert f"Host lease-{box.pk.removeprefix('lse_')}\n  HostName {inside}\n  User gpubroker" in html
    assert f'href="vscode://vscode-remote/ssh-remote+lease-{box.pk.removeprefix("lse_")}/home/gpubroker"' in html
    page = portal.read(f"/leases/{endpoint.pk}/")
    address = f"https://{endpoint.pk.removeprefix('lse_')}.leases.example/v1"
    assert f"Endpoint {address} " in page
    assert f"curl {address}/models -H 'Authorization: Bearer {access_token(endpoint.pk)}'" in page


def test_a_lease_without_ingress_shows_that_its_ports_are_not_reachable(portal: PortalSession) -> None:
    notebook = portal.sim.create_lease(portal.owner, offering(), workload="jupyter")
    batch = portal.sim.create_lease(portal.owner, offering(), workload="batch", command="python train.py")
    Cluster.objects.update(provisioner="kubernetes")
    missing = "Other connections are not available: the operator of north-1"
    assert missing in portal.read(f"/leases/{notebook.pk}/")
    assert missing not in portal.sign_in_as(Role.VIEWER).read(f"/leases/{notebook.pk}/")
    assert missing not in portal.read(f"/leases/{batch.pk}/")


def test_a_notebook_opens_signed_in_with_one_click(portal: PortalSession) -> None:
    notebook = portal.sim.create_lease(portal.owner, offering(), workload="jupyter")
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", ingress="ingress/public")
    html = portal.get(f"/leases/{notebook.pk}/").content.decode()
    address = f"https://{notebook.pk.removeprefix('lse_')}.leases.example"
    assert f'href="{address}/lab?token={access_token(notebook.pk)}"' in html


def test_code_server_opens_signed_in_with_one_click(portal: PortalSession) -> None:
    editor = portal.sim.create_lease(portal.owner, offering(), workload="vscode")
    other = portal.sim.create_lease(portal.owner, offering(), workload="ssh", ssh_keys=[KEY])
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", ingress="ingress/public")
    shown = portal.get(f"/leases/{editor.pk}/")
    html = shown.content.decode()
    address = f"https://{editor.pk.removeprefix('lse_')}.leases.example"
    assert f'<form method="post" action="{address}/login">' in html
    assert f'<input type="hidden" name="password" value="{access_token(editor.pk)}">' in html
    assert "https://*.leases.example" in shown.headers["Content-Security-Policy"]
    assert "leases.example" not in portal.get(f"/leases/{other.pk}/").headers["Content-Security-Policy"]
    assert access_token(editor.pk) not in portal.sign_in_as(Role.VIEWER).get(f"/leases/{editor.pk}/").content.decode()
