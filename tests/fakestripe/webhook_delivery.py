"""Delivery of Stripe webhooks: signed, repeated, shuffled, late or never."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from random import Random
from typing import Any

from tests.fakestripe.server import signed

Delivery = tuple[bytes, str]  # a body and its signature


def webhook_of(event: dict[str, Any], secret: str, at: datetime) -> Delivery:
    """Return an event as it is sent."""
    body = json.dumps(event)
    return body.encode(), signed(body, secret, at)


def shuffled_webhooks(
    events: Iterable[dict[str, Any]],
    secret: str,
    at: datetime,
    *,
    seed: int = 0,
    times: int = 5,
    dropped: int = 0,
) -> Iterator[Delivery]:
    """Deliver events repeatedly, shuffled, and with some lost."""
    chance = Random(seed)
    sent = [event for event in events for _ in range(chance.randint(1, times))]
    chance.shuffle(sent)
    for event in sent:
        if chance.randrange(100) >= dropped:
            yield webhook_of(event, secret, at)
