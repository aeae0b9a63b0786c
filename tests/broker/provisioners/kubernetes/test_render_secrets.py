"""Saved secrets in rendered objects: in the lease's Secret only, referred to by pods."""

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any

import kubernetes_validate

from broker.domain.workloads.secret_variables import SecretVariable
from broker.domain.workloads.templates import Workload
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects, spec_hash
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from tests.broker.provisioners.kubernetes.lease_specs import KEY, LEASE, PLUGIN, kinds, of_kind, pods
from tests.broker.provisioners.kubernetes.restricted_standard import violations

VALUE = "hf_$(HOME)_line one\nline two"
SECRETS = (SecretVariable("HF_TOKEN", "sec_1", 2, VALUE), SecretVariable("token", "sec_2", 1, "other"))


def with_secrets(template: str = "ssh", secrets: tuple[SecretVariable, ...] = SECRETS, **more: Any) -> LeaseSpec:
    keys = (KEY,) if template == "ssh" else ()
    return replace(LEASE, workload=Workload(template, ssh_keys=keys, secrets=secrets, **more))


def rendered(lease: LeaseSpec) -> list[dict[str, Any]]:
    return lease_objects(lease, PLUGIN, anchor_uid="u-anchor")


def test_a_secrets_value_is_in_the_leases_secret_beside_its_keys() -> None:
    (secret,) = of_kind(rendered(with_secrets()), "Secret")
    assert {name: b64decode(text).decode() for name, text in secret["data"].items()} == {
        "authorized_keys": f"{KEY}\n",
        "env.HF_TOKEN": VALUE,
        "env.token": "other",
    }
    assert secret["immutable"] is True
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "u-anchor"


def test_a_pod_refers_to_the_secret_and_does_not_contain_its_value() -> None:
    objects = rendered(with_secrets("jupyter", env=(("MODE", "train"),)))
    (secret,) = of_kind(objects, "Secret")
    (pod,) = pods(objects)
    env = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
    reference = {"key": "env.HF_TOKEN", "name": secret["metadata"]["name"]}
    assert env["HF_TOKEN"] == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    assert env["JUPYTER_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "token"
    assert env["MODE"] == {"name": "MODE", "value": "train"}
    others = json.dumps([each for each in objects if each["kind"] != "Secret"])
    assert "line one" not in others
    assert b64encode(VALUE.encode()).decode() not in others


def test_the_stored_digest_names_versions_and_not_values() -> None:
    lease = with_secrets()
    (first, second) = SECRETS
    other_value = with_secrets(secrets=(replace(first, value="guess"), second))
    other_version = with_secrets(secrets=(replace(first, version=3), second))
    assert spec_hash(other_value, PLUGIN) == spec_hash(lease, PLUGIN) != spec_hash(other_version, PLUGIN)
    assert "line one" not in json.dumps(anchor(lease, PLUGIN))


def test_without_its_values_the_secret_in_the_cluster_is_left_alone() -> None:
    unread = with_secrets(secrets=tuple(replace(each, value=None) for each in SECRETS))
    assert "Secret" not in kinds(rendered(unread))
    assert spec_hash(unread, PLUGIN) == spec_hash(with_secrets(), PLUGIN)
    assert pods(rendered(unread)) == pods(rendered(with_secrets()))


def test_objects_with_secrets_match_the_api_schema_and_the_restricted_standard() -> None:
    objects = rendered(with_secrets("batch"))
    for each in objects:
        kubernetes_validate.validate(each, "1.34", strict=True)
    assert [violations(pod) for pod in pods(objects)] == [[]]
