"""Everything one generation of a lease is in a cluster: the anchor first, which owns the rest and takes it along."""

import hashlib
import json
from base64 import b64encode
from datetime import UTC, datetime

from broker.domain.workloads import KEYS_AT, TOKEN, Program, program
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.controllers import controllers
from broker.provisioners.kubernetes.render.doors import doors
from broker.provisioners.kubernetes.render.pod import needs_secret
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest, VolumeSpec

# Whatever makes pods comes last: once there is a pod, all that it needs is there, and nobody looks for more.
FIRST = (
    "PersistentVolumeClaim",
    "Secret",
    "ResourceClaim",
    "NetworkPolicy",
    "Service",
    "HTTPRoute",
    "Ingress",
)


def namespace_of(lease: LeaseSpec) -> str:
    return names.namespace(lease.project.project_id, lease.project.slug)


def anchor(lease: LeaseSpec, driver: SliceDriver) -> Manifest:
    """Return the ConfigMap that owns every object of this generation."""
    metadata: Manifest = {
        "annotations": {
            labels.PAID_UNTIL: stamp(lease.paid_until),
            labels.SPEC_HASH: spec_hash(lease, driver),
        },
        "labels": {**labels.of_lease(lease), labels.ROLE: labels.ANCHOR_ROLE},
        "name": names.anchor(lease.lease_id, lease.generation),
        "namespace": namespace_of(lease),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def lease_objects(lease: LeaseSpec, driver: SliceDriver, *, anchor_uid: str) -> list[Manifest]:
    """Return what hangs on the anchor, in the order it is applied; the same lease always gives the same."""
    owner = {
        "apiVersion": "v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "ConfigMap",
        "name": names.anchor(lease.lease_id, lease.generation),
        "uid": anchor_uid,
    }
    found = _owned(lease, driver)
    for each in found:
        each["metadata"]["namespace"] = namespace_of(lease)
        each["metadata"]["labels"] = labels.of_lease(lease)
        each["metadata"]["ownerReferences"] = [owner]
    found += [_volume_claim(lease, volume) for volume in lease.volumes]  # outlives the anchor
    return sorted(found, key=_order)


def spec_hash(lease: LeaseSpec, driver: SliceDriver) -> str:
    """Return a short digest of all that is rendered: when it changes, something must be applied again."""
    text = json.dumps(lease_objects(lease, driver, anchor_uid=""), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stamp(moment: datetime) -> str:
    """Write a moment so that moments sort as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _owned(lease: LeaseSpec, driver: SliceDriver) -> list[Manifest]:
    runs = program(lease.workload)
    found = controllers(lease, runs, driver) + doors(lease, runs) + driver.claims(lease)
    return [*found, _secret(lease, runs)] if needs_secret(lease, runs) else found


def _order(manifest: Manifest) -> tuple[bool, str, str]:
    """What a pod refers to comes before what makes pods."""
    return manifest["kind"] not in FIRST, manifest["kind"], manifest["metadata"]["name"]


def _secret(lease: LeaseSpec, runs: Program) -> Manifest:
    values = {}
    if runs.ssh_keys:
        values[KEYS_AT] = "".join(f"{key}\n" for key in runs.ssh_keys)
    if runs.template.token_env and lease.access_token:
        values[TOKEN] = lease.access_token
    return {
        "apiVersion": "v1",
        "data": {name: b64encode(text.encode()).decode() for name, text in sorted(values.items())},
        "immutable": True,
        "kind": "Secret",
        "metadata": {"name": names.keys(lease.lease_id, lease.generation)},
        "type": "Opaque",
    }


def _volume_claim(lease: LeaseSpec, volume: VolumeSpec) -> Manifest:
    # Of one pod and not of one node: a cluster set back to an older state brings back pods that had the volume.
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
            "labels": {**labels.of_project(lease.project), labels.VOLUME: volume.volume_id},
            "name": names.volume(volume.volume_id),
            "namespace": namespace_of(lease),
        },
        "spec": spec,
    }
