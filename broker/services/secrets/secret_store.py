"""Creation, replacement and deletion of saved secrets.

Values are encrypted before they are stored, and nothing here returns one.
"""

from collections.abc import Iterator
from datetime import datetime

from django.db import IntegrityError, transaction

from broker.domain.workloads.secret_variables import secret_name_fault, secret_value_fault
from broker.models import LaunchTemplate, Lease, Secret, SecretKind, SecretVersion
from broker.services.secrets import secret_encryption
from broker.services.secrets.secret_errors import NoEncryptionKey, SecretInUse, SecretNameTaken, TooManySecrets
from ports import crypto
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound

MAX_SECRETS = 100  # per project: the launch page lists them all


@transaction.atomic
def create_secret(*, project: Project, name: str, value: str, actor: Actor, now: datetime) -> Secret:
    """Store a secret of a project, encrypted."""
    _check_value(value)
    return store_secret(project=project, name=name, value=value, actor=actor, now=now)


def store_secret(
    *,
    project: Project,
    name: str,
    value: str,
    kind: SecretKind = SecretKind.VARIABLE,
    registry: str = "",
    actor: Actor,
    now: datetime,
) -> Secret:
    """Store a secret with a valid value in the caller's transaction."""
    name = name.strip()
    if fault := secret_name_fault(name):
        raise InvalidValue("name", fault, fix="Enter a name such as HF_TOKEN.")
    if Secret.objects.filter(project=project).count() >= MAX_SECRETS:
        raise TooManySecrets(f"A project can have at most {MAX_SECRETS} secrets.", fix="Delete unused ones first.")
    secret = Secret(
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        kind=kind,
        registry=registry,
        created_at=now,
        created_by=actor.id,
        created_by_label=actor.label,
        updated_at=now,
        updated_by=actor.id,
        updated_by_label=actor.label,
    )
    try:
        with transaction.atomic():
            secret.save(force_insert=True)
    except IntegrityError:
        raise SecretNameTaken(
            f"This project already has a secret {name}.", fix="Replace its value, or choose another name."
        ) from None
    _store_version(secret, value, now=now)
    _record_audit("secret.create", secret, actor=actor, now=now, version=secret.version)
    return secret


@transaction.atomic
def replace_value(secret: Secret, value: str, *, actor: Actor, now: datetime) -> Secret:
    """Store a new value of a secret; leases keep the value they started with."""
    if secret.kind == SecretKind.REGISTRY:
        raise InvalidValue(
            "value", f"{secret.name} is the login of a registry.", fix="Send `username` and `password` instead."
        )
    _check_value(value)
    return store_new_version(secret, value, actor=actor, now=now)


def store_new_version(secret: Secret, value: str, *, actor: Actor, now: datetime) -> Secret:
    """Store a valid new value in the caller's transaction."""
    secret = _lock(secret)
    secret.version += 1
    secret.updated_at, secret.updated_by, secret.updated_by_label = now, actor.id, actor.label
    secret.save(update_fields=["version", "updated_at", "updated_by", "updated_by_label"])
    _store_version(secret, value, now=now)
    delete_unused_versions(secret)
    _record_audit("secret.replace", secret, actor=actor, now=now, version=secret.version)
    return secret


@transaction.atomic
def delete_secret(secret: Secret, *, actor: Actor, now: datetime) -> None:
    """Delete a secret with all its values; refused while a lease uses it."""
    secret = _lock(secret)
    if user := next(leases_using(secret), None):
        raise SecretInUse(
            f"{user.name}, which is {user.state}, uses {secret.name}.",
            fix="Release that lease first, or replace the secret's value.",
        )
    if template := LaunchTemplate.objects.filter(pull_secret=secret).order_by("name").first():
        raise SecretInUse(
            f"The template {template.name} pulls its image with {secret.name}.",
            fix="Change or delete that template first, or replace the login.",
        )
    _record_audit("secret.delete", secret, actor=actor, now=now, version=secret.version)
    SecretVersion.objects.filter(secret=secret).delete()
    Secret.objects.filter(pk=secret.pk).delete()


def leases_using(secret: Secret) -> Iterator[Lease]:
    """Yield the leases that are not over and use a secret."""
    live = Lease.objects.live().filter(tenant=secret.tenant_id, project=secret.project_id)
    using = live.exclude(secrets={}, pull_secret={})
    return (lease for lease in using.order_by("id") if secret.pk in lease.used_secret_ids)


def delete_unused_versions(secret: Secret) -> None:
    """Delete the older values of a secret that no lease needs any more."""
    pinned = (each for lease in leases_using(secret) for each in (*lease.secrets.values(), lease.pull_secret) if each)
    needed = {each["version"] for each in pinned if each["secret"] == secret.pk}
    SecretVersion.objects.filter(secret=secret).exclude(version__in=needed | {secret.version}).delete()


def delete_values_of_ended(lease: Lease) -> None:
    """Delete the replaced values that only an ended lease still used.

    A secret that is locked is left out: it is about to be used or changed, and its next change does the same.
    """
    if lease.secrets or lease.pull_secret:
        mine = Secret.objects.filter(pk__in=lease.used_secret_ids)
        for secret in mine.select_for_update(of=("self",), skip_locked=True).order_by("pk"):
            delete_unused_versions(secret)


def _lock(secret: Secret) -> Secret:
    """Lock a secret and read it again; raise ObjectNotFound if it was deleted."""
    found = Secret.objects.select_for_update(of=("self",)).select_related("project").filter(pk=secret.pk).first()
    if found is None:
        raise ObjectNotFound("This secret was deleted.", fix="Choose one from the list of secrets.")
    return found


def _check_value(value: str) -> None:
    if fault := secret_value_fault(value):
        raise InvalidValue("value", fault, fix="Enter the value again.")


def _store_version(secret: Secret, value: str, *, now: datetime) -> None:
    try:
        sealed = secret_encryption.seal_value(value, secret_id=secret.pk, version=secret.version)
    except crypto.CredentialKeyError:
        raise NoEncryptionKey(
            "It has no valid encryption key, so nothing was stored.", fix="Ask the operators of this installation."
        ) from None
    SecretVersion.objects.create(
        tenant_id=secret.tenant_id,
        secret=secret,
        version=secret.version,
        sealed=sealed,
        size_bytes=len(value.encode()),
        created_at=now,
    )


def _record_audit(action: str, secret: Secret, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(action, secret, actor=actor, now=now, project=secret.project_id, **detail)
