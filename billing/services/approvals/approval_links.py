"""Signed links that offer a decision about a request, as sent by e-mail.

A link grants nothing: whoever opens it signs in and needs the permission. The signature ties the decision to the
request's version, so that a link works once.
"""

from django.core import signing

from billing.models import ApprovalRequest

SALT = "gpubroker.approval"
APPROVE, DECLINE = "approve", "decline"


def sign_decision(request: ApprovalRequest, decision: str) -> str:
    """Return the signed text of an offered decision."""
    return signing.dumps([request.pk, request.version, decision], salt=SALT)


def read_decision(text: str, request: ApprovalRequest) -> str:
    """Return the decision that a link offers for a request.

    Empty for an altered link, and for one of an earlier state.
    """
    try:
        request_id, version, decision = signing.loads(text, salt=SALT)
    except signing.BadSignature:
        return ""
    return str(decision) if (request_id, version) == (request.pk, request.version) else ""
