"""Saved templates on a real control plane: ports, routes, and the login that pulls the image."""

import json
from base64 import b64decode

from broker.models import Cluster
from broker.services.leases.lease_connections import lease_connections_of
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import DATABASE, PASSWORD, WEB, save_login, save_template
from tests.cluster.installation import Installation, offering

ACTS = "registry.example/acts"
INGRESSES = "/apis/networking.k8s.io/v1/ingresses"
METRICS = {"name": "metrics", "number": 9090, "http": True}


def test_a_private_image_is_pulled_with_a_login_that_ends_with_the_lease(installed: Installation) -> None:
    login = save_login(installed.home, registry="registry.example")
    template = save_template(
        installed.home, image=f"{ACTS}:pull-0s", pull_secret=login.pk, ports=[], readiness_path="", token_variable=""
    )
    requested = installed.sim.request_lease(installed.home, offering("1g.10gb"), template_id=template.pk)
    lease = installed.until(requested, "active")
    (secret,) = installed.ours("/api/v1/secrets")
    (pod,) = installed.ours("/api/v1/pods")
    assert pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    assert secret["metadata"]["ownerReferences"][0]["kind"] == "ConfigMap"
    (entry,) = json.loads(b64decode(secret["data"][".dockerconfigjson"]))["auths"].items()
    assert (entry[0], entry[1]["password"]) == ("registry.example", PASSWORD)
    others = [each for kind in ("pods", "configmaps", "services") for each in installed.ours(f"/api/v1/{kind}")]
    assert PASSWORD not in json.dumps(others)
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    assert installed.ours("/api/v1/secrets") == []


def test_every_port_of_a_template_is_served_and_every_http_port_routed(installed: Installation) -> None:
    Cluster.objects.update(domain="leases.example", ingress="ingress/public", bastion="in.example")
    template = save_template(
        installed.home, image=f"{ACTS}:pull-0s", ports=[WEB, METRICS, DATABASE], token_variable="", readiness_path=""
    )
    requested = installed.sim.request_lease(installed.home, offering("1g.10gb"), template_id=template.pk)
    lease = installed.until(requested, "active")
    (service,) = (each for each in installed.ours("/api/v1/services") if each["spec"].get("ports"))
    assert {each["name"]: (each["port"], each["targetPort"]) for each in service["spec"]["ports"]} == {
        "web": (80, 7860),
        "metrics": (9090, 9090),
        "db": (5432, 5432),
    }
    (ingress,) = installed.ours(INGRESSES)
    with tenant_scope(lease.tenant_id):
        links = [each for each in lease_connections_of(lease) if each.is_link]
    assert [each.line for each in links] == [f"https://{rule['host']}/" for rule in ingress["spec"]["rules"]]
    assert all(each.is_open for each in links)
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    assert [installed.ours(kind) for kind in (INGRESSES, "/api/v1/services")] == [[], []]
