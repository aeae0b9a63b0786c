"""Our webhook signature check agrees with Stripe's SDK."""

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


def ours(body: bytes, header: str, *secrets: str, account: str = "", live: bool = False) -> WebhookEvent:
    return verify_webhook(body, header, secrets=secrets or (SECRET,), account=account, live=live, now=NOW)


def theirs(body: str, secret: str = SECRET, at: datetime = NOW) -> str:
    return str(WebhookSignature.generate_signature_header(body, secret, int(at.timestamp())))


def test_an_event_signed_by_stripe_is_accepted() -> None:
    body = json.dumps(EVENT)
    assert ours(body.encode(), theirs(body)) == WebhookEvent("evt_1", "invoice.paid", VERSION, "in_1", NOW)


@given(st.text(max_size=40), st.text("av10 t;x", max_size=20), st.sampled_from([SECRET, "whsec_two"]))
def test_ours_and_the_sdks_agree_on_every_body_and_secret(body: str, noise: str, secret: str) -> None:
    header = theirs(body, secret) + noise
    try:
        WebhookSignature.verify_header(body, header, SECRET)
    except SignatureVerificationError:
        with pytest.raises(UntrustedWebhook):
            ours(body.encode(errors="surrogatepass"), header)
    else:
        with pytest.raises(UntrustedWebhook, match="event is not readable"):
            ours(body.encode(), header)


def test_several_signatures_and_secrets_are_tried() -> None:
    body = json.dumps(EVENT)
    old, new = theirs(body, "whsec_old"), theirs(body)
    header = f"{old},{new.partition(',')[2]}"
    assert ours(body.encode(), header, "", "whsec_none", SECRET).id == "evt_1"


@pytest.mark.parametrize("seconds", [-301, 301])
def test_five_minutes_are_the_most(seconds: int) -> None:
    body = json.dumps(EVENT)
    header = theirs(body, at=NOW + timedelta(seconds=seconds))
    with pytest.raises(UntrustedWebhook, match="The signature is too old"):
        ours(body.encode(), header)


def test_our_account_and_our_mode_are_asked_for() -> None:
    mine = json.dumps({**EVENT, "account": "acct_ours", "livemode": True})
    assert ours(mine.encode(), theirs(mine), account="acct_ours", live=True).id == "evt_1"
    with pytest.raises(UntrustedWebhook, match="another account"):
        ours(mine.encode(), theirs(mine), account="acct_other", live=True)
    with pytest.raises(UntrustedWebhook, match="test or live"):
        ours(mine.encode(), theirs(mine), account="acct_ours")


def test_names_that_no_column_holds_are_refused() -> None:
    odd = json.dumps({**EVENT, "id": "evt_\0"})
    with pytest.raises(UntrustedWebhook, match="event is not readable"):
        ours(odd.encode(), theirs(odd))
