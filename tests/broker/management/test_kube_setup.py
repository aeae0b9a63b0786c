"""The kube_setup command and its ingress settings."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from broker.management.commands.kube_setup import Command
from broker.models import Cluster
from broker.services.clusters.registration import cluster_registration
from tenants.models.audit import AuditEvent
from tenants.services.rls import staff_scope
from tests.broker.services.clusters.kubeconfigs import KUBECONFIG
from tests.simulation import NOW

FILE = {"kubeconfig": Path("never-read.yaml")}
WAY = {"domain": "leases.example", "ingress": "ingress/public", "allowed_namespaces": "edge"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"register": "north", "region": "eu", "allowed_namespaces": "gt-x"},
            "--allowed-namespaces: gt-x is a project's",
        ),
        ({"register": "north", "region": "eu", "domain": "a.b"}, "--ingress: Domain and ingress need each other"),
        (WAY, "Use --register NAME"),
        ({"update": "north"}, "No cluster named 'north' is registered"),
        ({"update": "north", "register": "north", "region": "eu"}, "Use one of them"),
    ],
)
def test_invalid_ingress_options_are_refused_before_any_change(options: dict[str, str], says: str, db: None) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("kube_setup", **FILE, **options)


def test_a_cluster_registers_with_its_ingress_settings(db: None, settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    options = {"register": "north", "region": "eu", "driver": "device_plugin", "driver_options": {}}
    Command()._register(KUBECONFIG, options, cluster_registration.IngressSettings(**WAY))
    kept = Cluster.objects.get(name="north")
    assert (kept.domain, kept.ingress, kept.bastion, kept.allowed_namespaces) == (
        "leases.example",
        "ingress/public",
        "",
        "edge",
    )
    with pytest.raises(CommandError, match="Choose another name"):
        Command()._register(KUBECONFIG, options, cluster_registration.IngressSettings())
    assert Cluster.objects.count() == 1


def test_the_driver_of_a_registered_cluster_changes_with_an_audit_record(db: None) -> None:
    Cluster.objects.create(name="north", region="eu", provisioner="kubernetes", driver="device_plugin", created_at=NOW)
    Command()._update("north", "automatic", {})
    assert Cluster.objects.get(name="north").driver == "automatic"
    with staff_scope():
        assert AuditEvent.objects.get(action="cluster.change_driver").detail == {
            "before": "device_plugin",
            "after": "automatic",
        }
