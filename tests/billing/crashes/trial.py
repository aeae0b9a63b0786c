"""One death in the middle of an invoice run, and what is there before and after somebody runs it again."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from django.db import connections

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services import closing, metering
from billing.services.grants import ending
from billing.services.ledger import books
from deploy.embedded import roles
from deploy.embedded.roles import OWNER, WORKER, Server
from ports import doorbell, payments
from tenants.services.walls import as_staff
from tests.billing.crashes.digest import Told, every_id, told
from tests.billing.crashes.dying import dies, killed
from tests.billing.crashes.world import NOW
from tests.database import pointed_at

MODULE = "tests.billing.crashes.trial"


@dataclass(frozen=True)
class Ground:
    """A server, and the database on it that holds the month before its run."""

    server: Server
    template: str

    @contextmanager
    def copied(self, name: str) -> Iterator[str]:
        """Work on a copy of it, where commits are real, and drop it."""
        for alias in connections:
            connections[alias].close()
        roles.clone_database(self.server, name, template=self.template)
        try:
            with pointed_at(name):
                yield name
        finally:
            roles.drop_database(self.server, name)


def invoice_run() -> None:
    """Do what the beat does when the months are over: charge, close, and end what was given for those months."""
    with payments.through(SimulatedGateway()), doorbell.heard_by(lambda *_: None):
        metering.meter(now=NOW)
        closing.close_due(now=NOW)
        ending.lapse_due(now=NOW)


@dataclass(frozen=True)
class Whole:
    """A run that nobody disturbed: what it says to PostgreSQL, what was there before, and what is afterwards."""

    said: list[str]
    ids: frozenset[str]
    lines: Told


def undisturbed(ground: Ground) -> Whole:
    with ground.copied(f"{ground.template}_whole"):
        with as_staff():
            before = every_id()
        with dies(None) as said:
            invoice_run()
        if wrong := faults():
            raise RuntimeError(f"without any death: {wrong}")
        with as_staff():
            return Whole(said, before, told(before))


def broken(ground: Ground, point: int, whole: Whole, *, by_kill: bool = False) -> list[str]:
    """Let the run end before that point, look, run it again, look again; return everything that is wrong."""
    with ground.copied(f"{ground.template}_{point}") as name:
        if by_kill:
            _in_a_child(ground.server, name, point)
        else:
            with dies(point) as said:
                invoice_run()
            if (
                len(said) < point
            ):  # other databases' transactions keep news new, and the whole run looked at it again
                return broken(ground, len(said) - 1, whole)
        wrong = [f"between: {fault}" for fault in faults()]
        invoice_run()
        wrong += faults()
        with as_staff():
            return wrong + _differences(whole.lines, told(whole.ids))


def faults() -> list[str]:
    """Return what may not be at any moment, run or not."""
    wrong = []
    with as_staff():
        numbered = Invoice.objects.exclude(number=None).order_by("series", "number")
        for series, rows in groupby(numbered.values_list("series", "number"), key=lambda row: row[0]):
            numbers = [number for _, number in rows]
            if numbers != list(range(1, len(numbers) + 1)):
                wrong.append(f"series {series} has the numbers {numbers}")
        totals, drifts = books.reckoned()
        wrong += [f"{each.currency}: debits are not credits" for each in totals if not each.balanced]
        wrong += [str(drift) for drift in drifts]
        wrong += [f"{ref} left something on accrued" for ref in books.uncleared()]
        wrong += [f"{what} {subject} is not in the books" for _, what, subject in books.missing()]
    return wrong


def _differences(wanted: Told, found: Told) -> list[str]:
    lost, added = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    wrong = [f"lost: {line}" for line in lost] + [f"new: {line}" for line in added]
    return wrong or (["rows are there twice"] if wanted != found else [])


def _in_a_child(server: Server, name: str, point: int) -> None:
    """Run it in a process of its own, as the worker's login, that is killed there by the operating system."""
    env = os.environ | {
        "GPUBROKER_DATABASE_URL": server.login(WORKER, name),
        "GPUBROKER_OWNER_DATABASE_URL": server.login(OWNER, name),
    }
    work = f"import django; django.setup(); from {MODULE} import run_until; run_until({point})"
    ended = subprocess.run([sys.executable, "-c", work], env=env, timeout=300, check=False).returncode
    if ended != -signal.SIGKILL:
        raise RuntimeError(f"the child was to be killed before point {point}, and ended with {ended}")


def run_until(point: int) -> None:
    with dies(point, by=killed):
        invoice_run()
