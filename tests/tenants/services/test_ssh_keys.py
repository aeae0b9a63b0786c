"""Saved SSH keys: adding, limits, deletion, audit, and use by their owner only."""

import base64
import struct

import pytest

from tenants.models import AuditEvent, SshKey
from tenants.services import rls, ssh_keys
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import NOW, TenantWithOwner

pytestmark = pytest.mark.django_db
PRIVATE = "\n".join(f"-----{word} OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA" for word in ("BEGIN", "END"))


def public_key(number: int = 0) -> str:
    """Return a valid key of its own for each number."""
    blob = struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 32) + number.to_bytes(32, "big")
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} ada@example"


def actor_of(world: TenantWithOwner) -> Actor:
    return Actor("user", world.owner.pk, world.owner.email, "req-1")


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def test_a_saved_key_is_audited_in_each_tenant_of_its_user(delta: TenantWithOwner) -> None:
    key = ssh_keys.add_key(name=" laptop ", public_key=f"{public_key()}\n", actor=actor_of(delta), now=NOW)
    ssh_keys.delete_key(key, actor=actor_of(delta), now=NOW)
    with rls.tenant_scope(delta.tenant.pk):
        events = list(AuditEvent.objects.filter(action__startswith="ssh_key.").order_by("id"))
    assert [(each.action, each.subject_label) for each in events] == [
        ("ssh_key.create", "laptop"),
        ("ssh_key.delete", "laptop"),
    ]
    assert {each.detail["fingerprint"] for each in events} == {key.fingerprint}
    assert not SshKey.objects.exists()


def test_a_name_and_a_key_can_be_saved_once_per_user(delta: TenantWithOwner) -> None:
    ssh_keys.add_key(name="laptop", public_key=public_key(), actor=actor_of(delta), now=NOW)
    with pytest.raises(ssh_keys.SshKeyTaken, match="already have a key 'laptop'"):
        ssh_keys.add_key(name="laptop", public_key=public_key(1), actor=actor_of(delta), now=NOW)
    with pytest.raises(ssh_keys.SshKeyTaken, match="saved already, as 'laptop'"):
        ssh_keys.add_key(name="other", public_key=public_key(), actor=actor_of(delta), now=NOW)
    other = tenant_setup.create_tenant_with_owner("Other")
    ssh_keys.add_key(name="laptop", public_key=public_key(), actor=actor_of(other), now=NOW)


def test_a_user_saves_at_most_50_keys(delta: TenantWithOwner) -> None:
    for number in range(ssh_keys.MAX_KEYS):
        ssh_keys.add_key(name=f"key {number}", public_key=public_key(number), actor=actor_of(delta), now=NOW)
    with pytest.raises(ssh_keys.TooManySshKeys):
        ssh_keys.add_key(name="one more", public_key=public_key(50), actor=actor_of(delta), now=NOW)


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("laptop", PRIVATE, "This is a private key. It was not stored."),
        (PRIVATE, public_key(), "This is a private key. It was not stored."),
        ("", public_key(), "1 to 120 characters"),
        ("a\u202eb", public_key(), "1 to 120 characters"),
        ("laptop", "", "It must start with"),
        ("laptop", f"command=x {public_key()}", "It must start with"),
        ("laptop", f"{public_key()}\n{public_key(1)}", "one line of plain text"),
        ("laptop", "ssh-rsa AAAA", "damaged"),
        ("laptop", "ssh-ed25519 AAAAé", "damaged"),
    ],
)
def test_an_invalid_key_is_refused_and_its_text_is_not_repeated(
    delta: TenantWithOwner, name: str, key: str, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words) as refused:
        ssh_keys.add_key(name=name, public_key=key, actor=actor_of(delta), now=NOW)
    assert "b3BlbnNzaC1" not in f"{refused.value.detail} {refused.value.fix.text} {refused.value.extra}"
    assert not SshKey.objects.exists()


def test_chosen_keys_are_the_users_own(delta: TenantWithOwner) -> None:
    other = tenant_setup.create_tenant_with_owner("Other")
    mine = ssh_keys.add_key(name="mine", public_key=public_key(), actor=actor_of(delta), now=NOW)
    theirs = ssh_keys.add_key(name="theirs", public_key=public_key(1), actor=actor_of(other), now=NOW)
    assert ssh_keys.chosen_keys([mine.pk, mine.pk], actor=actor_of(delta)) == [mine]
    with pytest.raises(ObjectNotFound):
        ssh_keys.chosen_keys([mine.pk, theirs.pk], actor=actor_of(delta))
    ssh_keys.record_use([mine.pk, theirs.pk], actor=actor_of(delta), now=NOW)
    used = dict(SshKey.objects.values_list("pk", "last_used_at"))
    assert used == {mine.pk: NOW, theirs.pk: None}


def test_a_service_account_has_no_saved_keys(delta: TenantWithOwner) -> None:
    robot = Actor("service_account", delta.create_service_account().pk, "robot")
    assert not ssh_keys.keys_of(robot)
    with pytest.raises(ssh_keys.UsersOnly):
        ssh_keys.add_key(name="robot", public_key=public_key(), actor=robot, now=NOW)
