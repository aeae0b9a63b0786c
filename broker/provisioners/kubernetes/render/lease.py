"""All objects of one lease generation; the anchor owns the others.

Deleting the anchor deletes them.
"""

import hashlib
import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime

from broker.domain.workloads.registry_logins import RegistryLogin, docker_config
from broker.domain.workloads.templates import SSH_KEYS_FILE, TOKEN_KEY, ContainerProgram, build_program
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.controllers import lease_controllers
from broker.provisioners.kubernetes.render.ingress import ingress_objects
from broker.provisioners.kubernetes.render.pod import needs_secret, secret_key
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, VolumeSpec

# Controllers come last: once a pod exists, everything it needs exists too.
BEFORE_PODS = ("PersistentVolumeClaim", "Secret", "ResourceClaim", "NetworkPolicy", "Service", "HTTPRoute", "Ingress")


def namespace_of(lease: LeaseSpec) -> str:
    return names.namespace_name(lease.project.project_id, lease.project.slug)


def anchor(lease: LeaseSpec, driver: SliceDriver) -> Manifest:
    """Return the ConfigMap that owns every object of this generation."""
    metadata: Manifest = {
        "annotations": {labels.PAID_UNTIL: format_time(lease.paid_until), labels.SPEC_HASH: spec_hash(lease, driver)},
        "labels": {**labels.lease_labels(lease), labels.ROLE: labels.ANCHOR_ROLE},
        "name": names.anchor_name(lease.lease_id, lease.generation),
        "namespace": namespace_of(lease),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def lease_objects(lease: LeaseSpec, driver: SliceDriver, *, anchor_uid: str) -> list[Manifest]:
    """Return the anchor's children in the order of application.

    The same lease always gives the same objects. Without the values of its saved secrets, a Secret is left out:
    the one in the cluster stays as it is.
    """
    owner = {
        "apiVersion": "v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "ConfigMap",
        "name": names.anchor_name(lease.lease_id, lease.generation),
        "uid": anchor_uid,
    }
    found = _owned_objects(lease, driver)
    for each in found:
        each["metadata"]["namespace"] = namespace_of(lease)
        each["metadata"]["labels"] = labels.lease_labels(lease)
        each["metadata"]["ownerReferences"] = [owner]
    found += [_volume_claim(lease, volume) for volume in lease.volumes]  # outlives the anchor
    return sorted(found, key=_apply_order)


def spec_hash(lease: LeaseSpec, driver: SliceDriver) -> str:
    """Return a short digest of everything rendered.

    When it changes, something must be applied again. It is stored, so it is computed from the versions of
    secrets, not from their values.
    """
    named = tuple(replace(each, value=f"{each.secret_id}:{each.version}") for each in lease.workload.secrets)
    login = lease.workload.pull_secret
    login = replace(login, password=f"{login.secret_id}:{login.version}", server="", username="") if login else None
    lease = replace(lease, workload=replace(lease.workload, secrets=named, pull_secret=login))
    text = json.dumps(lease_objects(lease, driver, anchor_uid=""), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def format_time(moment: datetime) -> str:
    """Format a time so that times sort as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _owned_objects(lease: LeaseSpec, driver: SliceDriver) -> list[Manifest]:
    runs = build_program(lease.workload)
    found = lease_controllers(lease, runs, driver) + ingress_objects(lease, runs) + driver.extra_objects(lease)
    if needs_secret(lease, runs) and all(each.value is not None for each in runs.secrets):
        found.append(_secret(lease, runs))
    if lease.workload.pull_secret and lease.workload.pull_secret.readable:
        found.append(_pull_secret(lease, lease.workload.pull_secret))
    return found


def _apply_order(manifest: Manifest) -> tuple[bool, str, str]:
    """Return the sort key that puts what a pod refers to before its controller."""
    return manifest["kind"] not in BEFORE_PODS, manifest["kind"], manifest["metadata"]["name"]


def _secret(lease: LeaseSpec, runs: ContainerProgram) -> Manifest:
    values = {}
    if runs.ssh_keys:
        values[SSH_KEYS_FILE] = "".join(f"{key}\n" for key in runs.ssh_keys)
    if runs.template.token_env and lease.access_token:
        values[TOKEN_KEY] = lease.access_token
    values |= {secret_key(each.name): each.value or "" for each in runs.secrets}
    return {
        "apiVersion": "v1",
        "data": {name: b64encode(text.encode()).decode() for name, text in sorted(values.items())},
        "immutable": True,
        "kind": "Secret",
        "metadata": {"name": names.secret_name(lease.lease_id, lease.generation)},
        "type": "Opaque",
    }


def _pull_secret(lease: LeaseSpec, login: RegistryLogin) -> Manifest:
    config = b64encode(docker_config(login).encode()).decode()
    return {
        "apiVersion": "v1",
        "data": {".dockerconfigjson": config},
        "immutable": True,
        "kind": "Secret",
        "metadata": {"name": names.pull_secret_name(lease.lease_id, lease.generation)},
        "type": "kubernetes.io/dockerconfigjson",
    }


def _volume_claim(lease: LeaseSpec, volume: VolumeSpec) -> Manifest:
    # One pod, not one node: a cluster restored to an older state brings back pods that used the volume.
    spec: Manifest = {
        "accessModes": ["ReadWriteMany" if volume.shared else "ReadWriteOncePod"],
        "resources": {"requests": {"storage": f"{volume.size_gib}Gi"}},
    }
    if volume.storage_class:
        spec["storageClassName"] = volume.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "labels": {**labels.project_labels(lease.project), labels.VOLUME: volume.volume_id},
            "name": names.volume_name(volume.volume_id),
            "namespace": namespace_of(lease),
        },
        "spec": spec,
    }
