"""Errors of the Kubernetes API, one type each; callers never match their text."""

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.objects import ApiStatus


class ApiRefusal(Exception):
    """The server understood the request and refused it; nothing was changed."""

    def __init__(self, text: str, status: ApiStatus | None = None) -> None:
        super().__init__(text)
        self.status = status or ApiStatus()


class AccessDenied(ApiRefusal):
    """401 or 403: our token or rights are insufficient.

    It says nothing about whether an object exists.
    """


class NamespaceQuotaExceeded(ApiRefusal):
    """403: a ResourceQuota of the namespace is used up, although our own quota allowed it."""


class AdmissionDenied(ApiRefusal):
    """403: admission refused the object itself, as Pod Security or our policies do."""


class NamespaceTerminating(ApiRefusal):
    """403: the namespace is being deleted and accepts no new objects."""


class ObjectMissing(ApiRefusal):
    """404: the object or kind does not exist."""


class ObjectConflict(ApiRefusal):
    """409: a precondition failed, or the object changed meanwhile."""


class FieldManagerConflict(ObjectConflict):
    """409: another field manager owns what we want to set."""


class VersionExpired(ApiRefusal):
    """410: the requested version is no longer available; only a new list helps."""


class ObjectInvalid(ApiRefusal):
    """400 or 422: what we sent can never be accepted."""


class ApiThrottled(ClusterUnreachable):
    """429 or 503 for longer than we could wait; it says when to retry."""


ADMISSION_SIGNS = ("violates PodSecurity", "ValidatingAdmissionPolicy", "admission webhook", "LimitRange")


def error_from_status(code: int, status: ApiStatus) -> Exception:
    """Return the exception for an unsuccessful response."""
    text = status.message or status.reason or f"HTTP {code}"
    match code:
        case 403 if any(cause.get("reason") == "NamespaceTerminating" for cause in status.details.causes):
            return NamespaceTerminating(text, status)
        case 403 if "exceeded quota" in text:
            return NamespaceQuotaExceeded(text, status)
        case 403 if any(sign in text for sign in ADMISSION_SIGNS):
            return AdmissionDenied(text, status)
        case 401 | 403:
            return AccessDenied(text, status)
        case 404:
            return ObjectMissing(text, status)
        case 409 if any(cause.get("reason") == "FieldManagerConflict" for cause in status.details.causes):
            return FieldManagerConflict(text, status)
        case 409:
            return ObjectConflict(text, status)
        case 410:
            return VersionExpired(text, status)
        case 400 | 405 | 413 | 415 | 422:
            return ObjectInvalid(text, status)
        case 429 | 503:
            return ApiThrottled(text, again_in_s=float(max(status.details.retry_after_seconds, 1)))
        case _:
            return ClusterUnreachable(text)
