"""Webhook signature check against Stripe's SDK."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stripe import SignatureVerificationError, WebhookSignature

from billing.domain.stripe_events import VERSION, UntrustedWebhook, WebhookEvent, verify_webhook

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
SECRET = "whsec_one"
EVENT = {
    "id": "evt_1",
    "type": "invoice.paid",
    "api_version": VERSION,
    "created": int(NOW.timestamp()),
    "livemode": False,
    "data": {"object": {"id": "in_1"}},
}


def verify_event(body: bytes, header: str, *secrets: str, account: str = "", live: bool = False) -> WebhookEvent:
    return verify_webhook(body, header, secrets=secrets or (SECRET,), account=account, live=live, now=NOW)


def stripe_signature(body: str, secret: str = SECRET, at: datetime = NOW) -> str:
    return str(WebhookSignature.generate_signature_header(body, secret, int(at.timestamp())))


def test_an_event_signed_by_stripe_is_accepted() -> None:
    body = json.dumps(EVENT)
    assert verify_event(body.encode(), stripe_signature(body)) == WebhookEvent(
        "evt_1", "invoice.paid", VERSION, "in_1", NOW
    )


@given(st.text(max_size=40), st.text("av10 t;x", max_size=20), st.sampled_from([SECRET, "whsec_two"]))
def test_our_signature_check_agrees_with_stripes_sdk(body: str, noise: str, secret: str) -> None:
    header = stripe_signature(body, secret) + noise
    try:
        WebhookSignature.verify_header(body, header, SECRET)
    except SignatureVerificationError:
        with pytest.raises(UntrustedWebhook):
            verify_event(body.encode(errors="surrogatepass"), header)
    else:
        with pytest.raises(UntrustedWebhook, match="event is not readable"):
            verify_event(body.encode(), header)


def test_several_signatures_and_secrets_are_tried() -> None:
    body = json.dumps(EVENT)
    old, new = stripe_signature(body, "whsec_old"), stripe_signature(body)
    header = f"{old},{new.partition(',')[2]}"
    assert verify_event(body.encode(), header, "", "whsec_none", SECRET).id == "evt_1"


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_signature_older_or_newer_than_five_minutes_is_refused(seconds: int) -> None:
    body = json.dumps(EVENT)
    header = stripe_signature(body, at=NOW + timedelta(seconds=seconds))
    with pytest.raises(UntrustedWebhook, match="The signature is too old"):
        verify_event(body.encode(), header)


def test_an_event_of_another_account_or_mode_is_refused() -> None:
    mine = json.dumps({**EVENT, "account": "acct_ours", "livemode": True})
    assert verify_event(mine.encode(), stripe_signature(mine), account="acct_ours", live=True).id == "evt_1"
    with pytest.raises(UntrustedWebhook, match="another account"):
        verify_event(mine.encode(), stripe_signature(mine), account="acct_other", live=True)
    with pytest.raises(UntrustedWebhook, match="test or live"):
        verify_event(mine.encode(), stripe_signature(mine), account="acct_ours")


def test_an_event_id_with_a_nul_character_is_refused() -> None:
    odd = json.dumps({**EVENT, "id": "evt_\0"})
    with pytest.raises(UntrustedWebhook, match="event is not readable"):
        verify_event(odd.encode(), stripe_signature(odd))
