"""Leases are closed to all but where people come from, as the operator told or as the door tells."""

from dataclasses import replace

import pytest

from broker.models import Cluster
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.cluster import way_into
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.services import joining
from tests.broker.provisioners.kubernetes.conftest import serve as serve
from tests.broker.provisioners.kubernetes.test_memory import order
from tests.broker.provisioners.kubernetes.wire import Say, Serve
from tests.broker.services.test_joining import cluster as cluster
from tests.world import NOW, OPERATOR


@pytest.mark.parametrize(
    ("way", "found"),
    [
        (joining.WayIn(), ()),
        (joining.WayIn("a.b", "ingress/public"), ("ingress-nginx",)),
        (joining.WayIn("a.b", "gateway/edge/public"), ("edge",)),
        (joining.WayIn(bastion="jump"), ("gateway",)),
        (joining.WayIn("a.b", "ingress/public", "jump"), ("gateway", "ingress-nginx")),
        (joining.WayIn("a.b", "ingress/public", "jump", "ssh, edge"), ("edge", "ssh")),
    ],
)
def test_walls_open_to_where_people_come_from(
    way: joining.WayIn, found: tuple[str, ...], cluster: Cluster, serve: Serve
) -> None:
    joining.let_in(cluster, way, version=cluster.version, actor=OPERATOR, now=NOW)
    into = way_into(cluster.pk, dict)
    wire = serve(Say(body={"metadata": {"name": "x"}}))
    provisioner = KubernetesProvisioner(cluster.pk, replace(into, transport=wire.transport, memory=None))
    with pytest.raises(Unanswered):  # for it answers nonsense from then on
        provisioner.ensure(order(), now=NOW)
    (policy,) = (each.body for each in wire.asked if "/gpub-ingress?" in each.path)
    sources = [source for rule in policy["spec"]["ingress"] for source in rule["from"]]
    names = [each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for each in sources]
    assert tuple(names) == found
