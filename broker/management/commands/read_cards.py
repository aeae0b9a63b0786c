"""`manage.py read_cards`: ask the cards of this node what they can be cut into, and hold it to what we know."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from broker.domain.card_reports import CardReport, differences, entry, known_as
from broker.domain.gpu_models import load_models
from broker.services.catalogue import GEOMETRY
from broker.telemetry import nvml


class Command(BaseCommand):
    help = (
        "Ask NVML what the cards of this node can be cut into. Prints what GPUBROKER_GPU_MODELS takes: what it says"
        " now, and what these cards have beside. Says on stderr in what they are other than known, and fails where they"
        " are. Changes nothing."
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
        document, said = settings.GPU_MODELS, list[str]()
        for index, report in enumerate(reports):
            its = f"card {index}, {report.product} {report.pci}"
            try:
                document, other = _with(document, report)
            except ValueError as error:
                raise CommandError(f"{its} cannot be taken as it is: {error}") from error
            said += [f"{its}: {each}" for each in other]
        if document:
            self.stdout.write(document)
        if said:
            raise CommandError("\n".join(said))
        self.stderr.write(f"{len(reports)} cards are as they are known")


def _with(document: str, report: CardReport) -> tuple[str, list[str]]:
    """Return the setting with what a card has beside, and in what the card is other than known."""
    known = known_as(report, load_models(GEOMETRY.read_text(), document))
    other = ["no model we know"] if known is None else list(differences(report, known))
    if not other:
        return document, []
    mine = entry(report, known)
    others = [each for each in _entries(document) if each["name"] != mine["name"]]
    wider = json.dumps({"models": [*others, mine]}, indent=1)
    made = load_models(GEOMETRY.read_text(), wider)
    return (document if known in made else wider), other  # a card that has less changes nothing


def _entries(document: str) -> list[dict[str, Any]]:
    return list(json.loads(document)["models"]) if document else []
