"""Interface of payment gateways.

A charge keeps its key for ever: asking twice with one key pays once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string


@dataclass(frozen=True, slots=True)
class ChargeLine:
    """One line of a charge.

    It is negative for what was paid in another way, such as from a balance.
    """

    text: str
    minor: int
    tax: int = 0  # in addition to `minor`, as computed by us
    tax_name: str = ""  # `VAT`
    tax_percent: str = ""  # `19`, or `8.875`

    @property
    def taxed(self) -> bool:
        """Whether a tax rate applies to it, even one of 0 %."""
        return bool(self.tax_name)


@dataclass(frozen=True, slots=True)
class GatewayCharge:
    """Amount to collect from a payer.

    The key identifies this one payment for ever.
    """

    key: str
    minor: int  # minor units of the currency
    currency: str
    payer: str  # the tenant's id
    text: str  # shown on the payer's statement
    number: str = ""  # unique reference for the payer's books
    parts: tuple[ChargeLine, ...] = ()  # add up to `minor` with their taxes; empty: one single item


@dataclass(frozen=True, slots=True)
class GatewayRefund:
    """Refund of part or all of a successful charge, to its source.

    The key identifies this one refund for ever.
    """

    key: str
    charge: str  # its key
    minor: int
    currency: str
    payer: str
    text: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The money was collected or refunded.

    The reference (at most 120 characters) is the gateway's own id of it.
    """

    reference: str


@dataclass(frozen=True, slots=True)
class Declined:
    """Final refusal: nothing will ever be collected or refunded under this key.

    The reason is for people, the code (60 characters) for programs.
    """

    reason: str
    code: str


GatewayOutcome = Succeeded | Declined


class OutcomeUnknown(Exception):
    """Unknown outcome: ask again with the same key, never with another.

    The text is shown to people: it names no credentials and no addresses.
    """

    def __init__(self, text: str, *, again_in_s: int = 0) -> None:
        super().__init__(text)
        self.again_in_s = again_in_s  # retry delay that the gateway itself gave


class GatewayUnreachable(OutcomeUnknown):
    """The gateway was not reached or did not process the request: nothing happened."""


class GatewayRejected(Exception):
    """Refusal that repeats until a person fixes its cause, such as expired credentials.

    Another cause is a currency that the gateway does not support. The outcome of an earlier attempt under this
    key is as unknown as before: when a person retries, it is with the same key.
    """

    def __init__(self, reason: str, *, code: str) -> None:
        super().__init__(reason)
        self.reason = reason  # for the payer: no credentials and no addresses of ours
        self.code = code  # for programs


class ChargeKeyTaken(GatewayRejected):
    """The key belongs to another charge: nothing was collected, and a person has to check."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="key_taken")


class PaymentGateway(Protocol):
    """Payment gateway; the real ones and the simulated one pass the same behaviour tests."""

    name: str  # stored on every payment of this gateway

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        """Collect the money, or return the outcome of the charge with this key.

        Raises OutcomeUnknown when nobody knows the outcome, GatewayRejected when asking again is useless, and nothing
        else: any other exception is treated as a bug in the gateway, retried a few times, and then left to a person.
        One key is one charge for ever. A gateway that forgets keys looks the charge up before it asks again.
        It returns within half a minute, since its worker is killed after that. Never called inside a transaction.
        """

    def withdraw(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        """Ensure that nothing is ever collected under a charge's key.

        Returns Declined once that is final, Succeeded if the money was collected after all. Raises as `charge`
        does.
        """

    def refund(self, back: GatewayRefund, *, now: datetime) -> GatewayOutcome:
        """Refund money of a charge, or return the outcome of the refund with this key.

        One key is one refund for ever. Returns Declined where that much is not left of the charge, or nothing was
        collected by it. Raises as `charge` does.
        """


def _configured_gateway() -> PaymentGateway | None:
    return _load_gateway(settings.PAYMENT_GATEWAY) if settings.PAYMENT_GATEWAY else None


@cache
def _load_gateway(path: str) -> PaymentGateway:
    try:
        made = cast(Callable[[], PaymentGateway], import_string(path))()
    except (ImportError, TypeError) as error:
        raise ImproperlyConfigured(_invalid_setting_message(path, str(error))) from error
    acts = all(callable(getattr(made, act, None)) for act in ("charge", "withdraw", "refund"))
    if not (isinstance(getattr(made, "name", None), str) and acts):
        raise ImproperlyConfigured(
            _invalid_setting_message(path, "it has no name or cannot charge, withdraw and refund")
        )
    return made


def _invalid_setting_message(path: str, why: str) -> str:
    return (
        f"GPUBROKER_PAYMENT_GATEWAY is {path!r}, which is not a payment gateway: {why}. Use a class such as"
        " billing.gateways.simulated.SimulatedGateway, or leave it empty to collect nothing."
    )


_gateway_source: Callable[[], PaymentGateway | None] = _configured_gateway


def gateway() -> PaymentGateway | None:
    """Return the gateway named by settings.PAYMENT_GATEWAY, or None without one.

    Raises ImproperlyConfigured when the setting names no gateway; every process checks it once at its start.
    """
    return _gateway_source()


@contextmanager
def using_gateway(gateway: PaymentGateway | None) -> Iterator[None]:
    """Use this gateway, or none, until the block ends: simulation and tests."""
    global _gateway_source
    before, _gateway_source = _gateway_source, lambda: gateway
    try:
        yield
    finally:
        _gateway_source = before
