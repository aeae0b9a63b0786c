"""`manage.py kube_agent [cluster]`: follow one Kubernetes cluster, or every one that has joined or joins.

A second agent of a cluster waits until the first is gone.
"""

import gc
import signal
from contextlib import closing
from threading import Thread
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, connection
from django.db import OperationalError as DatabaseAway

from broker.models import Cluster
from broker.provisioners.base import Unanswered
from broker.services import catalogue, freezing
from broker.services.following import Agent, lead
from ports import clock
from ports.alive import Sign

log = structlog.get_logger(__name__)
WAIT_S = 2.0


class Command(BaseCommand):
    help = "Follow one Kubernetes cluster, or all of them, until told to stop."
    requires_system_checks = ()  # they load every page there is, and an agent shows none
    going = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", default="", help="its name or id; all, when none is named")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = _named(options["cluster"]) if options["cluster"] else None
        gc.collect()
        gc.freeze()  # what was imported stays for good: no collection need look at it again
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        if cluster:
            self.follow(cluster)
        else:
            self.follow_all()

    def follow_all(self) -> None:
        """Have a thread for every cluster, also for those that join later; one that died is replaced."""
        threads: dict[str, Thread] = {}
        while self.going:
            for cluster in self._joined():
                if cluster.pk not in threads or not threads[cluster.pk].is_alive():
                    threads[cluster.pk] = Thread(target=self.follow, args=(cluster,), daemon=True)
                    threads[cluster.pk].start()
            clock.sleep(WAIT_S)

    def follow(self, cluster: Cluster) -> None:
        """Follow one cluster until stopped; what is away or frozen is waited for."""
        alive = Sign("agent")
        with closing(connection):  # whatever it dies of: else its lead stays with a thread that is no more
            while self.going:
                alive()
                try:
                    self._follow(cluster, alive)
                except (DatabaseAway, InterfaceError, Unanswered) as away:
                    log.warning("agent waits", cluster=cluster.name, because=str(away).strip())
                    connection.close()  # and with it goes the lead
                if self.going:
                    clock.sleep(WAIT_S)

    def _follow(self, cluster: Cluster, alive: Sign) -> None:
        if not freezing.is_frozen(cluster.pk) and lead(cluster):
            log.info("following", cluster=cluster.name)
            catalogue.load_gpu_models()  # a card of a model that was only now set may be there
            Agent(cluster).follow(lambda: self.going, alive)

    def _joined(self) -> list[Cluster]:
        try:
            return list(Cluster.objects.filter(provisioner="kubernetes").order_by("id"))
        except (DatabaseAway, InterfaceError) as away:
            log.warning("agent waits", because=str(away).strip())
            connection.close()
            return []

    def _stop(self, *_: Any) -> None:
        self.going = False


def _named(text: str) -> Cluster:
    ours = Cluster.objects.filter(provisioner="kubernetes")
    cluster = ours.filter(name=text).first() or ours.filter(pk=text).first()
    if cluster is None:
        known = ", ".join(ours.order_by("name").values_list("name", flat=True)) or "none has joined yet"
        raise CommandError(f"No Kubernetes cluster is called {text!r}; known: {known}.")
    return cluster
