"""Payments: the way out to whoever collects money. A charge keeps its key for ever, so to ask twice is to pay once."""

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
class ChargePart:
    """A line of what is charged. A part below nothing is what was paid otherwise, from a balance, say."""

    text: str
    minor: int
    tax: int = 0  # on top of it, as we worked it out
    tax_name: str = ""  # `VAT`
    tax_percent: str = ""  # `19`, or `8.875`

    @property
    def taxed(self) -> bool:
        """Whether a rate of tax belongs to it, be it of nothing."""
        return bool(self.tax_name)


@dataclass(frozen=True, slots=True)
class Charge:
    """What is to be taken from whom. The key stands for this one payment, whatever happens on the way."""

    key: str
    minor: int  # of the currency, as its exponent has it
    currency: str
    payer: str  # the tenant's id
    text: str  # what the payer reads on their statement
    number: str = ""  # how the payer's books may call it; no two charges have the same
    parts: tuple[ChargePart, ...] = ()  # with their taxes they come to `minor`; none: it is one thing


@dataclass(frozen=True, slots=True)
class SendBack:
    """What of a charge that succeeded goes back to where it came from. The key stands for this one refund."""

    key: str
    charge: str  # its key
    minor: int
    currency: str
    payer: str
    text: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The money is taken, or sent back; the reference, of at most 120 characters, is how the gateway calls it."""

    reference: str


@dataclass(frozen=True, slots=True)
class Declined:
    """It will never be taken, or sent back, under this key.

    The reason is for people, the code (60 characters) for programs.
    """

    reason: str
    code: str


Outcome = Succeeded | Declined


class Unanswered(Exception):
    """Nobody knows whether the money was taken. Ask again with the same key; never with another.

    The text is shown to people: it names no credentials and no addresses.
    """

    def __init__(self, text: str, *, again_in_s: int = 0) -> None:
        super().__init__(text)
        self.again_in_s = again_in_s  # when the gateway itself said that it is worth asking again


class Unreachable(Unanswered):
    """The gateway was not reached, or turned us away unheard: nothing happened there."""


class Rejected(Exception):
    """The gateway turns the request down, and will as often as it is asked, until a person has mended something.

    Credentials that no longer hold, say, or a currency that it does not know. What became of an earlier attempt
    under this key is as unknown as before: when a person has it asked again, it is with the same key.
    """

    def __init__(self, reason: str, *, code: str) -> None:
        super().__init__(reason)
        self.reason = reason  # a sentence for the payer's people: no credential, no address of ours
        self.code = code  # for programs


class KeyTaken(Rejected):
    """The key stands for another charge. Nothing was taken, and somebody has to look into it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="key_taken")


class Gateway(Protocol):
    """Collects money. The real ones and the simulated one pass the same behaviour tests."""

    name: str  # stands on every payment that goes through it

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        """Take the money, or say what became of the charge with this key.

        Raises Unanswered when that is unknown, Rejected when it is no use to ask again, and nothing else: whatever
        else comes out is taken for a mistake in the gateway, tried a few times more, and then left to a person.
        The same key is one charge for ever. A gateway that forgets keys looks the charge up before it asks again.
        It answers within half a minute, for its worker does not live longer. Never called inside a transaction.
        """

    def withdraw(self, charge: Charge, *, now: datetime) -> Outcome:
        """See that nothing is ever taken under a charge's key: Declined once that is so, for good.

        Succeeded where it was taken after all. Raises as `charge` does.
        """

    def refund(self, back: SendBack, *, now: datetime) -> Outcome:
        """Send money of a charge back, or say what became of the refund with this key: one refund for ever.

        Declined where that much is not left of the charge, or nothing was taken by it. Raises as `charge` does.
        """


def _set() -> Gateway | None:
    return _named(settings.PAYMENT_GATEWAY) if settings.PAYMENT_GATEWAY else None


@cache
def _named(path: str) -> Gateway:
    try:
        made = cast(Callable[[], Gateway], import_string(path))()
    except (ImportError, TypeError) as error:
        raise ImproperlyConfigured(_wrong(path, str(error))) from error
    acts = all(callable(getattr(made, act, None)) for act in ("charge", "withdraw", "refund"))
    if not (isinstance(getattr(made, "name", None), str) and acts):
        raise ImproperlyConfigured(_wrong(path, "it has no name, or cannot charge, withdraw and refund"))
    return made


def _wrong(path: str, why: str) -> str:
    return (
        f"GPUBROKER_PAYMENT_GATEWAY is {path!r}, which is no payment gateway: {why}. Name a class such as"
        " billing.gateways.simulated.SimulatedGateway, or leave it empty to collect nothing."
    )


_collector: Callable[[], Gateway | None] = _set


def gateway() -> Gateway | None:
    """Return what collects here: settings.PAYMENT_GATEWAY, or None where nobody does.

    Raises ImproperlyConfigured when the setting names no gateway; the start of every process asks once.
    """
    return _collector()


@contextmanager
def through(gateway: Gateway | None) -> Iterator[None]:
    """Let payments go through this gateway, or through none, until the block ends: simulation and tests."""
    global _collector
    before, _collector = _collector, lambda: gateway
    try:
        yield
    finally:
        _collector = before
