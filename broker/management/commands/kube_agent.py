"""`manage.py kube_agent <cluster>`: follow one Kubernetes cluster. A second one waits until the first is gone."""

import signal
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker.models import Cluster
from broker.services.following import Agent, lead
from ports import clock

log = structlog.get_logger(__name__)
WAIT_S = 2.0


class Command(BaseCommand):
    help = "Follow one Kubernetes cluster until told to stop."
    going = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name or id")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = _named(options["cluster"])
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        while self.going and not lead(cluster):
            clock.sleep(WAIT_S)
        if self.going:
            log.info("following", cluster=cluster.name)
            Agent(cluster).follow(lambda: self.going)

    def _stop(self, *_: Any) -> None:
        self.going = False


def _named(text: str) -> Cluster:
    ours = Cluster.objects.filter(provisioner="kubernetes")
    cluster = ours.filter(name=text).first() or ours.filter(pk=text).first()
    if cluster is None:
        known = ", ".join(ours.order_by("name").values_list("name", flat=True)) or "none has joined yet"
        raise CommandError(f"No Kubernetes cluster is called {text!r}; known: {known}.")
    return cluster
