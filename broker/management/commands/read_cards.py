"""`manage.py read_cards`: ask the cards of this node what they can be cut into, and hold it to what we know."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker.domain.card_reports import differences, entry, known_as
from broker.services.catalogue import specs
from broker.telemetry import nvml


class Command(BaseCommand):
    help = (
        "Ask NVML what the cards of this node can be cut into. Prints what GPUBROKER_GPU_MODELS takes, and on stderr in"
        " what it is another than what is known; fails where it is. Changes nothing."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reports = nvml.read()
        except nvml.NoCards as error:
            raise CommandError(
                f"NVML cannot be asked here: {error}. Run it on a node with NVIDIA's driver, as root or in a container"
                " that is given a GPU."
            ) from error
        models = specs().values()
        found: dict[str, dict[str, Any]] = {}
        said: list[str] = []
        for index, report in enumerate(reports):
            known = known_as(report, models)
            its = f"card {index}, {report.product} {report.pci}"
            try:
                mine = entry(report, known)
            except ValueError as error:
                raise CommandError(f"{its}: {error}") from error
            found[mine["name"]] = mine
            if known is None:
                said.append(f"{its}: no model we know")
            else:
                said += [f"{its}: {each}" for each in differences(report, known)]
        self.stdout.write(json.dumps({"models": list(found.values())}, indent=1))
        if said:
            raise CommandError("\n".join(said))
        self.stderr.write(f"{len(reports)} cards are as they are known")
