"""`manage.py read_gpus`: compare the MIG profiles of this node's GPUs with the known models."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from broker.domain.geometry.gpu_models import load_models
from broker.domain.geometry.gpu_reports import GpuReport, geometry_entry, known_model, model_differences
from broker.services.inventory.gpu_catalogue import GEOMETRY_FILE
from broker.telemetry import nvml


class Command(BaseCommand):
    help = (
        "Read the MIG profiles of this node's GPUs from NVML. Prints a value for GPUBROKER_EXTRA_GPU_MODELS: the"
        " current value extended by these GPUs. Prints differences from the known models on stderr and fails if there"
        " are any. Changes nothing."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reports = nvml.read_gpus()
        except nvml.NvmlUnavailable as error:
            raise CommandError(
                f"NVML is not available: {error}. Run this on a node with NVIDIA's driver, as root or in a container"
                " with a GPU."
            ) from error
        document, problems = settings.EXTRA_GPU_MODELS, list[str]()
        for index, report in enumerate(reports):
            gpu_label = f"GPU {index}, {report.product} {report.pci_device_id}"
            try:
                document, differences = _extend_document(document, report)
            except ValueError as error:
                raise CommandError(f"{gpu_label} cannot be used: {error}") from error
            problems += [f"{gpu_label}: {each}" for each in differences]
        if document:
            self.stdout.write(document)
        if problems:
            raise CommandError("\n".join(problems))
        self.stderr.write(f"{len(reports)} GPUs match the known models")


def _extend_document(document: str, report: GpuReport) -> tuple[str, list[str]]:
    """Return the setting extended by a GPU's profiles, and the GPU's differences."""
    known = known_model(report, load_models(GEOMETRY_FILE.read_text(), document))
    differences = ["unknown model"] if known is None else list(model_differences(report, known))
    if not differences:
        return document, []
    entry = geometry_entry(report, known)
    other_entries = [each for each in _entries(document) if each["name"] != entry["name"]]
    extended = json.dumps({"models": [*other_entries, entry]}, indent=1)
    models = load_models(GEOMETRY_FILE.read_text(), extended)
    return (document if known in models else extended), differences  # a GPU that offers less changes nothing


def _entries(document: str) -> list[dict[str, Any]]:
    return list(json.loads(document)["models"]) if document else []
