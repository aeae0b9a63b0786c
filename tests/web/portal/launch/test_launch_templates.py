"""Saved templates on the launch page and on the page of their leases."""

import re

import pytest

from broker.models import Cluster, LaunchTemplate, Lease
from broker.services.launch_templates import template_store
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import (
    WEB,
    save_login,
    save_operator_template,
    save_template,
)
from tests.simulation import NOW, offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db


def launch(portal: PortalSession, **form: str) -> Lease:
    """Launch a lease from the page and return it."""
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "job", "lasts": "2 h", **form}
    answer = portal.post("/launch/", **sent)
    assert answer.status_code == 302, visible_text(answer)[-2000:]
    with tenant_scope(portal.owner.tenant.pk):
        return Lease.objects.get(pk=answer["Location"].split("/")[2])


def test_own_and_operators_templates_are_offered_and_launched(portal: PortalSession) -> None:
    own, shared = save_template(portal.owner), save_operator_template(name="Shared")
    text = portal.read("/launch/")
    assert "ComfyUI" in text
    assert "Shared" in text
    lease = launch(portal, runs=own.pk)
    assert (lease.launch_template["id"], lease.workload) == (own.pk, "own")
    assert launch(portal, runs=shared.pk).launch_template["id"] == shared.pk
    page = portal.read(f"/leases/{lease.pk}/")
    assert "ComfyUI" in page
    assert "version 1" in page


def test_a_template_that_needs_a_volume_says_so_and_gets_a_new_one(portal: PortalSession) -> None:
    template = save_template(portal.owner, needs_volume=True)
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "job", "lasts": "2 h"}
    answer = portal.post("/launch/", **sent, runs=template.pk)
    assert answer.status_code == 409
    assert "keeps its files on a volume; none was chosen" in visible_text(answer)
    lease = launch(portal, runs=template.pk, volume="new", gib="10")
    assert lease.volume_id
    assert "mounted at /workspace" in portal.read(f"/leases/{lease.pk}/")


def test_a_lease_is_launched_again_with_its_template_or_without_it(portal: PortalSession) -> None:
    template = save_template(portal.owner)
    lease = launch(portal, runs=template.pk)
    again = portal.get(f"/launch/?again={lease.pk}").content.decode()
    assert re.search(rf'value="{template.pk}"\s+checked', again)
    with tenant_scope(portal.owner.tenant.pk):
        template_store.delete_template(LaunchTemplate.objects.get(), actor=portal.owner.actor, now=NOW)
    again = portal.get(f"/launch/?again={lease.pk}").content.decode()
    assert re.search(r'value="own"\s+checked', again)
    assert 'value="ghcr.io/acme/comfy:1"' in again


def test_a_registry_login_is_chosen_at_launch(portal: PortalSession) -> None:
    assert "Registry login" not in portal.read("/launch/")
    login = save_login(portal.owner)
    assert "GHCR (ghcr.io)" in portal.read("/launch/")
    lease = launch(portal, runs="own", image="ghcr.io/acme/solver:1", pull_secret=login.pk)
    assert lease.pull_secret == {"secret": login.pk, "version": 1}
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "job", "lasts": "2 h"}
    answer = portal.post("/launch/", **sent, runs="own", image="quay.io/acme/x", pull_secret=login.pk)
    assert "but the login is for ghcr.io" in visible_text(answer)
    assert 'id="pull_secret-err"' in answer.content.decode()


def test_a_deleted_template_is_refused_with_the_way_out(portal: PortalSession) -> None:
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "job", "lasts": "2 h"}
    answer = portal.post("/launch/", **sent, runs="tpl_0")
    assert "The template does not exist in this project" in visible_text(answer)


def test_an_open_link_says_who_can_use_it(portal: PortalSession) -> None:
    open_one = save_template(portal.owner, name="Open", token_variable="", ports=[WEB])
    closed = save_template(portal.owner, name="Closed", ports=[WEB])
    leases = [launch(portal, runs=each.pk) for each in (open_one, closed)]
    portal.sim.run(60)
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", ingress="ingress/public")
    first, second = (portal.read(f"/leases/{lease.pk}/") for lease in leases)
    assert "Everybody who knows this address can use it" in first
    assert "Everybody who knows this address" not in second
    assert "Password or token" in second


def test_a_batch_template_is_launched_as_an_array_with_retries(portal: PortalSession) -> None:
    template = save_template(portal.owner, shape="batch", command="train", ports=[], readiness_path="")
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "sweep", "lasts": "2 h"}
    answer = portal.post("/launch/", **sent, runs=template.pk, array_size="2", retries="1")
    assert answer.status_code == 302, visible_text(answer)[-2000:]
    with tenant_scope(portal.owner.tenant.pk):
        leases = list(Lease.objects.order_by("array_index"))
    assert [(lease.command, lease.retries, lease.launch_template["id"]) for lease in leases] == [
        ("train", 1, template.pk),
        ("train", 1, template.pk),
    ]


def test_a_schedule_names_its_template_until_it_is_deleted(portal: PortalSession) -> None:
    template = save_template(portal.owner, shape="batch", command="train", ports=[], readiness_path="")
    sent = {"offering": offering("1g.10gb").pk, "class": "on_demand", "name": "nightly", "lasts": "2 h"}
    answer = portal.post("/launch/", **sent, runs=template.pk, cron="0 3 * * *")
    assert answer.status_code == 302, visible_text(answer)[-2000:]
    assert "ComfyUI" in portal.read(answer["Location"])
    with tenant_scope(portal.owner.tenant.pk):
        template_store.delete_template(LaunchTemplate.objects.get(), actor=portal.owner.actor, now=NOW)
    assert "Deleted template" in portal.read(answer["Location"])
