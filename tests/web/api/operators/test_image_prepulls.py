"""Operators' API of images kept on GPU nodes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from broker.models import Cluster
from tenants.models import User
from tests.simulation import create_gpus
from tests.web.keyed_requests import post_keyed

pytestmark = pytest.mark.django_db
PREPULLS = "/api/v1/ops/image-prepulls"
IMAGE = "ghcr.io/acme/comfy:1"


@pytest.fixture
def operator(settings: Any) -> Iterator[Client]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def test_an_image_is_kept_and_given_up(operator: Client) -> None:
    create_gpus(1)
    cluster = Cluster.objects.get()
    body = {"cluster": cluster.pk, "image": IMAGE}
    made = post_keyed(operator, PREPULLS, body)
    assert (made.status_code, made.json()["image"], made.json()["nodes_ready"]) == (201, IMAGE, 0)
    assert post_keyed(operator, PREPULLS, body).json()["id"] == made.json()["id"]
    (shown,) = operator.get(f"{PREPULLS}?cluster={cluster.pk}").json()["items"]
    assert shown == made.json()
    address = f"{PREPULLS}/{shown['id']}"
    assert operator.delete(address).status_code == 204
    assert operator.get(address).json()["removed_at"] is not None


def test_an_unknown_cluster_or_image_is_refused(operator: Client) -> None:
    missing = post_keyed(operator, PREPULLS, {"cluster": "clu_0", "image": IMAGE})
    assert missing.status_code == 404
    create_gpus(1)
    body = {"cluster": Cluster.objects.get().pk, "image": "no image"}
    assert post_keyed(operator, PREPULLS, body).status_code == 400
