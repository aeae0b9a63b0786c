"""Gateways that kill their caller before or after the charge."""

import os
import signal
from datetime import datetime

from billing.gateways.simulated import SimulatedGateway
from ports.payments import GatewayCharge, GatewayOutcome


class KillsBefore(SimulatedGateway):
    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


class KillsAfter(SimulatedGateway):
    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        super().charge(charge, now=now)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")
