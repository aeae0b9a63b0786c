"""Who does something: recorded in every audit event and transition."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """A user, a service account, staff, or the product itself (`system`)."""

    kind: str
    id: str = ""
    label: str = ""
    request_id: str = ""
    token: str = ""  # the id of what it came in with, where that was a token


SYSTEM = Actor("system", "", "broker")
