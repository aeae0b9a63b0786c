"""Verification and parsing of Stripe webhooks; nothing is used before the signature is verified.

The SDK's own check reads the wall clock and would load the whole SDK into the web process; a test
compares this one with it.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

GATEWAY = "stripe"  # the gateway's name on payments
VERSION = "2026-10-28.endive"  # of Stripe's API
TOLERANCE = timedelta(seconds=300)
MAX_TEXT_LENGTH = 120


class UntrustedWebhook(Exception):
    """Raised for an invalid or old signature, wrong account or mode, or unreadable body."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """The trusted part of an event: which object to look up."""

    id: str
    type: str
    api_version: str
    object_id: str
    created: datetime


def verify_webhook(
    body: bytes, header: str, *, secrets: Iterable[str], account: str, live: bool, now: datetime
) -> WebhookEvent:
    """Verify and parse a body that was signed within the last five minutes.

    Any of the secrets may have signed it. Raises UntrustedWebhook.
    """
    if abs(now - _signed_at(body, header, secrets)) > TOLERANCE:
        raise UntrustedWebhook("The signature is too old, or a clock is wrong.")
    try:
        event = json.loads(body)
        whose, is_live = event.get("account"), event["livemode"]
        parsed = parse_event(event)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UntrustedWebhook("The event is not readable.") from None
    if whose not in (None, account):
        raise UntrustedWebhook("The event belongs to another account.")
    if bool(is_live) is not live:
        raise UntrustedWebhook("The event's mode (test or live) does not match this installation.")
    return parsed


def parse_event(event: Mapping[str, Any]) -> WebhookEvent:
    """Parse an event from the API or a webhook; raises ValueError, KeyError or TypeError."""
    texts = [event["id"], event["type"], event["api_version"] or "", event["data"]["object"].get("id") or ""]
    if not all(isinstance(text, str) and len(text) <= MAX_TEXT_LENGTH and "\0" not in text for text in texts):
        raise ValueError("an event whose names are not text")
    name, kind, version, subject = texts
    return WebhookEvent(name, kind, version, subject, datetime.fromtimestamp(int(event["created"]), UTC))


def _signed_at(body: bytes, header: str, secrets: Iterable[str]) -> datetime:
    """Return when the body was signed with one of the secrets."""
    parts = [part.partition("=")[::2] for part in header.split(",")]
    stamp = next((value for name, value in parts if name == "t"), "")
    signatures = [value.encode() for name, value in parts if name == "v1"]
    for secret in filter(None, secrets):
        made = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest().encode()
        if any(hmac.compare_digest(made, signature) for signature in signatures):
            return _parse_timestamp(stamp)
    raise UntrustedWebhook("The signature is not from Stripe.")


def _parse_timestamp(stamp: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(stamp), UTC)
    except (ValueError, OverflowError, OSError):
        raise UntrustedWebhook("The signature has no timestamp.") from None
