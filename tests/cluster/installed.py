"""A rendered project on a real control plane."""

import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Any

from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.cluster import cluster_objects
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import LeaseSpec, ProjectSpec
from tests.broker.provisioners.kubernetes.lease_specs import PROJECT
from tests.controlplane.api import Api, Object, Refused

UNSERVED = {"HTTPRoute"}  # needs definitions that a cluster without a gateway does not have


def some_id(prefix: str) -> str:
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    return f"{prefix}_" + "".join(secrets.choice(letters) for _ in range(26))


def install(api: Api, driver: SliceDriver) -> None:
    """Install the cluster-wide objects as an administrator."""
    for each in cluster_objects(driver, image="gpubroker:1"):
        api.apply(each, manager="gpubroker-install")


def open_project(api: Api, driver: SliceDriver, **changes: Any) -> ProjectSpec:
    """Create the objects of a new project."""
    project = replace(PROJECT, project_id=some_id("prj"), **changes)
    for each in project_objects(project, driver):
        api.apply(each, manager="gpubroker-project")
    return project


def make(api: Api, driver: SliceDriver, lease: LeaseSpec) -> list[Object]:
    """Apply a lease, the anchor first, and return the stored objects."""
    owner = api.apply(anchor(lease, driver), manager="gpubroker-lease")
    rest = lease_objects(lease, driver, anchor_uid=owner["metadata"]["uid"])
    served = [each for each in rest if each["kind"] not in UNSERVED]
    return [owner, *(api.apply(each, manager="gpubroker-lease") for each in served)]


def close(api: Api, marks: str) -> None:
    """Delete namespaces with these labels, and their leftover pods."""
    for space in api.items("/api/v1/namespaces", labelSelector=marks):
        name = space["metadata"]["name"]
        api.delete(f"/api/v1/namespaces/{name}")
        for pod in api.items(f"/api/v1/namespaces/{name}/pods"):
            with suppress(Refused):
                where = f"/api/v1/namespaces/{name}/pods/{pod['metadata']['name']}"
                api.patch(where, {"metadata": {"finalizers": None}})
