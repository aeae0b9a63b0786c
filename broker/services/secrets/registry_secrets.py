"""Logins of private registries as saved secrets: stored, pinned by leases, read to pull images."""

import json
from datetime import datetime
from typing import Any

from django.db import transaction

from broker.domain.workloads.registry_logins import (
    RegistryLogin,
    image_login_fault,
    login_fault,
    normalize_password,
    normalize_server,
    server_fault,
)
from broker.models import Lease, Secret, SecretKind, SecretVersion
from broker.services.secrets import secret_store
from broker.services.secrets.secret_encryption import SecretUnreadable, open_value
from tenants.models import Project
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, ObjectNotFound


@transaction.atomic
def create_registry_secret(
    *, project: Project, name: str, registry: str, username: str, password: str, actor: Actor, now: datetime
) -> Secret:
    """Store the login of a registry, encrypted."""
    server = normalize_server(registry)
    if fault := server_fault(server):
        raise InvalidValue(fault.field, fault.text, fix=fault.fix)
    return secret_store.store_secret(
        project=project,
        name=name,
        value=_login_value(username, password),
        kind=SecretKind.REGISTRY,
        registry=server,
        actor=actor,
        now=now,
    )


@transaction.atomic
def replace_login(secret: Secret, *, username: str, password: str, actor: Actor, now: datetime) -> Secret:
    """Store a new user name and password; leases keep those they started with."""
    if secret.kind != SecretKind.REGISTRY:
        raise InvalidValue("username", f"{secret.name} is not the login of a registry.", fix="Send `value` instead.")
    return secret_store.store_new_version(secret, _login_value(username, password), actor=actor, now=now)


def find_registry_secret(secret_id: str, *, project: Project) -> Secret:
    """Return a registry's secret of a project, or raise ProblemError."""
    secret = Secret.objects.filter(pk=secret_id, project=project).first()
    if secret is None:
        raise ObjectNotFound(
            "The pull secret does not exist in this project.",
            fix=Fix("Choose one from the list of secrets.", "GET", "/api/v1/secrets"),
        )
    if secret.kind != SecretKind.REGISTRY:
        raise InvalidValue(
            "pull_secret",
            f"{secret.name} is not the login of a registry.",
            fix="Save the login under Secrets as a registry login, and choose that.",
        )
    return secret


def check_login_matches(secret: Secret, image: str) -> None:
    """Raise InvalidValue for an image of another registry."""
    if fault := image_login_fault(image, secret.registry):
        raise InvalidValue("pull_secret", fault, fix="Choose the login of that registry, or none.")


def pin_pull_secret(secret_id: str, *, project: Project, image: str) -> dict[str, Any]:
    """Return a login's newest version as a lease stores it, or raise ProblemError."""
    secret = find_registry_secret(secret_id, project=project)
    check_login_matches(secret, image)
    return {"secret": secret.pk, "version": secret.version}


def newest_pull_secret(lease: Lease) -> dict[str, Any]:
    """Return the newest version of a lease's login: started again, it gets a replaced one."""
    if not lease.pull_secret:
        return {}
    secret = find_registry_secret(lease.pull_secret["secret"], project=lease.project)
    return {"secret": secret.pk, "version": secret.version}


def read_login(lease: Lease) -> tuple[RegistryLogin | None, str]:
    """Return a lease's login with its password, and why that is missing.

    Runs in the tenant's row-level security scope: no other role may read encrypted values.
    """
    unread = unread_login(lease)
    if unread is None:
        return None, ""
    stored = SecretVersion.objects.filter(secret=unread.secret_id, version=unread.version).select_related("secret")
    found = stored.first()
    if found is None:
        return unread, "the login of its registry was deleted"
    try:
        value = open_value(bytes(found.sealed), secret_id=unread.secret_id, version=unread.version)
    except SecretUnreadable as error:
        return unread, f"the login of its registry cannot be read: {error}"
    login = json.loads(value)
    read = RegistryLogin(unread.secret_id, unread.version, found.secret.registry, login["username"], login["password"])
    return read, ""


def unread_login(lease: Lease) -> RegistryLogin | None:
    """Return a lease's login without its password."""
    pinned = lease.pull_secret
    return RegistryLogin(pinned["secret"], pinned["version"]) if pinned else None


def _login_value(username: str, password: str) -> str:
    password = normalize_password(username, password)
    if fault := login_fault(username, password):
        raise InvalidValue(fault.field, fault.text, fix=fault.fix)
    return json.dumps({"username": username, "password": password})
