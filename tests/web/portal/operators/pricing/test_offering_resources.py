"""Operators edit CPU, memory and scratch of an offering on its page."""

import pytest
from django.test import Client

from broker.domain.geometry.host_resources import UNKNOWN, HostResources
from broker.models import Node, Offering
from broker.services.volumes.volume_metering import storage_offering
from tests.simulation import NOW, REGION, Simulation, TenantContext, offering
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db
TYPED = {"cpus": "1", "memory_gib": "8.5", "scratch_gib": "20"}


def page_of(what: Offering) -> str:
    return f"/ops/offerings/{what.pk}/"


def test_the_page_shows_what_a_slice_has_and_the_most_that_it_may_have(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    text = visible_text(operator.get(page_of(offering("1g.10gb"))))
    assert "eu-north. 1.5 CPUs, 12 GiB memory, 25 GiB scratch." in text
    assert "region has 1.5 CPUs, 12 GiB memory, 25 GiB scratch for each slice." in text
    Node.objects.update(cpu_milli=0, memory_mib=0, scratch_mib=0)
    assert "No node of this model and region reports" in visible_text(operator.get(page_of(offering("1g.10gb"))))


def test_the_form_sets_the_amounts_of_a_slice(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    what = offering("1g.10gb")
    answer = operator.post(page_of(what), TYPED, follow=True)
    assert "requested from now on have 1 CPU, 8.5 GiB memory, 20 GiB scratch for each slice." in visible_text(answer)
    assert offering("1g.10gb").host_resources == HostResources(1000, 8704, 20_480)
    assert 'value="8.5"' in answer.content.decode()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"cpus": "2"}, "has 1.5 CPUs for each such slice. Enter at most 1.5 CPUs."),
        ({"memory_gib": "0.1"}, "A slice needs at least 256 MiB memory."),
        ({"scratch_gib": "much"}, "This is not a number. Enter a number such as 3.5."),
        ({"cpus": ""}, "This is not a number."),
    ],
)
def test_wrong_amounts_are_refused_beside_their_field(
    sim: Simulation, kestrel: TenantContext, operator: Client, typed: dict[str, str], words: str
) -> None:
    what = offering("1g.10gb")
    answer = operator.post(page_of(what), {**TYPED, **typed})
    assert visible_text(answer).count(words) == 1
    assert offering("1g.10gb").host_resources == what.host_resources


def test_a_form_opened_before_another_change_is_refused(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    what = offering("1g.10gb")
    operator.post(page_of(what), {**TYPED, "version": what.version})
    answer = operator.post(page_of(what), {**TYPED, "cpus": "1.2", "version": what.version})
    assert "was changed in the meantime. Check the current values" in visible_text(answer)
    assert offering("1g.10gb").cpu_milli == 1000


def test_storage_has_no_form_for_amounts(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    storage = storage_offering(REGION, now=NOW)
    assert storage.host_resources == UNKNOWN
    assert "memory_gib" not in operator.get(page_of(storage)).content.decode()


def test_the_page_of_a_node_says_which_offering_promises_too_much(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    node = Node.objects.get()
    Node.objects.filter(pk=node.pk).update(resource_shortage="Offering H100 promises 12 CPUs.")
    text = visible_text(operator.get(f"/ops/nodes/{node.pk}/"))
    assert "Nothing new is placed on this node. Offering H100 promises 12 CPUs." in text
    gpus = node.gpus.count()
    assert f"{12 * gpus} CPUs, {96 * gpus} GiB memory, {200 * gpus} GiB scratch for leases." in text
