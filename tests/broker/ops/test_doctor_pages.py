"""Operators add a cluster, read what its examination found, renew its credentials, and never see them again."""

from io import StringIO
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from broker.models import Cluster, ClusterCredential, Examination
from tenants.models import AuditEvent, User
from tenants.services.walls import as_staff
from tests.world import NOW, Life, fleet

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
    settings.OPERATORS_NEED_MFA = False
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def add(client: Client, **changes: str) -> Any:
    asked = {
        "name": "north",
        "region": "eu-north",
        "driver": "device_plugin",
        "kubeconfig": kubeconfig(),
        **changes,
    }
    return client.post("/ops/clusters/add/", asked)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_pasted_kubeconfig_is_sealed_examined_and_never_shown(life: Life, operator: Client) -> None:
    assert "Kubeconfig" in text(operator.get("/ops/clusters/add/"))
    answer = add(operator)
    cluster = Cluster.objects.get(name="north")
    assert (answer.status_code, answer["Location"]) == (302, f"/ops/clusters/{cluster.pk}/doctor/")
    assert ("broker.examine", cluster.pk) in {hint[2:4] for hint in life.hints}
    page = operator.get(answer["Location"])
    assert "Being examined" in text(page)
    pages = [page, operator.get(f"/ops/clusters/{cluster.pk}/credentials/"), operator.get("/ops/clusters/")]
    assert not any(TOKEN in text(each) for each in pages)
    assert TOKEN.encode() not in bytes(ClusterCredential.objects.get().sealed)
    with as_staff():
        assert not any(TOKEN in str(event.detail) for event in AuditEvent.objects.all())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "A name has 1 to 60"),
        ({"region": "x" * 61}, "A region has 1 to 60"),
        ({"driver": "magic"}, "No driver is called"),
        ({"option": "extended=yes"}, "the driver device_plugin has no option"),
        ({"kubeconfig": "{"}, "no YAML"),
        ({"kubeconfig": kubeconfig().replace("server: ", "server: &s [*s] #")}, "more than any"),
        ({"kubeconfig": kubeconfig(server="https://[::1")}, "https://"),
        ({"kubeconfig": kubeconfig(server="http://192.0.2.1")}, "https://"),
        ({"kubeconfig": kubeconfig(**{"insecure-skip-tls-verify": True})}, "hand our credentials"),
    ],
)
def test_what_cannot_be_used_is_told_where_it_was_asked(
    life: Life, operator: Client, changes: dict[str, str], words: str
) -> None:
    answer = add(operator, **changes)
    assert answer.status_code == 400
    assert words in text(answer)
    assert TOKEN not in text(answer)
    assert not Cluster.objects.filter(provisioner="kubernetes").exists()


def test_how_a_driver_works_is_chosen_where_no_node_tells(life: Life, operator: Client) -> None:
    assert 'value="extended=yes"' in text(operator.get("/ops/clusters/add/"))
    add(operator, driver="dra", option="extended=yes", name="north")
    add(operator, driver="dra", name="south")
    kept = dict(Cluster.objects.filter(driver="dra").values_list("name", "driver_options"))
    assert kept == {"north": {"extended": True}, "south": {}}


def test_two_clusters_have_two_names(life: Life, operator: Client) -> None:
    add(operator)
    answer = add(operator)
    assert answer.status_code == 400
    assert "There is a cluster called north already" in text(answer)


def test_without_a_key_nothing_is_kept(life: Life, operator: Client, settings: Any) -> None:
    settings.CREDENTIAL_KEYS = ""
    assert "GPUBROKER_CREDENTIAL_KEYS" in text(add(operator))
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    add(operator)
    settings.CREDENTIAL_KEYS = ""
    there = f"/ops/clusters/{Cluster.objects.get().pk}/credentials/"
    assert operator.post(there, {"kubeconfig": kubeconfig()}).status_code == 400


def test_findings_are_told_the_worst_first_and_examined_again_on_request(
    life: Life, operator: Client
) -> None:
    add(operator)
    cluster = Cluster.objects.get()
    found = [
        {"name": name, "outcome": outcome, "seen": f"saw {name}", "why": "it matters", "fix": "mend it"}
        for name, outcome in (("clock", "ok"), ("rights", "bad"), ("door", "warn"))
    ]
    Examination.objects.update(done_at=NOW, findings=found)
    here = f"/ops/clusters/{cluster.pk}/doctor/"
    page = text(operator.get(here))
    assert page.index("saw rights") < page.index("saw door") < page.index("saw clock")
    assert "Leases would fail here" in page
    assert operator.get(f"{here}again/").status_code == 200
    assert operator.post(f"{here}again/").status_code == 302
    assert Examination.objects.get().done_at is None


def test_new_credentials_take_the_place_of_the_old(life: Life, operator: Client) -> None:
    add(operator)
    before = bytes(ClusterCredential.objects.get().sealed)
    cluster = Cluster.objects.get()
    there = f"/ops/clusters/{cluster.pk}/credentials/"
    new = kubeconfig(server="https://192.0.2.2:6443")
    assert operator.post(there, {"kubeconfig": new}).status_code == 302
    assert bytes(ClusterCredential.objects.get().sealed) != before
    assert Cluster.objects.get().address == "https://192.0.2.2:6443"


def test_silence_and_disbelief_stand_on_top_and_a_person_may_believe(life: Life, operator: Client) -> None:
    add(operator)
    Cluster.objects.update(
        silent_since=NOW, silent_why="connection refused", halted="It reports only 0 of 32 cards."
    )
    cluster = Cluster.objects.get()
    page = text(operator.get(f"/ops/clusters/{cluster.pk}/doctor/"))
    assert "Connection refused" in page
    assert "0 of 32" in page
    believe = f"/ops/clusters/{cluster.pk}/believe/"
    assert "0 of 32" in text(operator.get(believe))
    assert operator.post(believe, {"reason": "the rack was sold"}).status_code == 302
    assert Cluster.objects.get().believes


def test_a_simulated_cluster_says_that_there_is_nothing_to_examine(life: Life, operator: Client) -> None:
    fleet()
    here = f"/ops/clusters/{Cluster.objects.get().pk}/doctor/"
    assert "simulated" in text(operator.get(here))
    assert operator.post(f"{here}again/").status_code == 409
    assert operator.get("/ops/clusters/clu_nobody/doctor/").status_code == 404


def test_the_ways_in_are_set_by_a_form_that_knows_what_it_shows(life: Life, operator: Client) -> None:
    add(operator)
    cluster = Cluster.objects.get()
    there = f"/ops/clusters/{cluster.pk}/ways/"
    assert f'name="version" value="{cluster.version}"' in operator.get(there).content.decode()
    sent = {"domain": "leases.example", "door": "ingress/public", "bastion": "", "version": cluster.version}
    assert operator.post(there, {**sent, "door": "window"}).status_code == 400
    refused = operator.post(there, {**sent, "entrances": "gt-somebodys"})
    assert "would reach everybody" in text(refused)
    assert operator.post(there, {**sent, "entrances": "edge, ssh"}).status_code == 302
    assert (Cluster.objects.get().domain, Cluster.objects.get().entrances) == ("leases.example", "edge ssh")
    assert 'value="edge ssh"' in text(operator.get(there))
    late = operator.post(there, {**sent, "domain": "", "door": ""})
    assert late.status_code == 412
    assert "It is now:" in text(late)
    assert operator.post(there, {**sent, "version": "x"}).status_code == 400


def test_what_the_command_finds_of_a_cluster_stands_on_its_page(operator: Client) -> None:
    north = Cluster.objects.create(
        name="north", region="eu-north", provisioner="kubernetes", driver="device_plugin", created_at=NOW
    )
    with pytest.raises(SystemExit):  # there is no way into it
        call_command("kube_doctor", "north", stdout=StringIO())
    page = operator.get(f"/ops/clusters/{north.pk}/doctor/").content.decode()
    assert "Renew the cluster&#x27;s credentials." in page
    assert "It was never examined" not in page
