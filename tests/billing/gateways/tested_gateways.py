"""Payment gateways under test, with fault injection."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Protocol

from django.test import override_settings

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.gateways.stripe.gateway import StripeGateway
from billing.models import SimulatedCharge, SimulatedRefund
from ports.payments import GatewayCharge, GatewayOutcome, GatewayRefund, PaymentGateway
from tests.billing.gateways.faults import inject_faults
from tests.billing.gateways.transports import use_transport
from tests.fakestripe.server import KEY, Call, FakeStripe
from tests.fakestripe.tenants import create_card_holder

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


class GatewayUnderTest(Protocol):
    """A gateway whose faults can be injected and whose charges can be read."""

    gateway: PaymentGateway

    def suffer(self, payer: str, *ills: str) -> None:
        """Inject faults into the next attempts: declined, lost, unreachable, slow or rejected."""

    def taken(self) -> dict[str, tuple[int, str]]:
        """Return what the gateway has taken, by key."""

    def sent_back(self) -> dict[str, int]:
        """Return what it has sent back, by the refund's key."""


class Simulated:
    gateway = SimulatedGateway()

    def suffer(self, payer: str, *ills: str) -> None:
        inject_faults(payer, *(GatewayFault(ill) for ill in ills))

    def sent_back(self) -> dict[str, int]:
        return dict(SimulatedRefund.objects.values_list("key", "minor"))

    def taken(self) -> dict[str, tuple[int, str]]:
        rows = SimulatedCharge.objects.filter(declined=False)
        return {row.key: (row.minor, row.currency) for row in rows}


class Stripe:
    """Our Stripe gateway over a fake at which every payer has a card."""

    def __init__(self) -> None:
        self.fake = FakeStripe(now=NOW)
        self.gateway: PaymentGateway = Wired(self.fake)
        self.ills: defaultdict[str, list[str]] = defaultdict(list)
        self.fake.ill = self._ill
        self.cards = {payer: create_card_holder(self.fake, payer) for payer in ("ten_kestrel", "ten_tern", "x")}

    def suffer(self, payer: str, *ills: str) -> None:
        self.ills[payer] = list(ills)

    def sent_back(self) -> dict[str, int]:
        found = self.fake.things.all("refund").values()
        return {each["metadata"]["refund"]: each["amount"] for each in found}

    def taken(self) -> dict[str, tuple[int, str]]:
        found = self.fake.things.all("invoice").values()
        return {
            each["metadata"]["payment"]: (each["amount_paid"], each["currency"].upper())
            for each in found
            if each["status"] == "paid"
        }

    def _ill(self, call: Call) -> str:
        """Apply the payer's next fault when its call arrives."""
        payer = self._payer(call)
        ills = self.ills[payer]
        if ills and ills[0] in ("unreachable", "rejected"):
            return {"unreachable": "unreachable", "rejected": "unauthorized"}[ills.pop(0)]
        if ills and call.word == "pay":
            ill = ills.pop(0)
            if ill in ("declined", "slow"):
                self.cards[payer]["next"] = [ill]
            return ill
        return ""

    def _payer(self, call: Call) -> str:
        kept = self.fake.things
        customer = call.params.get("customer")
        parts = call.path.split("/")
        if customer is None and parts[2] == "invoices":
            customer = kept.get("invoice", parts[3])["customer"]
        intent = call.params.get("payment_intent")
        if parts[2] == "refunds" and len(parts) > 3:
            intent = kept.get("refund", parts[3])["payment_intent"]
        if intent:
            customer = kept.get("payment_intent", intent)["customer"]
        return str(kept.get("customer", str(customer))["metadata"]["tenant"])


class Wired:
    """The gateway with the fake behind it, for as long as a call takes."""

    def __init__(self, fake: FakeStripe) -> None:
        self.fake, self.inner = fake, StripeGateway()
        self.name = self.inner.name

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        self.fake.now = now
        with (
            use_transport(self.fake),
            override_settings(STRIPE_SECRET_KEY=KEY, STRIPE_CALLS_PER_S=10**6),
        ):
            return self.inner.charge(charge, now=now)

    def withdraw(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        self.fake.now = now
        with (
            use_transport(self.fake),
            override_settings(STRIPE_SECRET_KEY=KEY, STRIPE_CALLS_PER_S=10**6),
        ):
            return self.inner.withdraw(charge, now=now)

    def refund(self, back: GatewayRefund, *, now: datetime) -> GatewayOutcome:
        self.fake.now = now
        with (
            use_transport(self.fake),
            override_settings(STRIPE_SECRET_KEY=KEY, STRIPE_CALLS_PER_S=10**6),
        ):
            return self.inner.refund(back, now=now)


STANDS = {"simulated": Simulated, "stripe": Stripe}
