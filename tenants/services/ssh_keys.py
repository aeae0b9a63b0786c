"""Saved SSH keys of users: added, deleted, and chosen when a lease is launched."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from tenants.domain import ssh_keys
from tenants.domain.single_line_text import is_name
from tenants.models import SshKey, User
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, ObjectNotFound, ProblemError
from tenants.services.own_accounts import audit_own_account

MAX_KEYS = 50  # per user
USER_KIND = "user"


class SshKeyTaken(ProblemError):
    code, status, title = "name-taken", 409, "This key or name is saved already"


class TooManySshKeys(ProblemError):
    code, status, title = "too-many-ssh-keys", 409, "You have too many SSH keys"


class UsersOnly(ProblemError):
    code, status, title = "users-only", 409, "Only users have saved SSH keys"


def keys_of(actor: Actor) -> QuerySet[SshKey]:
    """Return the saved keys of who acts; a service account has none."""
    rows = SshKey.objects.filter(user=actor.id) if actor.kind == USER_KIND else SshKey.objects.none()
    return rows.order_by("name")


@transaction.atomic
def add_key(*, name: str, public_key: str, actor: Actor, now: datetime) -> SshKey:
    """Save a public key of the user who acts."""
    if actor.kind != USER_KIND:
        raise UsersOnly("A service account has no saved SSH keys.", fix="Send the public key with the lease.")
    name, public_key = name.strip(), public_key.strip()
    _check_key(name, public_key)
    user = User.objects.select_for_update(no_key=True).get(pk=actor.id)
    fingerprint = ssh_keys.key_fingerprint(public_key)
    saved = keys_of(actor)
    if saved.count() >= MAX_KEYS:
        raise TooManySshKeys(f"You can save at most {MAX_KEYS} keys.", fix="Delete a key that you no longer use.")
    if saved.filter(name=name).exists():
        raise SshKeyTaken(f"You already have a key {name!r}.", fix="Choose another name.")
    if same := saved.filter(fingerprint=fingerprint).first():
        raise SshKeyTaken(f"This key is saved already, as {same.name!r}.", fix="Use that one, or delete it first.")
    key = SshKey.objects.create(user=user, name=name, public_key=public_key, fingerprint=fingerprint, created_at=now)
    audit_own_account("ssh_key.create", user=user, actor=actor, subject=key, now=now, fingerprint=fingerprint)
    return key


@transaction.atomic
def delete_key(key: SshKey, *, actor: Actor, now: datetime) -> None:
    """Delete a saved key; leases that were launched with it keep it."""
    user = User.objects.get(pk=key.user_id)
    audit_own_account("ssh_key.delete", user=user, actor=actor, subject=key, now=now, fingerprint=key.fingerprint)
    SshKey.objects.filter(pk=key.pk).delete()


def chosen_keys(key_ids: Sequence[str], *, actor: Actor) -> list[SshKey]:
    """Return the saved keys that who acts names by id, in this order; raise ObjectNotFound."""
    found = {key.pk: key for key in keys_of(actor).filter(pk__in=key_ids)}
    for key_id in key_ids:
        if key_id not in found:
            raise ObjectNotFound(
                "A chosen SSH key is not among your saved keys.",
                fix=Fix("Choose among your saved keys.", "GET", "/api/v1/ssh-keys"),
            )
    return [found[key_id] for key_id in dict.fromkeys(key_ids)]


def record_use(key_ids: Sequence[str], *, actor: Actor, now: datetime) -> None:
    """Record that a lease was launched with these keys."""
    keys_of(actor).filter(pk__in=key_ids).order_by().update(last_used_at=now)


def _check_key(name: str, public_key: str) -> None:
    if "PRIVATE KEY" in public_key or "PRIVATE KEY" in name:
        raise InvalidValue(
            "public_key",
            "This is a private key. It was not stored.",
            fix="Keep it secret, and paste the line from ~/.ssh/id_ed25519.pub.",
        )
    if not is_name(name):
        raise InvalidValue(
            "name",
            "A name must have 1 to 120 characters without control or invisible characters.",
            fix="Enter another name.",
        )
    if fault := ssh_keys.ssh_key_fault(public_key):
        text = f"{fault[:1].upper()}{fault[1:]}"
        raise InvalidValue("public_key", text, fix="Paste the line from ~/.ssh/id_ed25519.pub.")
