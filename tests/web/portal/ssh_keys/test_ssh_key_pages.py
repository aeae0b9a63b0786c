"""SSH keys in the portal: add, choose at launch, delete."""

import pytest

from broker.models import Lease
from tenants.domain.roles import Role
from tenants.models import AuditEvent, SshKey
from tenants.services.rls import tenant_scope
from tests.simulation import offering
from tests.tenants.services.test_ssh_keys import PRIVATE, public_key
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db


def test_a_saved_key_is_listed_chosen_and_deleted(portal: PortalSession) -> None:
    assert "No SSH keys yet" in portal.read("/account/ssh-keys/")
    added = portal.post("/account/ssh-keys/", name="laptop", public_key=f"{public_key()}\r\n")
    assert added["Location"] == "/account/ssh-keys/"
    key = SshKey.objects.get()
    page = portal.read("/account/ssh-keys/")
    for part in ("laptop", "ssh-ed25519, ada@example", key.fingerprint, "never saved"):
        assert part in page
    assert key.fingerprint in portal.read("/launch/")
    form = {"offering": offering().pk, "class": "on_demand", "name": "new", "count": "1", "lasts": "8 h",
            "runs": "ssh", "key": "k1", "ssh_key_ids": [key.pk]}  # fmt: skip
    assert portal.post("/launch/", **form).status_code == 302
    with tenant_scope(portal.owner.tenant.pk):
        assert Lease.objects.get().ssh_keys == [public_key()]
    assert "never saved" not in portal.read("/account/ssh-keys/")
    assert portal.post(f"/account/ssh-keys/{key.pk}/delete/").status_code == 302
    assert not SshKey.objects.exists()


def test_a_private_key_is_refused_and_not_shown_again(portal: PortalSession) -> None:
    answer = portal.post("/account/ssh-keys/", name="laptop", public_key=PRIVATE)
    assert answer.status_code == 400
    assert "This is a private key. It was not stored." in visible_text(answer)
    assert "b3BlbnNzaC1" not in answer.content.decode()
    with tenant_scope(portal.owner.tenant.pk):
        assert not any("b3BlbnNzaC1" in str(each.detail) for each in AuditEvent.objects.all())


def test_a_key_of_another_user_cannot_be_deleted(portal: PortalSession) -> None:
    portal.post("/account/ssh-keys/", name="laptop", public_key=public_key())
    other = portal.sign_in_as(Role.OWNER)
    assert other.post(f"/account/ssh-keys/{SshKey.objects.get().pk}/delete/").status_code == 404
    assert SshKey.objects.exists()


def test_an_invalid_key_is_refused_beside_its_field(portal: PortalSession) -> None:
    answer = portal.post("/account/ssh-keys/", name="laptop", public_key="nonsense")
    assert (answer.status_code, "It must start with" in visible_text(answer)) == (400, True)
    nul = portal.post("/account/ssh-keys/", name="a\0b", public_key=public_key())
    assert nul.status_code == 400
