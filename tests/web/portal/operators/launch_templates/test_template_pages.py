"""Operators' templates and kept images in the portal."""

from typing import Any

import pytest
from django.test import Client

from broker.models import Cluster, ImagePrepull, OperatorTemplate
from tenants.models import User
from tests.broker.services.launch_templates.saved_templates import save_operator_template
from tests.simulation import create_gpus
from tests.web.portal.launch_templates.test_template_pages import FIELDS
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db
IMAGE = "ghcr.io/acme/comfy:1"


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def read(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content[:300]
    return visible_text(answer)


def test_a_template_is_created_changed_and_deleted(operator: Client) -> None:
    assert "No templates yet" in read(operator, "/ops/templates/")
    assert operator.post("/ops/templates/new/", FIELDS)["Location"] == "/ops/templates/"
    template = OperatorTemplate.objects.get()
    assert "ComfyUI" in read(operator, "/ops/templates/")
    assert "Registry login" not in read(operator, f"/ops/templates/{template.pk}/")
    changed = operator.post(f"/ops/templates/{template.pk}/", {**FIELDS, "name": "Comfy"})
    assert changed["Location"] == "/ops/templates/"
    assert OperatorTemplate.objects.get().name == "Comfy"
    assert "keep what it said" in read(operator, f"/ops/templates/{template.pk}/delete/")
    operator.post(f"/ops/templates/{template.pk}/delete/")
    assert not OperatorTemplate.objects.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": "web"}, "Enter a name and a number per line"),
        ({"image": "no image"}, "cannot contain spaces"),
        ({"name": "Taken"}, "There is a template Taken already"),
    ],
)
def test_an_invalid_template_is_refused_beside_its_field(change: dict[str, str], words: str, operator: Client) -> None:
    save_operator_template(name="Taken")
    answer = operator.post("/ops/templates/new/", {**FIELDS, **change})
    assert answer.status_code in (400, 409)
    assert words in visible_text(answer)
    assert 'value="main.py --listen"' in answer.content.decode()


def test_an_image_is_kept_on_nodes_and_given_up(operator: Client) -> None:
    create_gpus(1)
    address = f"/ops/clusters/{Cluster.objects.get().pk}/images/"
    assert address in operator.get("/ops/clusters/").content.decode()
    assert "No images yet" in read(operator, address)
    assert "cannot contain spaces" in visible_text(operator.post(address, {"image": "no image"}))
    assert operator.post(address, {"image": IMAGE})["Location"] == address
    assert "requested" in read(operator, address)
    ImagePrepull.objects.update(nodes_total=4, nodes_ready=3, checked_at=ImagePrepull.objects.get().created_at)
    assert "3 of 4 have it" in read(operator, address)
    removal = f"/ops/image-prepulls/{ImagePrepull.objects.get().pk}/remove/"
    assert f"Stop keeping {IMAGE}?" in read(operator, removal)
    assert operator.post(removal)["Location"] == address
    assert "being removed" in read(operator, address)
