"""What the chart takes from the code: `python -m deploy.chart_files` writes it, a test compares it.

The list of settings in values.schema.json, so that a misspelt one is refused before anything is installed; and what
a cluster is given once before leases may run in it: the broker's rights, ranks, policies, the dead man's switch.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from broker.domain.gpu_models import load_models
from broker.provisioners.kubernetes.drivers.choosing import DRIVERS, driver_named
from broker.provisioners.kubernetes.render.cluster import NAME, cluster_objects

CHART = Path(__file__).resolve().parent / "chart"
GEOMETRY = Path(__file__).resolve().parent.parent / "broker" / "mig_geometry.json"
SCHEMA, FILES = CHART / "values.schema.json", CHART / "files"
GENERATED = "# Written by python -m deploy.chart_files from broker/provisioners/kubernetes/render.\n"
IMAGE, NAMESPACE = '{{ include "gpubroker.image" . }}', "{{ .Release.Namespace }}"
ACCOUNT = '{{ include "gpubroker.account" . }}'
# The chart sets these itself, or they have no place in production.
CHARTS_OWN = {"PUBLIC_URL", "EVENTS_URL", "ALLOWED_HOSTS", "DATA_DIR", "PROXIES", "DEBUG"}
# Addresses that hold a password: given as Secrets, like everything that is declared secret.
WITH_PASSWORD = {"BROKER_URL", "MAIL_URL"}


def settings() -> dict[str, Any]:
    """Describe every setting that may stand among the chart's values, in JSON Schema."""
    # Whoever reads the settings' module needs those without a default; nothing here looks at their values.
    os.environ.setdefault("GPUBROKER_SECRET_KEY", "unused")
    os.environ.setdefault("GPUBROKER_DATABASE_URL", "postgresql:///unused")
    from config.operator import Operator

    kept = ("type", "items", "pattern", "minimum", "maximum", "exclusiveMinimum", "description")
    return {
        name: {key: value for key, value in field.items() if key in kept}
        for name, field in sorted(
            (name.upper(), field) for name, field in Operator.model_json_schema()["properties"].items()
        )
        if not is_secret(field) and name not in CHARTS_OWN | WITH_PASSWORD
    }


def is_secret(field: dict[str, Any]) -> bool:
    """Tell whether a setting was declared secret, or may be one."""
    return any(form.get("format") == "password" for form in [field, *field.get("anyOf", [])])


def with_settings(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the settings as the code declares them now."""
    schema["properties"]["settings"]["properties"] = settings()
    return schema


def files() -> dict[str, str]:
    """Return what lies in the chart's files/, by name; what Helm fills in stands there in its own language."""
    models = load_models(GEOMETRY.read_text())  # each of their slices has a class where slices are claimed
    given = {
        driver: cluster_objects(driver_named(driver, {}, models), image=IMAGE, namespace=NAMESPACE)
        for driver in sorted(DRIVERS)
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
    """Tell what the chart makes itself, under the release's names: namespace, the broker's account and rights."""
    return item["kind"] == "Namespace" or item["metadata"]["name"] == NAME


def for_our_account(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let what is bound to the broker's account be bound to the one that the release calls so."""
    if item["kind"] != "ClusterRoleBinding":
        return item
    subjects = [{**who, "name": ACCOUNT} if who["name"] == NAME else who for who in item["subjects"]]
    return {**item, "subjects": subjects}


def main() -> None:
    """Bring the chart's generated parts up to date."""
    FILES.mkdir(exist_ok=True)
    for old in FILES.iterdir():
        old.unlink()
    for name, text in files().items():
        (FILES / name).write_text(text)
    schema = with_settings(json.loads(SCHEMA.read_text()))
    SCHEMA.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
