"""The one way a service says no: what happened, why, and what to do next."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    """What to do next, in words and, where there is one, as a call."""

    text: str
    action: str = ""
    href: str = ""


class Refused(Exception):
    """A request that cannot be met; it undoes its transaction and becomes problem+json or a page note."""

    code = "refused"
    status = 409
    title = "This cannot be done"

    def __init__(self, detail: str, *, fix: Fix | str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = Fix(fix) if isinstance(fix, str) else fix
        self.extra = extra


class NotAllowed(Refused):
    """The role of whoever asks does not cover this."""

    code, status, title = "policy-denied", 403, "Your role does not allow this"


class Missing(Refused):
    """There is no such thing, or it is another tenant's: the two look the same."""

    code, status, title = "not-found", 404, "There is no such thing here"


class Invalid(Refused):
    """A field's value cannot be meant."""

    code, status, title = "invalid", 400, "A value cannot be used"

    def __init__(self, field: str, detail: str, *, fix: Fix | str) -> None:
        super().__init__(detail, fix=fix, errors=[{"field": field, "code": "invalid", "message": detail}])
        self.field = field


class Stale(Refused):
    """Somebody changed it since it was read."""

    code, status, title = "stale", 412, "It was changed in the meantime"


class QuotaExceeded(Refused):
    code, status, title = "quota-exceeded", 409, "The quota does not allow this"
