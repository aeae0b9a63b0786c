"""Form tokens: a form that shows a secret takes effect only once.

Reloading its response sends the same form again and creates nothing.
"""

from datetime import datetime
from typing import Any

from ports import ids
from tenants.services import idempotency

TOKEN_FIELD = "once"  # hidden field; its value is new on each page view


def new_form_token() -> str:
    """Return a new form token."""
    return ids.random_token()


def form_request(request: Any) -> idempotency.KeyedRequest | None:
    """Return the idempotency request of a form; None if it has no token.

    All fields are part of it: whoever goes back and changes something sends another form.
    """
    if not request.POST.get(TOKEN_FIELD):
        return None
    filled = {name: texts for name, texts in request.POST.lists() if name != "csrfmiddlewaretoken"}
    return idempotency.KeyedRequest(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=idempotency.request_digest(filled),
        digest="",
    )


def was_sent_before(form: idempotency.KeyedRequest | None) -> bool:
    """Return whether the form was sent before; if not, claim it for this request."""
    return form is not None and idempotency.find_record(form) is not None


def record_sent(form: idempotency.KeyedRequest | None, *, now: datetime) -> None:
    """Record that the form was sent, in the same transaction; its secret is not stored."""
    if form is not None:
        idempotency.store_record(form, status=303, headers={}, body="", now=now)
