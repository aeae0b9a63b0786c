"""What a server may answer instead of doing it, each a type of its own: they are told apart by type, never by text."""

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.objects import Status


class Refusal(Exception):
    """The server understood and said no; nothing was changed."""

    def __init__(self, text: str, status: Status | None = None) -> None:
        super().__init__(text)
        self.status = status or Status()


class Denied(Refusal):
    """401 or 403: our token or our rights. Says nothing about whether an object exists."""


class OverQuota(Refusal):
    """403: a ResourceQuota of the namespace is used up, though our own books had agreed."""


class Forbidden(Refusal):
    """403: admission refused the object itself, as Pod Security or one of our policies does."""


class Closing(Refusal):
    """403: the namespace is being deleted; nothing can be made in it until it is gone."""


class Missing(Refusal):
    """404: it is not there."""


class Conflict(Refusal):
    """409: a precondition failed, or the object changed meanwhile."""


class ForeignField(Conflict):
    """409: another field manager owns what we want to set."""


class Expired(Refusal):
    """410: the version asked for is no longer kept; only a new list helps."""


class Invalid(Refusal):
    """400 or 422: what we sent can never be accepted."""


class Throttled(Unanswered):
    """429 or 503 for longer than we could wait; it names when to come back."""


ADMISSION = ("violates PodSecurity", "ValidatingAdmissionPolicy", "admission webhook", "LimitRange")


def refusal(code: int, status: Status) -> Exception:
    """Turn an answer that is not a success into the type that says what it means."""
    text = status.message or status.reason or f"HTTP {code}"
    match code:
        case 403 if any(cause.get("reason") == "NamespaceTerminating" for cause in status.details.causes):
            return Closing(text, status)
        case 403 if "exceeded quota" in text:
            return OverQuota(text, status)
        case 403 if any(sign in text for sign in ADMISSION):
            return Forbidden(text, status)
        case 401 | 403:
            return Denied(text, status)
        case 404:
            return Missing(text, status)
        case 409 if any(cause.get("reason") == "FieldManagerConflict" for cause in status.details.causes):
            return ForeignField(text, status)
        case 409:
            return Conflict(text, status)
        case 410:
            return Expired(text, status)
        case 400 | 405 | 413 | 415 | 422:
            return Invalid(text, status)
        case 429 | 503:
            return Throttled(text, again_in_s=float(max(status.details.retry_after_seconds, 1)))
        case _:
            return Unanswered(text)
