"""Namespaces from which leases accept traffic."""

from dataclasses import replace

import pytest

from broker.models import Cluster
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.cluster_connection import connect_to_cluster
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.services.clusters.registration import cluster_registration
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer
from tests.broker.provisioners.kubernetes.test_observation_cache import provision_spec
from tests.simulation import NOW, OPERATOR


@pytest.mark.parametrize(
    ("way", "found"),
    [
        (cluster_registration.IngressSettings(), ()),
        (cluster_registration.IngressSettings("a.b", "ingress/public"), ("ingress-nginx",)),
        (cluster_registration.IngressSettings("a.b", "gateway/edge/public"), ("edge",)),
        (cluster_registration.IngressSettings(bastion="jump"), ("gateway",)),
        (cluster_registration.IngressSettings("a.b", "ingress/public", "jump"), ("gateway", "ingress-nginx")),
        (cluster_registration.IngressSettings("a.b", "ingress/public", "jump", "ssh, edge"), ("edge", "ssh")),
    ],
)
def test_network_policies_allow_the_namespaces_of_the_ingress(
    way: cluster_registration.IngressSettings, found: tuple[str, ...], cluster: Cluster, serve: StartServer
) -> None:
    cluster_registration.set_ingress(cluster, way, version=cluster.version, actor=OPERATOR, now=NOW)
    into = connect_to_cluster(cluster.pk, dict)
    wire = serve(ScriptedAnswer(body={"metadata": {"name": "x"}}))
    provisioner = KubernetesProvisioner(cluster.pk, replace(into, transport=wire.transport, memory=None))
    with pytest.raises(ClusterUnreachable):  # the scripted server answers invalid objects from here on
        provisioner.ensure(provision_spec(), now=NOW)
    (policy,) = (each.body for each in wire.requests if "/gpub-ingress?" in each.path)
    sources = [source for rule in policy["spec"]["ingress"] for source in rule["from"]]
    names = [each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for each in sources]
    assert tuple(names) == found
