"""Actor of a change, recorded in every audit event and transition."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """User, service account, operator (`staff`) or the product itself (`system`)."""

    kind: str
    id: str = ""
    label: str = ""
    request_id: str = ""
    token: str = ""  # id of the token, if one was used


SYSTEM = Actor("system", "", "broker")
BILLING = Actor("system", "", "billing")
