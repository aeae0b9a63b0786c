"""Errors that services raise: what happened, why, and what to do next."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    """Suggested next action, in words and, if there is one, as an API call."""

    text: str
    action: str = ""
    href: str = ""


class ProblemError(Exception):
    """Request that cannot be fulfilled.

    It rolls its transaction back and becomes problem+json or a message on a page.
    """

    code = "refused"
    status = 409
    title = "The request cannot be fulfilled"

    def __init__(self, detail: str, *, fix: Fix | str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = Fix(fix) if isinstance(fix, str) else fix
        self.extra = extra


class NotAllowed(ProblemError):
    """The caller's role does not allow this."""

    code, status, title = "policy-denied", 403, "Your role does not allow this"


class ScopeMissing(NotAllowed):
    """The caller's token lacks a scope, whatever its bearer's role allows."""

    code, status, title = "missing-scope", 403, "The token lacks a scope"


class ObjectNotFound(ProblemError):
    """The object does not exist or belongs to another tenant; both look the same."""

    code, status, title = "not-found", 404, "Not found"


class InvalidValue(ProblemError):
    """A field's value is invalid."""

    code, status, title = "invalid", 400, "A value is not valid"

    def __init__(self, field: str, detail: str, *, fix: Fix | str) -> None:
        super().__init__(detail, fix=fix, errors=[{"field": field, "code": "invalid", "message": detail}])
        self.field = field


class StaleVersion(ProblemError):
    """The object was changed since it was read."""

    code, status, title = "precondition-failed", 412, "It was changed in the meantime"


class ProjectArchived(ProblemError):
    """The project is archived: nothing that costs money begins in it."""

    code, status, title = "project-archived", 409, "The project is archived"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is archived: nothing in it can be launched, started, extended or created.",
            fix="Choose an open project, or unarchive this one on the Projects page.",
        )


class QuotaExceeded(ProblemError):
    code, status, title = "quota-exceeded", 409, "The quota does not allow this"
