"""Gateways whose caller is killed by the operating system: before the charge, and after it."""

import os
import signal
from datetime import datetime

from billing.gateways.simulated import SimulatedGateway
from ports.payments import Charge, Outcome


class KillsBefore(SimulatedGateway):
    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


class KillsAfter(SimulatedGateway):
    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        super().charge(charge, now=now)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")
