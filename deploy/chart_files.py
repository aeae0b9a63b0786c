"""What the chart takes from the code: `python -m deploy.chart_files` writes it, a test compares it.

The list of settings in values.schema.json, so that a misspelt one is refused before anything is installed; and what
a cluster is given once before leases may run in it: the broker's rights, ranks, policies, the dead man's switch.
"""

import json
import os
from pathlib import Path
from typing import Any

import yaml

from broker.provisioners.kubernetes.drivers.hami import SCHEDULER as HAMI
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.render.admission import policies
from broker.provisioners.kubernetes.render.priorities import priorities
from broker.provisioners.kubernetes.render.reaper import reaper

CHART = Path(__file__).resolve().parent / "chart"
SCHEMA, FILES = CHART / "values.schema.json", CHART / "files"
GENERATED = "# Written by python -m deploy.chart_files from broker/provisioners/kubernetes/render.\n"
IMAGE, NAMESPACE = '{{ include "gpubroker.image" . }}', "{{ .Release.Namespace }}"
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
    found = {
        "rules.yaml": [access.role("any", access.BROKER)["rules"]],
        "priorities.yaml": priorities(),
        "policies.yaml": policies(),
        "policies-hami.yaml": policies((HAMI,)),
        "reaper.yaml": reaper(image=IMAGE, namespace=NAMESPACE),
    }
    return {
        name: GENERATED + yaml.safe_dump_all(items, width=110, allow_unicode=True)
        for name, items in found.items()
    }


def main() -> None:
    """Bring the chart's generated parts up to date."""
    FILES.mkdir(exist_ok=True)
    for name, text in files().items():
        (FILES / name).write_text(text)
    schema = with_settings(json.loads(SCHEMA.read_text()))
    SCHEMA.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
