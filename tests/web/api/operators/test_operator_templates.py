"""Operators' launch templates over the API."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from broker.models import OperatorTemplate
from tenants.models import AuditEvent, User
from tenants.services import rls
from tests.web.keyed_requests import patch_json, post_keyed

pytestmark = pytest.mark.django_db
TEMPLATES = "/api/v1/ops/templates"
BODY = {"name": "ComfyUI", "image": "ghcr.io/acme/comfy:1", "ports": [{"name": "web", "port": 7860}]}


@pytest.fixture
def operator(settings: Any) -> Iterator[Client]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def test_a_template_is_created_changed_and_deleted(operator: Client) -> None:
    made = post_keyed(operator, TEMPLATES, BODY)
    assert made.status_code == 201, made.content
    row = f"{TEMPLATES}/{made.json()['id']}"
    again = patch_json(operator, row, {"icon": "rocket"})
    assert (again.json()["id"], again.json()["version"], again.json()["icon"]) == (made.json()["id"], 2, "rocket")
    assert [each["name"] for each in operator.get(TEMPLATES).json()["items"]] == ["ComfyUI"]
    assert operator.delete(row).status_code == 204
    assert not OperatorTemplate.objects.exists()
    with rls.staff_scope():
        actions = AuditEvent.objects.filter(action__startswith="operator_template.").order_by("pk")
        assert [each.action for each in actions] == [
            "operator_template.create",
            "operator_template.change",
            "operator_template.delete",
        ]


def test_an_invalid_template_is_refused(operator: Client) -> None:
    refused = post_keyed(operator, TEMPLATES, {**BODY, "image": "no image"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "image")
    assert operator.delete(f"{TEMPLATES}/tpl_0").status_code == 404
