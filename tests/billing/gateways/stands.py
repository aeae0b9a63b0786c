"""Gateways on a test stand: what a test must know of each beside what they all promise. A real one joins STANDS."""

from datetime import UTC, datetime
from typing import Protocol

from billing.gateways.simulated import Ill, SimulatedGateway, suffer
from billing.models import SimulatedCharge
from ports.payments import Gateway

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


class Stand(Protocol):
    """A gateway, with a hand on what goes wrong and an eye on its books."""

    gateway: Gateway

    def suffer(self, payer: str, *ills: str) -> None:
        """Let the next attempts meet declined, lost, unreachable, slow or rejected, in this order."""

    def taken(self) -> dict[str, tuple[int, str]]:
        """Return what the gateway has taken, by key."""


class Simulated:
    gateway = SimulatedGateway()

    def suffer(self, payer: str, *ills: str) -> None:
        suffer(payer, *(Ill(ill) for ill in ills))

    def taken(self) -> dict[str, tuple[int, str]]:
        rows = SimulatedCharge.objects.filter(declined=False)
        return {row.key: (row.minor, row.currency) for row in rows}


STANDS = {"simulated": Simulated}
