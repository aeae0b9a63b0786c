"""Secrets in the portal: save, replace, delete, and what is never shown."""

import re
from base64 import b64encode

import pytest

from broker.models import Secret
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.secrets import secret_store
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services import ssh_keys
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.simulation import offering, reload_lease
from tests.tenants.services.test_ssh_keys import public_key
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db


def secrets(portal: PortalSession) -> list[Secret]:
    with tenant_scope(portal.owner.tenant.pk):
        return list(Secret.objects.order_by("name"))


def test_submitting_the_form_twice_saves_one_secret(portal: PortalSession) -> None:
    assert "No secrets yet" in portal.read("/secrets/")
    key = re.search(r'name="key" value="([^"]+)"', portal.get("/secrets/").content.decode())
    assert key
    for _ in range(2):
        assert portal.post("/secrets/", name="HF_TOKEN", value=VALUE, key=key[1])["Location"] == "/secrets/"
    assert [each.name for each in secrets(portal)] == ["HF_TOKEN"]
    page = portal.get("/secrets/")
    assert "HF_TOKEN" in visible_text(page)
    assert "version 1" in visible_text(page)
    assert VALUE not in page.content.decode()
    assert page["Cache-Control"] == "no-store"


def test_a_changed_form_with_a_used_key_saves_nothing_and_says_so(portal: PortalSession) -> None:
    portal.post("/secrets/", name="HF_TOKEN", value=VALUE, key="same")
    answer = portal.post("/secrets/", name="OTHER", value=VALUE, key="same")
    assert answer.status_code == 409
    assert "already saved with this form" in visible_text(answer)
    assert len(secrets(portal)) == 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("hf_pasted-into-name", "x", "capital letters"), ("HF_TOKEN", "", "The value is empty")],
)
def test_an_invalid_secret_is_refused_beside_its_field(
    portal: PortalSession, name: str, value: str, words: str
) -> None:
    answer = portal.post("/secrets/", name=name, value=value)
    assert answer.status_code == 409
    assert words in visible_text(answer)
    assert "hf_pasted" not in answer.content.decode()
    with tenant_scope(portal.owner.tenant.pk):
        assert not any("hf_pasted" in str(each.detail) for each in AuditEvent.objects.all())


def test_a_refused_form_does_not_repeat_the_value(portal: PortalSession) -> None:
    save_secret(portal.owner)
    answer = portal.post("/secrets/", name="HF_TOKEN", value="typed-again")
    assert (answer.status_code, "already has a secret HF_TOKEN" in visible_text(answer)) == (409, True)
    assert "typed-again" not in answer.content.decode()


def test_line_breaks_of_a_form_are_those_of_a_file(portal: PortalSession) -> None:
    portal.post("/secrets/", name="TOKEN", value="hf_1\r\n")
    portal.post("/secrets/", name="PEM", value="one\r\ntwo\r\n")
    pem, token = secrets(portal)
    lease = portal.sim.create_lease(portal.owner, offering(), secrets={"TOKEN": token.pk, "PEM": pem.pk})
    with tenant_scope(portal.owner.tenant.pk):
        spec = load_provision_spec(reload_lease(lease), with_secrets=True)
    assert {each.name: each.value for each in spec.secrets} == {"TOKEN": "hf_1", "PEM": "one\ntwo\n"}


def test_a_value_is_replaced_and_the_page_says_who_keeps_the_old_one(portal: PortalSession) -> None:
    secret = save_secret(portal.owner)
    path = f"/secrets/{secret.pk}/replace/"
    assert "No lease uses it. The present value is deleted." in portal.read(path)
    portal.sim.create_lease(portal.owner, offering(), secrets={"HF_TOKEN": secret.pk})
    assert "1 lease uses it and keeps its present value" in portal.read(path)
    assert portal.post(path, value="").status_code == 400
    assert portal.post(path, value="new")["Location"] == "/secrets/"
    assert secrets(portal)[0].version == 2


def test_a_used_secret_is_deleted_only_when_its_lease_is_over(portal: PortalSession) -> None:
    secret = save_secret(portal.owner)
    lease = portal.sim.create_lease(portal.owner, offering(), secrets={"HF_TOKEN": secret.pk}, name="train")
    path = f"/secrets/{secret.pk}/delete/"
    assert "train" in portal.read("/secrets/")
    assert "train (active) uses this secret" in portal.read(path)
    assert portal.post(path).status_code == 409
    portal.sim.release_lease(lease)
    portal.sim.run(60)
    assert portal.post(path)["Location"] == "/secrets/"
    assert secrets(portal) == []
    assert portal.get(path).status_code == 404


def test_a_member_sees_names_and_cannot_save(portal: PortalSession) -> None:
    secret = save_secret(portal.owner)
    member = portal.sign_in_as(Role.MEMBER)
    page = member.read("/secrets/")
    assert "HF_TOKEN" in page
    assert "Replace value" not in page
    for path in ("/secrets/", f"/secrets/{secret.pk}/replace/", f"/secrets/{secret.pk}/delete/"):
        assert member.post(path, name="A", value="x").status_code == 403


def test_a_launch_gives_a_secret_under_the_chosen_name(portal: PortalSession) -> None:
    secret, other = save_secret(portal.owner), save_secret(portal.owner, "OTHER")
    assert "HF_TOKEN" in portal.read("/launch/")
    form = {"offering": offering().pk, "class": "on_demand", "name": "new", "count": "1", "lasts": "8 h",
            "runs": "own", "image": "python:3", "key": "k1", f"variable_of_{other.pk}": "OTHER"}  # fmt: skip
    chosen = {"secrets": [secret.pk], f"variable_of_{secret.pk}": "HUB_TOKEN"}
    answer = portal.post("/launch/", **form, **chosen)
    assert answer.status_code == 302
    page = portal.get(answer["Location"])
    assert "Secrets HUB_TOKEN" in visible_text(page)
    for text in (VALUE, b64encode(VALUE.encode()).decode()):
        assert text not in page.content.decode()
    again = portal.get(f"/launch/?again={answer['Location'].split('/')[2]}").content.decode()
    assert re.search(rf'name="secrets"\s+value="{secret.pk}"\s+checked', again)
    assert not re.search(rf'name="secrets"\s+value="{other.pk}"\s+checked', again)
    assert 'value="HUB_TOKEN"' in again


def test_a_chosen_secret_needs_a_variable_of_its_own(portal: PortalSession) -> None:
    secret = save_secret(portal.owner)
    form = {"offering": offering().pk, "class": "on_demand", "name": "new", "count": "1", "lasts": "8 h",
            "runs": "own", "image": "python:3", "secrets": [secret.pk]}  # fmt: skip
    blank = portal.post("/launch/", **form, **{f"variable_of_{secret.pk}": " "})
    assert (blank.status_code, "Enter a variable name" in visible_text(blank)) == (409, True)
    doubled = portal.post("/launch/", **form, **{f"variable_of_{secret.pk}": "MODE", "env": "MODE=train"})
    assert "set both as a plain variable and from a secret" in visible_text(doubled)


def test_a_credential_typed_as_a_plain_variable_gets_a_hint(portal: PortalSession) -> None:
    form = {"offering": offering().pk, "class": "on_demand", "name": "new", "count": "1", "lasts": "8 h",
            "runs": "own", "image": "python:3", "env": "HF_TOKEN=hf_1\nMODE=train"}  # fmt: skip
    shown = visible_text(portal.client.post("/launch/quote/", form))
    assert "These variables look like credentials: HF_TOKEN." in shown
    answer = portal.client.post("/launch/", form, follow=True)
    assert "Stored as plain variables: HF_TOKEN." in visible_text(answer)
    plain = portal.client.post("/launch/", {**form, "env": "MODE=train", "key": "k2"}, follow=True)
    assert "Stored as plain variables" not in visible_text(plain)


def test_pages_with_the_most_secrets_and_keys_stay_below_100_kb(portal: PortalSession) -> None:
    for number in range(secret_store.MAX_SECRETS):
        save_secret(portal.owner, f"SERVICE_ACCOUNT_TOKEN_{number}")
    for number in range(ssh_keys.MAX_KEYS):
        ssh_keys.add_key(
            name=f"key {number}", public_key=public_key(number), actor=portal.owner.actor, now=portal.sim.now
        )
    sizes = {path: len(portal.get(path).content) for path in ("/secrets/", "/launch/", "/account/ssh-keys/")}
    assert {path: size for path, size in sizes.items() if size > 100_000} == {}


def test_a_registry_login_is_saved_replaced_and_never_shown(portal: PortalSession) -> None:
    login = {"kind": "registry", "name": "GHCR", "registry": "ghcr.io", "username": "acme", "password": VALUE}
    assert portal.post("/secrets/", **login)["Location"] == "/secrets/"
    (secret,) = secrets(portal)
    assert (secret.kind, secret.registry) == ("registry", "ghcr.io")
    page = portal.get("/secrets/")
    assert "Login of ghcr.io" in visible_text(page)
    assert VALUE not in page.content.decode()
    replace = f"/secrets/{secret.pk}/replace/"
    assert "Password or token" in portal.read(replace)
    answer = portal.post(replace, username="a:b", password=VALUE)
    assert "no colon" in visible_text(answer)
    assert VALUE not in answer.content.decode()
    assert portal.post(replace, username="acme", password="new")["Location"] == "/secrets/"
    assert secrets(portal)[0].version == 2


def test_an_invalid_login_is_refused_beside_its_field(portal: PortalSession) -> None:
    login = {"kind": "registry", "name": "X", "registry": "localhost", "username": "acme", "password": VALUE}
    answer = portal.post("/secrets/", **login)
    assert (answer.status_code, 'id="registry-err"' in answer.content.decode()) == (409, True)
    assert VALUE not in answer.content.decode()
