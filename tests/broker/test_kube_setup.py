"""What an administrator says of how people come in is checked before anything is asked of the cluster, and kept."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from broker.management.commands.kube_setup import Command
from broker.models import Cluster
from broker.services import joining
from tests.broker.services.test_joining import KUBECONFIG

FILE = {"kubeconfig": Path("never-read.yaml")}
WAY = {"domain": "leases.example", "door": "ingress/public", "entrances": "edge"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"register": "north", "region": "eu", "entrances": "gt-x"}, "--entrances: gt-x is a project's"),
        ({"register": "north", "region": "eu", "domain": "a.b"}, "--door: A domain and what routes it"),
        (WAY, "give --register NAME"),
    ],
)
def test_a_way_in_that_leads_nowhere_is_refused_before_anything_is_done(
    options: dict[str, str], says: str, db: None
) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("kube_setup", **FILE, **options)


def test_a_cluster_joins_with_its_ways_in(db: None, settings: Any) -> None:
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    options = {"register": "north", "region": "eu", "driver": "device_plugin", "driver_options": {}}
    Command()._register(KUBECONFIG, options, joining.WayIn(**WAY))
    kept = Cluster.objects.get(name="north")
    assert (kept.domain, kept.door, kept.bastion, kept.entrances) == (
        "leases.example",
        "ingress/public",
        "",
        "edge",
    )
    with pytest.raises(CommandError, match="Choose another name"):
        Command()._register(KUBECONFIG, options, joining.WayIn())
    assert Cluster.objects.count() == 1
