"""Launch: live quotes, field errors, and one lease per form."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.models import Cluster, Lease, Offering, Volume
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.secrets.variable_encryption import decrypt_variables
from config.env import EnvironmentSettings
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.histories import set_price
from tests.simulation import MODEL, ONE_NODE, REGION, create_fleet, offering
from tests.web.portal.signed_in_user import EURO, PortalSession, visible_text
from web.portal.durations import parse_duration

pytestmark = pytest.mark.django_db


def form(what: Offering, **more: object) -> dict[str, object]:
    return {"offering": what.pk, "class": what.price_class, "name": "new", "count": "1", "lasts": "8 h",
            "runs": "own", "image": "python:3", "key": "k1", **more}  # fmt: skip


def leases_of(portal: PortalSession) -> list[Lease]:
    with tenant_scope(portal.owner.tenant.pk):
        return list(Lease.objects.order_by("pk"))


def test_the_quote_shows_price_maximum_remaining_quota_and_placement(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.UNITS, 28_000)
    page = portal.read(f"/launch/?offering={offering('3g.40gb').pk}&lasts=8+h")
    assert "€3.00/h" in page
    assert "Maximum, 8 h €24.00" in page
    assert "Launch — max €24.00" in page
    assert "Quota remaining 25 of 28 units" in page
    assert "north-1 / n01 / GPU 0" in page


def test_the_requested_slice_is_labelled_as_far_as_its_tile_has_room(portal: PortalSession) -> None:
    assert "yours · 3g" in portal.read(f"/launch/?offering={offering('3g.40gb').pk}")
    page = portal.read(f"/launch/?offering={offering('1g.10gb').pk}")
    assert "yours" in page
    assert "yours ·" not in page


def test_a_template_without_an_image_has_no_empty_title(portal: PortalSession) -> None:
    markup = portal.get("/launch/").content.decode()
    assert "named below" in markup
    assert 'title=""' not in markup


def test_a_quote_writes_nothing(portal: PortalSession) -> None:
    with CaptureQueriesContext(connection) as spoken:
        portal.read(f"/launch/?offering={offering().pk}&count=3&lasts=2+d")
    written = [q["sql"] for q in spoken if re.match(r"\s*(INSERT|UPDATE|DELETE)", q["sql"] or "")]
    assert [sql for sql in written if "session" not in sql] == []
    assert leases_of(portal) == []


def test_a_launch_redirects_to_the_lease_with_its_settings(portal: PortalSession) -> None:
    answer = portal.post("/launch/", **form(offering(), count="2", lasts="90 min", command="python x.py"))
    [lease] = leases_of(portal)
    assert answer.status_code == 302
    assert answer["Location"] == f"/leases/{lease.pk}/"
    assert (lease.quantity, lease.max_duration_s, lease.image, lease.command) == (
        2,
        5400,
        "python:3",
        "python x.py",
    )
    assert lease.requested_by == portal.user.pk


def test_submitting_twice_starts_one_lease_and_redirects_to_it_both_times(portal: PortalSession) -> None:
    first, second = (portal.post("/launch/", **form(offering())) for _ in range(2))
    assert len(leases_of(portal)) == 1
    assert first["Location"] == second["Location"]


def test_a_new_form_starts_a_second_lease(portal: PortalSession) -> None:
    for key in ("k1", "k2"):
        portal.post("/launch/", **form(offering(), key=key))
    assert len(leases_of(portal)) == 2


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "x" * 1000, "A name must have 1 to 120 characters"),
        ("name", "a\x07b", "without control or invisible characters"),
        ("name", "a\u202eb", "without control or invisible characters"),
        ("count", "many", "This is not a whole number."),
        ("count", "0", "The quantity must be from 1 to 512."),
        ("count", "9" * 6, "The quantity must be from 1 to 512."),
        ("lasts", "soon", "This is not a valid duration."),
        ("lasts", "1 s", "The duration must be 60 s"),
        ("lasts", "9999999 d", "The duration must be 60 s"),
        ("until", "yesterday", "This is not a valid date and time."),
        ("until", "2020-01-01T00:00", "The end date is too early for the lease to start."),
        ("until", "2039-01-01T00:00", "The end date must be within five years."),
        ("until", "9999-12-31T23:59", "This is not a valid date and time."),
        ("until", "0001-01-01T00:00", "This is not a valid date and time."),
        ("lasts", "9999999 d " * 200, "The duration must be 60 s"),
        ("offering", "off_none", "No offering was selected."),
    ],
)
def test_an_invalid_launch_form_shows_its_error_and_starts_nothing(
    portal: PortalSession, field: str, value: str, said: str
) -> None:
    answer = portal.post("/launch/", **form(offering(), **{field: value}))
    assert answer.status_code == 409
    assert said in visible_text(answer)
    assert leases_of(portal) == []


@pytest.mark.parametrize(
    ("until", "meant"),
    [
        ("2026-11-22T12:00", datetime(2026, 11, 22, 17, 0, tzinfo=UTC)),
        ("2026-11-22T12:00+05:30", datetime(2026, 11, 22, 6, 30, tzinfo=UTC)),
    ],
)
def test_an_end_date_without_an_offset_is_in_the_tenants_time_zone(
    portal: PortalSession, until: str, meant: datetime
) -> None:
    portal.change_time_zone("America/New_York")
    portal.post("/launch/", **form(offering(), until=until))
    assert [lease.end_date for lease in leases_of(portal)] == [meant]


def test_an_error_is_shown_at_its_field_and_the_input_is_kept(portal: PortalSession) -> None:
    answer = portal.post("/launch/", **form(offering(), lasts="soon", name="kept-as-typed"))
    body = answer.content.decode()
    assert 'id="lasts-err"' in body
    assert 'aria-invalid="true"' in body
    assert 'value="kept-as-typed"' in body


def test_an_exceeded_quota_is_shown_with_its_figures_and_disables_the_launch_button(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.UNITS, 3_000)
    page = portal.get(f"/launch/?offering={offering('whole-gpu').pk}")
    assert "The quota is 3 units; 0 are used, 3 are free, and this needs 7." in visible_text(page)
    assert re.search(r"<button[^>]*form=\"launch\"[^>]*disabled", page.content.decode())
    answer = portal.post("/launch/", **form(offering("whole-gpu")))
    assert answer.status_code == 409
    assert leases_of(portal) == []


def test_a_quantity_larger_than_the_fleet_is_refused(portal: PortalSession) -> None:
    answer = portal.post("/launch/", **form(offering("whole-gpu"), count="9"))
    assert "holds at most 8" in visible_text(answer)


def test_a_lease_without_capacity_is_queued_and_the_page_states_it(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    page = portal.read(f"/launch/?offering={offering('whole-gpu').pk}")
    assert "Waits for capacity" in page
    assert "queueing is free" in page
    portal.post("/launch/", **form(offering("whole-gpu")))
    assert leases_of(portal)[-1].state == "queued"


def test_with_a_volume_the_placement_is_on_its_cluster(portal: PortalSession) -> None:
    hardware.add_simulated_racks([SimulatedRack("north-9", REGION, MODEL, nodes=1)], now=portal.sim.now)
    volume = portal.sim.create_volume(portal.owner)
    with tenant_scope(portal.owner.tenant.pk):
        Volume.objects.filter(pk=volume.pk).update(cluster=Cluster.objects.get(name="north-9"), used_at=portal.sim.now)
    text = f"/launch/?offering={offering('whole-gpu').pk}&volume="
    assert "north-9 / n01" in portal.read(text + volume.pk)
    assert "north-1 / n01" in portal.read(text)
    assert "north-1 / n01" in portal.read(text + "vol_of_nobody")


def test_alternatives_show_their_price_difference(portal: PortalSession) -> None:
    page = portal.read(f"/launch/?offering={offering('3g.40gb').pk}&lasts=10+h")
    assert "Same GPU, spot price" in page
    assert "−€15.00" in page
    assert "+ €10.00" in page, "the 4g slice costs a euro an hour more"


def test_choosing_an_alternative_keeps_the_form_input_out_of_urls(portal: PortalSession) -> None:
    typed = form(offering("3g.40gb"), image="own/image:7", command="train --key hush", env="TOKEN=hush", count="2")
    page = portal.post("/launch/quote/", **typed, model="H100-80GB").content.decode()
    assert [address for address in re.findall(r'href="([^"]*)"', page) if "hush" in address] == []
    spot, *_ = re.findall(r'<button[^>]* name="instead" value="([^"]+)"[^>]* formaction="/launch/quote/"', page)
    answer = portal.post("/launch/quote/", **typed, model="H100-80GB", instead=spot)
    assert answer.context["page"].chosen.offering.pk == offering("3g.40gb", price_class="spot").pk
    assert answer.context["page"].form.count == "2"
    for kept in ('value="own/image:7"', 'value="train --key hush"', "TOKEN=hush</textarea>"):
        assert kept in answer.content.decode()
    assert leases_of(portal) == []


def test_choosing_an_alternative_of_another_model_selects_that_model(portal: PortalSession) -> None:
    other = second_model(portal)
    what = Offering.objects.filter(gpu_model=other).earliest("pk")
    typed = form(offering("3g.40gb"), model=offering("3g.40gb").gpu_model_id)
    answer = portal.post("/launch/quote/", **typed, instead=f"{what.pk} {what.price_class}")
    assert answer.context["page"].chosen.offering == what
    assert answer.context["page"].model == other


def test_a_viewer_can_open_the_page_but_not_launch(portal: PortalSession) -> None:
    viewer = portal.sign_in_as(Role.VIEWER)
    assert "Your role is read-only." in viewer.read("/launch/")
    assert viewer.post("/launch/", **form(offering())).status_code == 403


def test_the_terms_of_an_earlier_lease_are_proposed_again(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(
        portal.owner, offering("2g.20gb"), quantity=3, max_duration_s=5400, image="own/thing", command="run me"
    )
    body = portal.get(f"/launch/?again={lease.pk}").content.decode()
    for value in ("own/thing", "run me", "1 h 30 min"):
        assert f'value="{value}"' in body
    assert "€6.00" in body


def test_same_node_and_relocation_options_of_an_earlier_lease_are_proposed_again(portal: PortalSession) -> None:
    requested = portal.sim.request_lease(portal.owner, offering(), quantity=2, same_node=True)
    allowed = portal.sim.request_lease(portal.owner, offering(), relocatable=True)
    for lease, ticked in ((requested, ["same_node"]), (allowed, ["relocatable"])):
        page = portal.get(f"/launch/?again={lease.pk}").content.decode()
        assert re.findall(r'name="(same_node|relocatable)" checked', page) == ticked


def second_model(portal: PortalSession) -> str:
    """Publish offerings of a second GPU model without prices."""
    create_fleet(ONE_NODE, SimulatedRack("west-1", REGION, "A100-80GB", nodes=1), now=portal.sim.now)
    return "A100-80GB"


def test_choosing_another_model_selects_one_of_its_slices(portal: PortalSession) -> None:
    other = second_model(portal)
    page = portal.get(f"/launch/?offering={offering('3g.40gb').pk}&model={other}").content.decode()
    (chosen,) = re.findall(r'name="offering" value="(off_\w+)"[^>]* checked', page)
    assert Offering.objects.get(pk=chosen).gpu_model_id == other
    assert offering("3g.40gb").pk not in page


def test_an_unknown_gpu_model_in_the_url_is_ignored(portal: PortalSession) -> None:
    page = portal.get("/launch/?model=nonsense").content.decode()
    assert len(re.findall(r'name="offering" value="off_\w+"[^>]* checked', page)) == 1
    assert 'name="model" value="nonsense"' not in page


def test_a_price_class_that_is_chosen_is_quoted(portal: PortalSession) -> None:
    page = portal.read(f"/launch/?offering={offering('whole-gpu').pk}&class=spot&lasts=1+h")
    assert "€3.50/h" in page
    assert "H100 SXM 80GB whole GPU · spot" in page


def test_without_published_offerings_the_page_states_it(portal: PortalSession) -> None:
    Offering.objects.update(state="retired")
    assert "No offerings published" in portal.read("/launch/")


@pytest.mark.deep
def test_the_start_estimate_uses_past_start_times(portal: PortalSession) -> None:
    for _ in range(6):
        portal.sim.release_lease(portal.sim.create_lease(portal.owner, offering()))
        portal.sim.run(10)
    address = f"/launch/?offering={offering().pk}"
    page, markup = portal.read(address), portal.get(address).content.decode()
    assert re.search(r"Starts in \d+ s median of your last 6 starts; 90 % within \d+ s", page)
    assert re.search(r"90&nbsp;% within \d+&nbsp;s\b", markup), "no number is separated from its unit"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("8 h", 28_800),
        ("8", 28_800),
        ("90 min", 5400),
        ("1 d 12 h", 129_600),
        ("2h30m", 9000),
        ("45s", 45),
        ("", None),
        ("x", None),
        ("1.5 h", None),
        ("0,5 h", None),
        ("2,5", None),
        ("1,000 h", None),
        ("1 , 5 h", None),
        (",5 h", None),
        ("1 000 h", None),
        ("8 h 30", None),
        ("1 d, 12 h", 129_600),
        ("2h ,30m", 9000),
        ("-3 h", None),
        ("٣ h", None),
    ],
)
def test_a_duration_is_parsed_in_common_notations(text: str, length: int | None) -> None:
    assert parse_duration(text) == length


def test_a_changed_form_under_a_used_key_is_shown_again_with_a_new_key(portal: PortalSession) -> None:
    first = portal.post("/launch/", **form(offering(), name="first", key="k1"))
    assert first.status_code == 302
    back = portal.post("/launch/", **form(offering(), name="second", command="python x.py", key="k1"))
    assert back.status_code == 409
    body = back.content.decode()
    assert 'value="second"' in body
    assert "python x.py" in body
    assert "was already launched from this form" in visible_text(back)
    [key] = re.findall(r'name="key" value="([^"]+)"', body)
    assert key != "k1"
    again = portal.post("/launch/", **form(offering(), name="second", command="python x.py", key=key))
    assert again.status_code == 302
    assert [lease.name for lease in leases_of(portal)] == ["first", "second"]


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtMiVqXvOjvXcR8wHYL4fWGfIuB9pYvQKYsEY6nFTZ9 ada@example"


def test_every_workload_can_be_launched_with_default_settings(portal: PortalSession) -> None:
    page = portal.read("/launch/")
    for runs in ("jupyter", "vscode", "vllm", "batch"):
        assert portal.post("/launch/", **form(offering(), runs=runs, image="", key=runs)).status_code == 302
    assert [lease.workload for lease in leases_of(portal)] == ["jupyter", "vscode", "vllm", "batch"]
    assert "SSH box" in page


def test_quoting_a_long_command_starts_no_lease(portal: PortalSession) -> None:
    long = f"python train.py {'--flag ' * 250}".strip()
    answer = portal.post("/launch/quote/", **form(offering(), runs="batch", command=long, count="2"))
    assert answer.status_code == 200
    assert long in answer.content.decode()
    assert "2 × " in visible_text(answer)
    assert list(leases_of(portal)) == []
    assert portal.get("/launch/quote/").headers["Location"] == "/launch/"


def test_a_suspended_tenant_gets_a_quote_and_the_reason_why_it_cannot_launch(portal: PortalSession) -> None:
    with tenant_scope(portal.owner.tenant.pk):
        tenants.suspend(portal.owner.tenant, actor=SYSTEM, now=portal.sim.now, why="the owner left")
    answer = portal.post("/launch/quote/", **form(offering("3g.40gb"), lasts="8 h"))
    assert answer.status_code == 200
    assert "Maximum, 8 h €24.00" in visible_text(answer)
    for page in (answer, portal.get("/launch/")):
        assert "Kestrel was suspended on" in visible_text(page)
        assert len(re.findall(r'<button[^>]*form="launch" disabled>\s*<span>\s*Launch', page.content.decode())) == 2
    assert portal.post("/launch/", **form(offering())).status_code == 403
    assert leases_of(portal) == []


def test_ssh_keys_and_variables_are_passed_to_the_lease(portal: PortalSession) -> None:
    portal.post(
        "/launch/",
        **form(offering(), runs="ssh", image="", ssh_keys=f"{KEY}\r\n\r\n", env="A=1\r\nB==x \r\n"),
    )
    [lease] = leases_of(portal)
    assert (lease.ssh_keys, decrypt_variables(lease.env, owner_id=lease.pk)) == ([KEY], {"A": "1", "B": "=x "})
    page = portal.read(f"/leases/{lease.pk}/")
    assert "Software SSH box" in page
    assert "Variables A, B" in page


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"runs": "ssh"}, "ssh_keys", "at least one public SSH key"),
        ({"runs": "ssh", "ssh_keys": "-----BEGIN PRIVATE KEY-----"}, "ssh_keys", "private key"),
        ({"env": "LD_PRELOAD=/x.so"}, "env", "LD_PRELOAD cannot be set"),
        ({"env": "just words"}, "env", "Enter NAME=value"),
        ({"env": "A=1\nA=2"}, "env", "each name once"),
        ({"image": ""}, "image", "Enter an image."),
        ({"image": "http://a/b"}, "image", "no scheme"),
        ({"command": "'open"}, "command", "is not closed"),
        ({"command": f"echo {'x' * 1996}"}, "command", "the maximum is 2,000"),
        ({"image": "a" * 301}, "image", "the maximum is 300"),
    ],
)
def test_an_invalid_workload_shows_an_error_at_its_field(
    portal: PortalSession, more: dict[str, str], field: str, said: str
) -> None:
    answer = portal.post("/launch/", **form(offering(), **more))
    assert answer.status_code == 409
    assert f'id="{field}-err"' in answer.content.decode()
    assert said in visible_text(answer)
    assert leases_of(portal) == []


def test_an_unknown_workload_is_refused(portal: PortalSession) -> None:
    answer = portal.post("/launch/", **form(offering(), runs="root"))
    assert answer.status_code == 409
    assert "Workload " in visible_text(answer)


def test_settings_of_a_lease_in_a_hidden_project_are_not_proposed(portal: PortalSession) -> None:
    design = portal.owner.create_project("design")
    hidden = portal.sim.create_lease(
        portal.owner, offering("2g.20gb"), image="registry.example/covert:1", command="covert", ssh_keys=[KEY]
    )
    shown = portal.sim.create_lease(portal.owner, offering("2g.20gb"), image="registry.example/own:1", project=design)
    one = portal.sign_in_as(Role.OWNER, design)
    page = one.get(f"/launch/?again={hidden.pk}")
    assert "covert" not in page.content.decode()
    assert KEY not in page.content.decode()
    assert visible_text(page) == visible_text(one.get("/launch/?again=lse_0"))
    assert "registry.example/own:1" in one.get(f"/launch/?again={shown.pk}").content.decode()


def test_launching_again_proposes_the_same_without_the_variables(portal: PortalSession) -> None:
    portal.post("/launch/", **form(offering(), runs="ssh", image="", ssh_keys=KEY, env="TOKEN=hush"))
    [lease] = leases_of(portal)
    page = portal.get(f"/launch/?again={lease.pk}").content.decode()
    assert KEY in page
    assert "hush" not in page
    assert re.search(r'value="ssh" checked', page)


def test_live_quote_requests_contain_no_ssh_keys_or_variables(portal: PortalSession) -> None:
    page = portal.get("/launch/").content.decode()
    assert 'hx-params="not env,ssh_keys"' in page
    answer = portal.post("/launch/", **form(offering(), count="9" * 6, env="TOKEN=hush", ssh_keys=KEY))
    links = re.findall(r'href="([^"]*)"', answer.content.decode())
    assert [link for link in links if "hush" in link or "ssh-ed25519" in link] == []


@pytest.fixture
def quote_gate(settings: Any) -> None:
    """Enable the quote gate, as by default."""
    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default


def quote_of(page: object) -> str:
    """Return the quote of a launch page."""
    [found] = re.findall(r'name="quote" form="launch" value="([^"]+)"', page.content.decode())  # type: ignore[attr-defined]
    return str(found)


def test_b40_a_lease_gets_the_quoted_price_although_the_price_changed(portal: PortalSession, quote_gate: None) -> None:
    what = offering("3g.40gb")
    shown = portal.get(f"/launch/?offering={what.pk}&lasts=8+h")
    assert "at this price if you launch by" in visible_text(shown)
    set_price(what, 9 * EURO, since=portal.sim.now + timedelta(seconds=1))
    portal.sim.run(2)
    portal.post("/launch/", **form(what, quote=quote_of(shown)))
    [lease] = leases_of(portal)
    portal.sim.run(60)
    page = portal.read(f"/leases/{lease.pk}/")
    assert "€3.00/h" in page
    assert f"Price capped by quote {lease.quote_id}" in page


def test_an_expired_quote_is_replaced_and_nothing_is_launched(portal: PortalSession, quote_gate: None) -> None:
    what = offering("3g.40gb")
    shown = portal.get(f"/launch/?offering={what.pk}&lasts=8+h")
    set_price(what, 9 * EURO, since=portal.sim.now + timedelta(seconds=1))
    portal.sim.run(640)
    late = portal.post("/launch/", **form(what, quote=quote_of(shown)))
    assert (late.status_code, leases_of(portal)) == (409, [])
    assert (
        "The quote expired 40 s ago. Nothing was launched. Review the new quote and press Launch again."
        in visible_text(late)
    )
    assert "Launch — max €72.00" in visible_text(late)
    assert not re.search(r"<button[^>]*form=\"launch\"[^>]*disabled", late.content.decode())
    assert portal.post("/launch/", **form(what, quote=quote_of(late))).status_code == 302


def test_a_form_that_exceeds_its_quote_is_not_launched(portal: PortalSession, quote_gate: None) -> None:
    what = offering("3g.40gb")
    shown = portal.get(f"/launch/?offering={what.pk}&lasts=8+h")
    more = portal.post("/launch/", **form(what, lasts="9 h", quote=quote_of(shown)))
    assert "The quote is for at most 28800 s, not 32400 s." in visible_text(more)
    assert leases_of(portal) == []


def test_without_the_quote_gate_no_price_is_locked(portal: PortalSession) -> None:
    page = portal.get(f"/launch/?offering={offering('3g.40gb').pk}")
    assert 'name="quote"' not in page.content.decode()
    assert "at this price if you launch" not in visible_text(page)


def test_an_offering_without_a_price_gets_no_quote(portal: PortalSession, quote_gate: None) -> None:
    what = offering("3g.40gb")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE billing_priceversion SET valid = tstzrange(lower(valid), %s)", [portal.sim.now])
    assert 'name="quote"' not in portal.get(f"/launch/?offering={what.pk}").content.decode()
