"""Secrets of a lease: chosen by id at launch, read when its objects are made.

A lease pins the version of each secret when it is launched or started again, so that its objects in the
cluster never change while it runs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.workloads.secret_variables import MAX_LEASE_BYTES, MAX_VARIABLES, SecretVariable
from broker.models import Lease, Secret, SecretKind, SecretVersion
from broker.services.secrets.secret_encryption import SecretUnreadable, open_value
from tenants.models import Project
from tenants.services.errors import Fix, InvalidValue, ObjectNotFound

PinnedVersions = dict[str, dict[str, Any]]  # as in `Lease.secrets`


def lock_secrets(secret_ids: Iterable[str]) -> None:
    """Lock the secrets of a request until its lease is stored."""
    rows = Secret.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=sorted(set(secret_ids)))
    list(rows.order_by("pk").values_list("pk"))


def pin_secrets(secret_ids: Mapping[str, str], *, project: Project) -> PinnedVersions:
    """Return the newest version of each chosen secret, or raise ProblemError."""
    if not secret_ids:
        return {}
    if len(secret_ids) > MAX_VARIABLES:
        raise InvalidValue(
            "secrets",
            f"{len(secret_ids)} secrets were chosen; the maximum is {MAX_VARIABLES}.",
            fix="Put several values into one secret, for example as JSON.",
        )
    wanted = set(secret_ids.values())
    found = {each.pk: each for each in Secret.objects.filter(pk__in=wanted, project=project)}
    for variable, secret_id in secret_ids.items():
        if secret_id not in found:
            raise ObjectNotFound(
                f"The secret chosen for {variable[:60]!r} does not exist in this project.",
                fix=Fix("Choose one from the list of secrets.", "GET", "/api/v1/secrets"),
            )
        if found[secret_id].kind != SecretKind.VARIABLE:
            raise InvalidValue(
                "secrets",
                f"{found[secret_id].name} is the login of a registry; a variable cannot hold it.",
                fix="Choose it as `pull_secret`.",
            )
    sizes = dict(
        SecretVersion.objects.filter(secret__in=wanted).values_list("secret_id", "size_bytes").order_by("version")
    )  # the newest version comes last
    total = sum(sizes.get(secret_id, 0) for secret_id in secret_ids.values())
    if total > MAX_LEASE_BYTES:
        raise InvalidValue(
            "secrets",
            f"The values of all secrets have {total:,} bytes; the maximum per lease is {MAX_LEASE_BYTES:,}.",
            fix="Choose fewer secrets, or put large files on a volume.",
        )
    return {
        variable: {"secret": secret_id, "version": found[secret_id].version}
        for variable, secret_id in secret_ids.items()
    }


def read_secrets(lease: Lease) -> tuple[tuple[SecretVariable, ...], str]:
    """Return a lease's variables with their values, and why one is missing.

    Runs in the tenant's row-level security scope: no other role may read encrypted values.
    """
    if not lease.secrets:
        return (), ""
    pinned = {name: (each["secret"], each["version"]) for name, each in lease.secrets.items()}
    stored = SecretVersion.objects.filter(secret__in={secret_id for secret_id, _ in pinned.values()})
    sealed = {(each.secret_id, each.version): bytes(each.sealed) for each in stored}
    variables, fault = [], ""
    for name, (secret_id, version) in sorted(pinned.items()):
        value = None
        if (secret_id, version) not in sealed:
            fault = f"the secret of {name} was deleted"
        else:
            try:
                value = open_value(sealed[secret_id, version], secret_id=secret_id, version=version)
            except SecretUnreadable as error:
                fault = f"the secret of {name} cannot be read: {error}"
        variables.append(SecretVariable(name, secret_id, version, value))
    return tuple(variables), fault


def unread_secrets(lease: Lease) -> tuple[SecretVariable, ...]:
    """Return a lease's variables without their values."""
    return tuple(SecretVariable(name, each["secret"], each["version"]) for name, each in sorted(lease.secrets.items()))
