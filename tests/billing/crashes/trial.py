"""Invoice run killed at one point, repeated and compared."""

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
from billing.services.funds.grants import grant_expiry
from billing.services.invoicing import metering
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import ledger_balances
from deploy.embedded import roles
from deploy.embedded.roles import OWNER, WORKER, Server
from ports import outbox, payments
from tenants.services.rls import staff_scope
from tests.billing.crashes.crash_month import NOW
from tests.billing.crashes.killed_connections import dies, killed
from tests.billing.crashes.written_rows import RowLines, every_id, read_rows
from tests.database import pointed_at

MODULE = "tests.billing.crashes.trial"


@dataclass(frozen=True)
class CrashDatabase:
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
    """Run the tasks of a month's end: rate, close and expire grants."""
    with payments.using_gateway(SimulatedGateway()), outbox.captured(lambda *_: None):
        metering.run_metering(now=NOW)
        close_month.close_due_months(now=NOW)
        grant_expiry.expire_due_grants(now=NOW)


@dataclass(frozen=True)
class Whole:
    """An undisturbed run: its statements, and the rows before and after."""

    said: list[str]
    ids: frozenset[str]
    lines: RowLines


def run_undisturbed(ground: CrashDatabase) -> Whole:
    with ground.copied(f"{ground.template}_whole"):
        with staff_scope():
            before = every_id()
        with dies(None) as said:
            invoice_run()
        if wrong := faults():
            raise RuntimeError(f"without any death: {wrong}")
        with staff_scope():
            return Whole(said, before, read_rows(before))


def run_with_crash(ground: CrashDatabase, point: int, whole: Whole, *, by_kill: bool = False) -> list[str]:
    """Crash and repeat the run twice; return everything that is wrong."""
    with ground.copied(f"{ground.template}_{point}") as name:
        if by_kill:
            _in_a_child(ground.server, name, point)
        else:
            with dies(point) as said:
                invoice_run()
            if len(said) < point:  # other databases' transactions keep news new, and the whole run looked at it again
                return run_with_crash(ground, len(said) - 1, whole)
        wrong = [f"between: {fault}" for fault in faults()]
        invoice_run()
        wrong += faults()
        with staff_scope():
            return wrong + _differences(whole.lines, read_rows(whole.ids))


def faults() -> list[str]:
    """Return the violated invariants that must hold at any time."""
    wrong = []
    with staff_scope():
        numbered = Invoice.objects.exclude(number=None).order_by("series", "number")
        for series, rows in groupby(numbered.values_list("series", "number"), key=lambda row: row[0]):
            numbers = [number for _, number in rows]
            if numbers != list(range(1, len(numbers) + 1)):
                wrong.append(f"series {series} has the numbers {numbers}")
        totals, drifts = ledger_balances.recomputed_trial_balance()
        wrong += [f"{each.currency}: debits are not credits" for each in totals if not each.balanced]
        wrong += [str(drift) for drift in drifts]
        wrong += [f"{ref} left something on accrued" for ref in ledger_balances.uncleared_invoices()]
        wrong += [f"{what} {subject} is not in the books" for _, what, subject in ledger_balances.missing_events()]
    return wrong


def _differences(wanted: RowLines, found: RowLines) -> list[str]:
    lost, added = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    wrong = [f"lost: {line}" for line in lost] + [f"new: {line}" for line in added]
    return wrong or (["rows are there twice"] if wanted != found else [])


def _in_a_child(server: Server, name: str, point: int) -> None:
    """Run a function as the worker in a process that gets killed."""
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
