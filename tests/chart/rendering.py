"""Rendering of the chart by the real Helm."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import binaries

CHART = Path(__file__).resolve().parents[2] / "deploy" / "chart"
ADDRESS = {"publicUrl": "https://gpus.example.com"}
# Everything that may be switched on.
FULL: dict[str, Any] = {
    **ADDRESS,
    "allowedHosts": ["gpus.internal"],
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["puller"]},
    "secrets": {
        "application": {"keys": {"metricsToken": "metrics-token"}},
        "ca": {"name": "our-ca"},
        "extra": [{"name": "mail", "key": "url", "setting": "MAIL_URL"}],
    },
    "settings": {
        "DEFAULT_TENANT_QUOTA_UNITS": 1000000,
        "CURRENCY": "CHF",
        "MAIL_FROM": "no-reply@gpus.example.com",
        "LEASE_GATES": ["broker.services.quotas.gate"],
    },
    "web": {"autoscaling": {"enabled": True}},
    "agent": {"clusters": ["north", "south"]},
    "cluster": {"leases": True},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "tlsSecret": "certificate",
        "annotations": {"example.com/a": "b"},
        "proxies": 2,
    },
    "networkPolicy": {
        "database": {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "port": 6432},
        "extraEgress": [{"ports": [{"port": 587, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podAnnotations": {"example.com/c": "d"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "system-cluster-critical",
}

Object = dict[str, Any]


class Refused(Exception):
    """Refusal of values by Helm, with its message."""


def helm(*arguments: str, values: Object | None = None, env: dict[str, str] | None = None) -> str:
    """Run Helm with values on its standard input, and return its output."""
    program = binaries.find_binary("helm")
    assert program, "no Helm: make controlplane builds it"
    command = [str(program), *arguments, *(["--values", "-"] if values is not None else [])]
    done = subprocess.run(command, input=json.dumps(values or {}), capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def text(values: Object, *, release: str = "gpubroker", namespace: str = "gpus") -> str:
    """Render the chart as Helm prints it."""
    return helm("template", release, str(CHART), "--namespace", namespace, values=values)


def objects(values: Object, *, release: str = "gpubroker") -> list[Object]:
    """Render the chart as objects."""
    return [item for item in yaml.safe_load_all(text(values, release=release)) if item]


def pods(found: list[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the name and template of every pod among some objects."""
    for item in found:
        if item["kind"] in ("Deployment", "Job"):
            yield item["metadata"]["name"], item["spec"]["template"]


def named(found: list[Object], kind: str, name: str) -> Object:
    """Return the one object of a kind and name."""
    [item] = [item for item in found if item["kind"] == kind and item["metadata"]["name"] == name]
    return item


def secret_files(pod: Object) -> dict[str, tuple[str, str]]:
    """Return which key of which Secret a pod finds in which file."""
    [volume] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "secrets"]
    return {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }
