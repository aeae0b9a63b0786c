"""Operators press twice and hints come twice: a cluster that two workers plan at one moment has one plan."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import connections

from broker.models import Cluster, MovePlan
from broker.services.moving import proposing
from tests.broker.services.movers import apart
from tests.database import OwnDatabase
from tests.world import alive, cards, home


def test_two_who_plan_a_cluster_at_once_agree_on_one_plan(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, write = threading.Barrier(2), proposing._write

    def together(*plan: Any) -> MovePlan:
        with suppress(threading.BrokenBarrierError):  # where one has to wait for the other before
            both.wait(0.5)
        return write(*plan)

    monkeypatch.setattr(proposing, "_write", together)
    with alive() as life:
        cards(2)
        apart(life, home("Kestrel"), home("Merlin"), movable=True)
        cluster = Cluster.objects.get().pk

        def plan(_: int) -> list[str]:
            try:
                return [each.pk for each in proposing.propose(cluster, now=life.now)]
            finally:
                connections.close_all()

        with ThreadPoolExecutor(2) as workers:
            one, other = workers.map(plan, range(2))
    assert one == other == list(MovePlan.objects.values_list("pk", flat=True))
