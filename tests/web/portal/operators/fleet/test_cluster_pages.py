"""Operators add a cluster, read its examination and renew credentials."""

from io import StringIO
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from broker.models import Cluster, ClusterCredential, ClusterExamination
from tenants.models import AuditEvent, User
from tenants.services.rls import staff_scope
from tests.simulation import NOW, Simulation, create_fleet

TOKEN = "never-to-be-shown-again"


def kubeconfig(**cluster: Any) -> str:
    return yaml.safe_dump(
        {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443", **cluster}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        }
    )


@pytest.fixture
def operator(db: None, settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def add(client: Client, **changes: str) -> Any:
    values = {
        "name": "north",
        "region": "eu-north",
        "driver": "device_plugin",
        "kubeconfig": kubeconfig(),
        **changes,
    }
    return client.post("/ops/clusters/add/", values)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_pasted_kubeconfig_is_sealed_examined_and_never_shown(sim: Simulation, operator: Client) -> None:
    assert "Kubeconfig" in text(operator.get("/ops/clusters/add/"))
    answer = add(operator)
    cluster = Cluster.objects.get(name="north")
    assert (answer.status_code, answer["Location"]) == (302, f"/ops/clusters/{cluster.pk}/checks/")
    assert ("broker.examine_cluster", cluster.pk) in {hint[2:4] for hint in sim.messages}
    page = operator.get(answer["Location"])
    assert "Health check in progress" in text(page)
    pages = [page, operator.get(f"/ops/clusters/{cluster.pk}/credentials/"), operator.get("/ops/clusters/")]
    assert not any(TOKEN in text(each) for each in pages)
    assert TOKEN.encode() not in bytes(ClusterCredential.objects.get().sealed)
    with staff_scope():
        assert not any(TOKEN in str(event.detail) for event in AuditEvent.objects.all())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "The name must have 1 to 60"),
        ({"region": "x" * 61}, "The region must have 1 to 60"),
        ({"driver": "magic"}, "Driver &#x27;magic&#x27; does not exist"),
        ({"option": "extended=yes"}, "driver device_plugin has no option"),
        ({"kubeconfig": "{"}, "not valid YAML"),
        ({"kubeconfig": kubeconfig().replace("server: ", "server: &s [*s] #")}, "too deeply nested"),
        ({"kubeconfig": kubeconfig(server="https://[::1")}, "https://"),
        ({"kubeconfig": kubeconfig(server="http://192.0.2.1")}, "https://"),
        ({"kubeconfig": kubeconfig(**{"insecure-skip-tls-verify": True})}, "exposes credentials"),
        ({"kubeconfig": kubeconfig().replace("token: ", "tokenFile: /")}, "reads a file of this server"),
        ({"kubeconfig": kubeconfig().replace("token: ", "exec: {command: sh, apiVersion: v1} #")}, "runs a program"),
    ],
)
def test_an_invalid_new_cluster_shows_its_error_without_the_token(
    sim: Simulation, operator: Client, changes: dict[str, str], words: str
) -> None:
    answer = add(operator, **changes)
    assert answer.status_code == 400
    assert words in text(answer)
    assert TOKEN not in text(answer)
    assert not Cluster.objects.filter(provisioner="kubernetes").exists()


def test_driver_options_are_chosen_when_adding_a_cluster(sim: Simulation, operator: Client) -> None:
    assert 'value="extended=yes"' in text(operator.get("/ops/clusters/add/"))
    add(operator, driver="dra", option="extended=yes", name="north")
    add(operator, driver="dra", name="south")
    kept = dict(Cluster.objects.filter(driver="dra").values_list("name", "driver_options"))
    assert kept == {"north": {"extended": True}, "south": {}}


def test_cluster_names_are_unique(sim: Simulation, operator: Client) -> None:
    add(operator)
    answer = add(operator)
    assert answer.status_code == 400
    assert "A cluster named north already exists" in text(answer)


def test_without_an_encryption_key_no_credentials_are_stored(sim: Simulation, operator: Client, settings: Any) -> None:
    person = User.objects.get(is_staff=True)
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    operator.force_login(person)  # sessions are encrypted as well
    assert "GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS" in text(add(operator))
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    operator.force_login(person)
    add(operator)
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    operator.force_login(person)
    there = f"/ops/clusters/{Cluster.objects.get().pk}/credentials/"
    assert operator.post(there, {"kubeconfig": kubeconfig()}).status_code == 400


def test_findings_are_listed_worst_first_and_the_examination_can_be_repeated(sim: Simulation, operator: Client) -> None:
    add(operator)
    cluster = Cluster.objects.get()
    found = [
        {"name": name, "outcome": outcome, "seen": f"saw {name}", "why": "it matters", "fix": "mend it"}
        for name, outcome in (("clock", "ok"), ("rights", "bad"), ("ingress", "warn"))
    ]
    ClusterExamination.objects.update(done_at=NOW, findings=found)
    here = f"/ops/clusters/{cluster.pk}/checks/"
    page = text(operator.get(here))
    assert page.index("saw rights") < page.index("saw ingress") < page.index("saw clock")
    assert "Leases fail here" in page
    assert operator.get(f"{here}rerun/").status_code == 200
    assert operator.post(f"{here}rerun/").status_code == 302
    assert ClusterExamination.objects.get().done_at is None


def test_new_credentials_take_the_place_of_the_old(sim: Simulation, operator: Client) -> None:
    add(operator)
    before = bytes(ClusterCredential.objects.get().sealed)
    cluster = Cluster.objects.get()
    there = f"/ops/clusters/{cluster.pk}/credentials/"
    new = kubeconfig(server="https://192.0.2.2:6443")
    assert operator.post(there, {"kubeconfig": new}).status_code == 302
    assert bytes(ClusterCredential.objects.get().sealed) != before
    assert Cluster.objects.get().address == "https://192.0.2.2:6443"


def test_an_unreachable_cluster_and_paused_inventory_are_shown_and_acceptable(
    sim: Simulation, operator: Client
) -> None:
    add(operator)
    Cluster.objects.update(
        unreachable_since=NOW,
        unreachable_reason="connection refused",
        inventory_paused_reason="It reports only 0 of 32 GPUs.",
    )
    cluster = Cluster.objects.get()
    page = text(operator.get(f"/ops/clusters/{cluster.pk}/checks/"))
    assert "Connection refused" in page
    assert "0 of 32" in page
    believe = f"/ops/clusters/{cluster.pk}/accept-inventory/"
    assert "0 of 32" in text(operator.get(believe))
    assert operator.post(believe, {"reason": "the rack was sold"}).status_code == 302
    assert Cluster.objects.get().accept_next_inventory


def test_a_simulated_cluster_cannot_be_examined(sim: Simulation, operator: Client) -> None:
    create_fleet()
    here = f"/ops/clusters/{Cluster.objects.get().pk}/checks/"
    assert "simulated" in text(operator.get(here))
    assert operator.post(f"{here}rerun/").status_code == 409
    assert operator.get("/ops/clusters/clu_nobody/checks/").status_code == 404


def test_cluster_access_is_set_by_a_form_with_a_version(sim: Simulation, operator: Client) -> None:
    add(operator)
    cluster = Cluster.objects.get()
    there = f"/ops/clusters/{cluster.pk}/access/"
    assert f'name="version" value="{cluster.version}"' in operator.get(there).content.decode()
    sent = {"domain": "leases.example", "ingress": "ingress/public", "bastion": "", "version": cluster.version}
    assert operator.post(there, {**sent, "ingress": "window"}).status_code == 400
    refused = operator.post(there, {**sent, "allowed_namespaces": "gt-somebodys"})
    assert "could reach all leases" in text(refused)
    assert operator.post(there, {**sent, "allowed_namespaces": "edge, ssh"}).status_code == 302
    assert (Cluster.objects.get().domain, Cluster.objects.get().allowed_namespaces) == ("leases.example", "edge ssh")
    assert 'value="edge ssh"' in text(operator.get(there))
    late = operator.post(there, {**sent, "domain": "", "ingress": ""})
    assert late.status_code == 412
    assert "Current values:" in text(late)
    assert operator.post(there, {**sent, "version": "x"}).status_code == 400


def test_findings_of_the_doctor_command_are_on_the_clusters_page(operator: Client) -> None:
    north = Cluster.objects.create(
        name="north", region="eu-north", provisioner="kubernetes", driver="device_plugin", created_at=NOW
    )
    with pytest.raises(SystemExit):  # there is no way into it
        call_command("kube_doctor", "north", stdout=StringIO())
    page = operator.get(f"/ops/clusters/{north.pk}/checks/").content.decode()
    assert "Renew the cluster&#x27;s credentials." in page
    assert "Not checked yet" not in page
