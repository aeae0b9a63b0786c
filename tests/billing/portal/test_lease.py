"""One lease: its life with durations, its cost stretch by stretch, its place, and what one does to it."""

import re
from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion
from billing.services import prices, rating
from broker.domain.states import EndReason, LeaseState
from broker.models import Cluster, NodeState, Offering
from broker.services.leases import ending
from broker.services.leases.orders import access_token
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import EURO, Desk, words
from tests.broker.domain.test_workloads import KEY
from tests.world import OPERATOR, fresh, home, node_of, offering, set_node

pytestmark = pytest.mark.django_db


def test_an_active_lease_shows_its_steps_with_durations(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("3g.40gb"), name="fold", max_duration_s=8 * 3600)
    desk.life.run(3600)
    page = desk.read(f"/leases/{lease.pk}/")
    for part in ("fold Active", "Requested", "Placed + 0 s · card 0", "verified", "Now 1 h 00 min", "Stops"):
        assert part in page
    assert lease.pk in page


def test_cost_is_split_where_the_price_changed_and_free_time_is_named(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    assert lease.active_at is not None
    prices.publish(
        offering=lease.offering,
        currency="EUR",
        nano_per_hour=3 * EURO,
        since=lease.active_at + timedelta(hours=1),
        actor=OPERATOR,
        now=desk.life.now,
    )
    desk.life.clock.at = lease.active_at + timedelta(hours=3)
    page = desk.read(f"/leases/{lease.pk}/")
    assert "3,600 s €1.00" in page
    assert "7,200 s €6.00" in page
    assert "So far €7.00" in page
    assert "free" in page


def test_the_stretch_that_runs_grows_like_the_total_below_it(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), quantity=2, max_duration_s=9 * 3600)
    desk.life.run(3600)
    body = desk.get(f"/leases/{lease.pk}/").content.decode()
    runs = re.search(r"<div><dt>(?:(?!</div>).)*now <span.*?</div>", body)
    total = re.search(r'<div class="tot">.*?</div>', body)
    assert runs
    assert total
    assert 'data-tick="seconds" data-from="3600"' in runs[0]
    grows = re.compile(r'data-tick="money" data-from="\d+" data-per-second="[\d.]+"')
    assert grows.findall(runs[0]) == grows.findall(total[0]) != []


def test_a_lease_whose_price_ended_shows_what_it_came_to_and_does_not_tick(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    desk.life.run(3600)
    for version in PriceVersion.objects.all():
        PriceVersion.objects.filter(pk=version.pk).update(
            valid=DateTimeTZRange(version.valid.lower, desk.life.now)
        )
    desk.life.run(3600)
    for address in (f"/leases/{lease.pk}/", "/leases/", "/"):
        assert 'data-tick="money"' not in desk.get(address).content.decode()
    assert "So far €1.00" in desk.read(f"/leases/{lease.pk}/")


def test_the_stretches_add_up_to_what_rating_charges(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("2g.20gb"), quantity=3, max_duration_s=9 * 3600)
    desk.life.run(1234)
    desk.life.release(lease)
    desk.life.run(10)
    before = desk.read(f"/leases/{lease.pk}/")
    rating.rate(now=desk.life.now)
    assert before == desk.read(f"/leases/{lease.pk}/")
    assert "1,234 s × 3 €2.06" in before
    assert "In all €2.06" in before


def test_a_start_that_was_taken_back_soon_is_free(desk: Desk) -> None:
    spot = Offering.objects.get(profile="1g.10gb", price_class="spot", region=offering("1g.10gb").region)
    since = desk.life.now + timedelta(seconds=1)
    prices.publish(
        offering=spot, currency="EUR", nano_per_hour=EURO, since=since, actor=OPERATOR, now=desk.life.now
    )
    desk.life.run(2)
    lease = desk.life.lease(desk.owner, spot, max_duration_s=9 * 3600)
    desk.life.run(60)
    with as_tenant(desk.owner.tenant.pk):
        ending.release(fresh(lease), reason=EndReason.PREEMPTED, now=desk.life.now)
    desk.life.run(10)
    rating.rate(now=desk.life.now)
    page = desk.read(f"/leases/{lease.pk}/")
    assert "Taken back for others after 60 s free" in page
    assert "In all €0.00" in page


def test_a_card_without_neighbours_is_not_said_to_have_some(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("1g.10gb"))
    alone = desk.read(f"/leases/{lease.pk}/")
    assert "Nobody else is on the card now" in alone
    desk.life.lease(home("Stranger"), offering("1g.10gb"))
    assert "Grey slices belong to others" in desk.read(f"/leases/{lease.pk}/")


def test_neighbours_are_drawn_without_their_names(desk: Desk) -> None:
    stranger = home("Stranger")
    desk.life.lease(stranger, offering("1g.10gb"), name="strangers-work")
    lease = desk.life.lease(desk.owner, offering("1g.10gb"))
    page = desk.get(f"/leases/{lease.pk}/").content.decode()
    assert "yours" in page
    assert "1 others" in page
    assert "strangers-work" not in page


def test_a_queued_lease_says_why_and_where_in_line(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("card"), quantity=8)
    first = desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
    second = desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
    desk.life.run(1)
    assert "1 of 2 in line" in desk.read(f"/leases/{first.pk}/")
    page = desk.read(f"/leases/{second.pk}/")
    assert "2 of 2 in line" in page
    assert "Waits for one free H100 whole card" in page
    assert "No place is taken yet" in page


def test_a_lease_under_way_asks_again_by_itself_and_one_at_rest_seldom(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), LeaseState.PROVISIONING)
    assert "every 2s" in desk.get(f"/leases/{lease.pk}/").content.decode()
    assert "every 2s" in desk.get(f"/leases/{lease.pk}/row/").content.decode()
    desk.life.run(60)
    assert "every 2s" not in desk.get(f"/leases/{lease.pk}/").content.decode()
    assert "hx-get" not in desk.get(f"/leases/{lease.pk}/row/").content.decode()


def test_extending_moves_the_end_and_says_until_when(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), max_duration_s=3600)
    assert "Extend 2 h — €2.00 at most" in desk.read(f"/leases/{lease.pk}/extend/")
    answer = desk.post(f"/leases/{lease.pk}/extend/", hours="2")
    assert answer["Location"] == f"/leases/{lease.pk}/"
    assert fresh(lease).max_duration_s == 3 * 3600
    assert "is extended by 2 h. Stops at" in desk.read(f"/leases/{lease.pk}/")


@pytest.mark.parametrize("hours", ["", "x", "0", "99999", "-1", "9999"])
def test_an_extension_that_cannot_be_is_explained_and_changes_nothing(desk: Desk, hours: str) -> None:
    lease = desk.life.lease(desk.owner, offering(), max_duration_s=3600)
    answer = desk.post(f"/leases/{lease.pk}/extend/", hours=hours)
    assert answer.status_code == 409
    assert 'role="alert"' in answer.content.decode()
    assert fresh(lease).max_duration_s == 3600


def test_an_extension_beyond_the_quota_is_refused_with_its_figures(desk: Desk) -> None:
    desk.owner.quota(QuotaKind.GPU_SECONDS, 2 * 3600 * 1000)
    lease = desk.life.lease(desk.owner, offering(), max_duration_s=3600)
    answer = desk.post(f"/leases/{lease.pk}/extend/", hours="8")
    assert "The quota of this project" in words(answer)
    assert fresh(lease).max_duration_s == 3600


def test_releasing_asks_first_and_then_ends_it(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    desk.life.run(1800)
    page = desk.read(f"/leases/{lease.pk}/release/")
    assert "Charging ends the moment you press." in page
    assert "Charged so far €1.00" in page
    assert fresh(lease).state == "active"
    answer = desk.post(f"/leases/{lease.pk}/release/")
    assert answer["Location"] == f"/leases/{lease.pk}/"
    assert fresh(lease).state == "releasing"
    assert "Nothing is charged from now on." in desk.read(f"/leases/{lease.pk}/")


def test_a_lease_that_is_over_cannot_be_released_again(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), LeaseState.RELEASED)
    answer = desk.post(f"/leases/{lease.pk}/release/")
    assert answer.status_code == 409
    assert "This lease is over" in words(answer)


def test_a_member_of_another_project_does_not_find_it(desk: Desk) -> None:
    mine, yours = desk.owner.child("mine"), desk.owner.child("yours")
    lease = desk.life.lease(desk.owner, offering(), project=yours)
    stranger = desk.signed_in_as(Role.MEMBER, mine)
    for address in ("", "row/", "extend/", "release/"):
        assert stranger.get(f"/leases/{lease.pk}/{address}").status_code == 404


def test_a_condition_is_shown_beside_the_state(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), max_duration_s=9 * 3600)
    set_node(node_of(lease), NodeState.LOST, desk.life)
    desk.life.sweep()
    desk.life.go(10)
    page = desk.read(f"/leases/{lease.pk}/")
    assert "unreachable" in page


def test_the_meter_of_a_lease_that_nobody_hears_stands_still(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), max_duration_s=9 * 3600)
    desk.life.go(600)
    assert 'data-tick="money"' in desk.get(f"/leases/{lease.pk}/").content.decode()
    Cluster.objects.update(silent_since=desk.life.now)
    seen = (fresh(lease).seen_at or desk.life.now).replace(microsecond=0)
    told = f"as things stand nothing after {max(seen, desk.life.now):%H:%M:%S} is charged"
    desk.life.clock.at += timedelta(hours=1)
    for path in (f"/leases/{lease.pk}/", f"/leases/{lease.pk}/row/", "/leases/", "/"):
        assert 'data-tick="money"' not in desk.get(path).content.decode()
    page = desk.read(f"/leases/{lease.pk}/")
    assert told in page
    cost = re.search(r"So far (€[\d.]+)", page)
    assert cost
    desk.life.clock.at += timedelta(hours=1)
    assert f"So far {cost[1]}" in desk.read(f"/leases/{lease.pk}/")


def test_a_lease_that_has_just_begun_ticks_before_it_costs_anything(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering())
    desk.life.clock.at = fresh(lease).at
    assert 'data-tick="money"' in desk.get(f"/leases/{lease.pk}/").content.decode()


def test_the_drawer_has_the_call_with_this_leases_id(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering())
    page = desk.read(f"/leases/{lease.pk}/")
    assert f"/api/v1/leases/{lease.pk}'" in page
    assert f"/api/v1/leases/{lease.pk}/release" in page
    assert "<id>" not in page


def test_who_may_use_a_lease_is_told_how_and_who_may_only_look_is_not(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), workload="jupyter")
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", door="ingress/public")
    page = desk.get(f"/leases/{lease.pk}/").content.decode()
    address = f"https://{lease.pk.removeprefix('lse_')}.leases.example/"
    assert f'href="{address}"' in page
    assert access_token(lease.pk) in page
    looks = desk.signed_in_as(Role.VIEWER).get(f"/leases/{lease.pk}/").content.decode()
    assert address not in looks
    assert access_token(lease.pk) not in looks


def test_a_box_shows_its_line_for_a_shell_and_an_endpoint_the_call_that_tries_it(desk: Desk) -> None:
    box = desk.life.lease(desk.owner, offering(), workload="ssh", ssh_keys=[KEY])
    endpoint = desk.life.lease(desk.owner, offering(), workload="vllm")
    ways = {"domain": "leases.example", "door": "ingress/public", "bastion": "in.example"}
    Cluster.objects.update(provisioner="kubernetes", **ways)
    inside = f"l-{box.pk.removeprefix('lse_')}-g{fresh(box).generation}.gt-{box.project_id.removeprefix('prj_')}.svc"
    assert f"SSH ssh -J gpubroker@in.example gpubroker@{inside}" in desk.read(f"/leases/{box.pk}/")
    page = desk.read(f"/leases/{endpoint.pk}/")
    address = f"https://{endpoint.pk.removeprefix('lse_')}.leases.example/v1"
    assert f"Endpoint {address} " in page
    assert f"curl {address}/models -H 'Authorization: Bearer {access_token(endpoint.pk)}'" in page


def test_a_lease_that_nobody_can_enter_says_so(desk: Desk) -> None:
    notebook = desk.life.lease(desk.owner, offering(), workload="jupyter")
    assert "No way in from here: the cluster of north-1" in desk.read(f"/leases/{notebook.pk}/")
    assert "No way in" not in desk.signed_in_as(Role.VIEWER).read(f"/leases/{notebook.pk}/")
    batch = desk.life.lease(desk.owner, offering(), workload="batch", command="true")
    assert "No way in" not in desk.read(f"/leases/{batch.pk}/")
