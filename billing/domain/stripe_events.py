"""A webhook's body: who signed it, when, and what it is about. Nothing of it is used before its signature holds.

The SDK's own check asks the wall clock, and loads the whole SDK into the web; a test holds this one against it.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

GATEWAY = "stripe"  # as it stands on payments
VERSION = "2026-10-28.endive"  # of the API that we speak
TOLERANCE = timedelta(seconds=300)
LONGEST = 120


class Untrusted(Exception):
    """Whoever sent it is not Stripe, or not our account of it, or it is an old one sent again."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event, as much of it as is believed: which object to look at."""

    id: str
    type: str
    api_version: str
    object_id: str
    created: datetime


def verified(
    body: bytes, header: str, *, secrets: Iterable[str], account: str, live: bool, now: datetime
) -> Told:
    """Read a body that was signed with one of these secrets within five minutes; raises Untrusted."""
    if abs(now - _signed_at(body, header, secrets)) > TOLERANCE:
        raise Untrusted("It was signed too long ago, or by a clock that is wrong.")
    try:
        event = json.loads(body)
        whose, is_live = event.get("account"), event["livemode"]
        told = read(event)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Untrusted("It is no event that can be read.") from None
    if whose not in (None, account):
        raise Untrusted("It is of another account.")
    if bool(is_live) is not live:
        raise Untrusted("It is of test mode where money is real, or the other way round.")
    return told


def read(event: Mapping[str, Any]) -> Told:
    """Return what an event says, as the API or a webhook tells it; raises ValueError, KeyError, or TypeError."""
    texts = [event["id"], event["type"], event["api_version"] or "", event["data"]["object"].get("id") or ""]
    if not all(isinstance(text, str) and len(text) <= LONGEST and "\0" not in text for text in texts):
        raise ValueError("an event whose names are no names")
    name, kind, version, subject = texts
    return Told(name, kind, version, subject, datetime.fromtimestamp(int(event["created"]), UTC))


def _signed_at(body: bytes, header: str, secrets: Iterable[str]) -> datetime:
    """Return when it was signed, by somebody who knows one of the secrets."""
    parts = [part.partition("=")[::2] for part in header.split(",")]
    stamp = next((value for name, value in parts if name == "t"), "")
    signatures = [value.encode() for name, value in parts if name == "v1"]
    for secret in filter(None, secrets):
        made = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest().encode()
        if any(hmac.compare_digest(made, signature) for signature in signatures):
            return _moment(stamp)
    raise Untrusted("Its signature is none of Stripe's.")


def _moment(stamp: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(stamp), UTC)
    except (ValueError, OverflowError, OSError):
        raise Untrusted("It was signed at no moment.") from None
