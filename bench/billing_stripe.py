"""Benchmark of ten thousand charges through Stripe with one failing call in twenty.

Usage: `python -m bench.billing_stripe [charges]`. Stripe is the tests' stand-in, in this process: calls and
invoices are counted, and the time is that of our side. The failures are those of the network and of
Stripe: too many requests, a server error, a lost response.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from random import Random
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.test import override_settings  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.gateways.stripe.gateway import StripeGateway  # noqa: E402
from ports.payments import ChargeLine, GatewayCharge, OutcomeUnknown, Succeeded  # noqa: E402
from tests.billing.gateways.transports import use_transport  # noqa: E402
from tests.fakestripe.server import KEY, Call, FakeStripe  # noqa: E402
from tests.fakestripe.tenants import create_card_holder  # noqa: E402

TENANTS, CHARGES, LINES, FAULTS_PERCENT = 100, 10_000, 3, 5
INJECTED_FAULTS = ("429", "500", "500_done", "lost")
START = datetime(2026, 11, 1, tzinfo=UTC)
MAX_ATTEMPTS = 50


def charge(n: int) -> GatewayCharge:
    parts = tuple(ChargeLine(f"slice {line}", 1000 + line, 190, "VAT", "19.00") for line in range(LINES))
    minor = sum(part.minor + part.tax for part in parts)
    return GatewayCharge(f"pay_{n:026d}", minor, "EUR", f"ten_{n % TENANTS:026d}", f"Invoice {n}", f"2026-{n}", parts)


def collect(fake: FakeStripe, gateway: StripeGateway, wanted: GatewayCharge) -> None:
    """Retry a charge every five simulated minutes until its outcome is known."""
    for _ in range(MAX_ATTEMPTS):
        try:
            outcome = gateway.charge(wanted, now=fake.now)
        except OutcomeUnknown:
            fake.now += timedelta(minutes=5)
            continue
        if not isinstance(outcome, Succeeded):
            raise RuntimeError(f"{wanted.key} was not collected: {outcome}")
        return
    raise RuntimeError(f"{wanted.key} has no answer after {MAX_ATTEMPTS} attempts")


def main(charges: int = CHARGES) -> None:
    figures, rng = Figures("billing"), Random(20)
    fake, gateway = FakeStripe(now=START), StripeGateway()
    for n in range(TENANTS):
        create_card_holder(fake, f"ten_{n:026d}")

    def ill(call: Call) -> str:
        return rng.choice(INJECTED_FAULTS) if rng.randrange(100) < FAULTS_PERCENT else ""

    fake.ill = ill
    begun = perf_counter()
    with override_settings(STRIPE_SECRET_KEY=KEY, STRIPE_CALLS_PER_S=10**6), use_transport(fake):
        for n in range(charges):
            collect(fake, gateway, charge(n))
    took = perf_counter() - begun
    there = list(fake.things.all("invoice").values())
    paid = [each for each in there if each["status"] == "paid"]
    if len({each["metadata"]["payment"] for each in paid}) != len(paid):
        raise RuntimeError("a payment was taken twice")
    figures.report_min("stripe_invoices_paid_once", len(paid), unit="invoices", at_least=charges)
    figures.report_max("stripe_invoices_left_over", len(there) - len(paid), unit="invoices", at_most=0)
    figures.report_max("stripe_calls_each", sum(fake.calls.values()) / charges, unit="calls", at_most=4.4)
    figures.report_max("stripe_our_time_each", took / charges, unit="s", at_most=0.2)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
