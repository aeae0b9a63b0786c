"""Operators' API of images kept on GPU nodes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from broker.models import Cluster
from tenants.models import User
from tests.simulation import create_gpus

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
    made = operator.put(PREPULLS, body, content_type="application/json")
    assert (made.status_code, made.json()["image"], made.json()["nodes_ready"]) == (200, IMAGE, 0)
    assert operator.put(PREPULLS, body, content_type="application/json").json()["id"] == made.json()["id"]
    (shown,) = operator.get(f"{PREPULLS}?cluster={cluster.pk}").json()["items"]
    assert shown == made.json()
    removal = f"{PREPULLS}/{shown['id']}/removal"
    assert operator.put(removal, {"image": "other"}, content_type="application/json").status_code == 400
    removed = operator.put(removal, {"image": IMAGE}, content_type="application/json")
    assert (removed.status_code, removed.json()["removed_at"] is not None) == (200, True)


def test_an_unknown_cluster_or_image_is_refused(operator: Client) -> None:
    missing = operator.put(PREPULLS, {"cluster": "clu_0", "image": IMAGE}, content_type="application/json")
    assert missing.status_code == 404
    create_gpus(1)
    body = {"cluster": Cluster.objects.get().pk, "image": "no image"}
    assert operator.put(PREPULLS, body, content_type="application/json").status_code == 400
