"""Generator of the chart's files that follow from the code.

`python -m deploy.chart_files` writes them, and a test compares them. They are the list of settings in
values.schema.json, so that a misspelt one is refused before anything is installed; and what a cluster needs once
before leases may run in it: the broker's RBAC rules, priority classes, admission policies and the reaper
that removes leases without a heartbeat.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from broker.domain.geometry.gpu_models import load_models
from broker.provisioners.kubernetes.drivers.driver_registry import CLUSTER_DRIVERS, create_driver
from broker.provisioners.kubernetes.render.cluster import NAME, cluster_objects

CHART = Path(__file__).resolve().parent / "chart"
GEOMETRY = Path(__file__).resolve().parent.parent / "broker" / "mig_geometry.json"
SCHEMA, FILES = CHART / "values.schema.json", CHART / "files"
GENERATED = "# Written by python -m deploy.chart_files from broker/provisioners/kubernetes/render.\n"
IMAGE, NAMESPACE = '{{ include "gpubroker.image" . }}', "{{ .Release.Namespace }}"
ACCOUNT = '{{ include "gpubroker.account" . }}'
# Set by the chart itself, or not for production.
CHARTS_OWN = {
    "PUBLIC_URL",
    "EVENTS_UPSTREAM",
    "ALLOWED_HOSTS",
    "DATA_DIR",
    "TRUSTED_PROXY_COUNT",
    "DEBUG",
    "LOCAL_MAIL",
}
# URLs with a password: passed as Secrets, like every secret setting.
WITH_PASSWORD = {"BROKER_URL", "MAIL_URL"}


def settings() -> dict[str, Any]:
    """Return the JSON Schema of every setting that may be among the chart's values."""
    # Importing the settings requires values without a default; they are not used here.
    os.environ.setdefault("GPUBROKER_SECRET_KEY", "unused")
    os.environ.setdefault("GPUBROKER_DATABASE_URL", "postgresql:///unused")
    from config.env import EnvironmentSettings

    kept = ("type", "items", "pattern", "minimum", "maximum", "exclusiveMinimum", "description")
    return {
        name: {key: value for key, value in field.items() if key in kept}
        for name, field in sorted(
            (name.upper(), field) for name, field in EnvironmentSettings.model_json_schema()["properties"].items()
        )
        if not is_secret(field) and name not in CHARTS_OWN | WITH_PASSWORD
    }


def is_secret(field: dict[str, Any]) -> bool:
    """Return whether a setting is, or may be, a secret."""
    return any(form.get("format") == "password" for form in [field, *field.get("anyOf", [])])


def with_settings(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the settings as the code declares them."""
    schema["properties"]["settings"]["properties"] = settings()
    return schema


def files() -> dict[str, str]:
    """Return the texts of the chart's files/, by name, with Helm's template expressions."""
    models = load_models(GEOMETRY.read_text())  # with ResourceClaims each of their slices has a device class
    given = {
        driver: cluster_objects(create_driver(driver, {}, models), image=IMAGE, namespace=NAMESPACE)
        for driver in sorted(CLUSTER_DRIVERS)
    }
    first, *others = given.values()
    [role] = [item for item in first if is_own(item) and item["kind"] == "ClusterRole"]
    shared = [item for item in first if all(item in other for other in others)]
    found: dict[str, list[Any]] = {
        "rules": [role["rules"]],
        "cluster": [for_our_account(item) for item in shared if not is_own(item)],
    }
    for driver, items in given.items():
        found[f"cluster-{driver}"] = [item for item in items if item not in shared]
    return {
        f"{name}.yaml": GENERATED + yaml.safe_dump_all(items, width=110, allow_unicode=True)
        for name, items in found.items()
    }


def is_own(item: Mapping[str, Any]) -> bool:
    """Return whether the chart creates an object itself, under the release's names.

    These are the namespace, and the broker's service account and RBAC rules.
    """
    name = item["metadata"]["name"]
    return name == NAME or (item["kind"] == "Namespace" and name == NAMESPACE)


def for_our_account(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bind the broker's role bindings to the release's service account."""
    if item["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
        return item
    subjects = [{**who, "name": ACCOUNT} if who["name"] == NAME else who for who in item["subjects"]]
    return {**item, "subjects": subjects}


def main() -> None:
    """Regenerate the chart's generated files."""
    FILES.mkdir(exist_ok=True)
    for old in FILES.iterdir():
        old.unlink()
    for name, text in files().items():
        (FILES / name).write_text(text)
    schema = with_settings(json.loads(SCHEMA.read_text()))
    SCHEMA.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
