"""Form of a lease's end: automatic extension and the e-mail when it is over."""

from dataclasses import dataclass

from django.http import QueryDict
from django.utils.translation import gettext as _

from broker.models import Lease
from tenants.services.errors import InvalidValue
from web.portal.durations import format_seconds, parse_duration

MAX_LENGTH = 40


@dataclass(frozen=True, slots=True)
class EndTermsForm:
    """Values as written; empty durations turn automatic extension off."""

    extend_by: str = ""
    extend_limit: str = ""
    notify: bool = False

    @classmethod
    def of(cls, fields: QueryDict) -> "EndTermsForm":
        by, limit = (fields.get(name, "").strip()[:MAX_LENGTH] for name in ("extend_by", "extend_limit"))
        return cls(by, limit, "notify_on_end" in fields)

    @classmethod
    def of_lease(cls, lease: Lease) -> "EndTermsForm":
        if not lease.extend_by_s:
            return cls(notify=lease.notify_on_end)
        return cls(format_seconds(lease.extend_by_s), format_seconds(lease.extend_limit_s), lease.notify_on_end)

    def parse(self) -> tuple[int, int]:
        """Return both durations in seconds; raise InvalidValue where one cannot be read."""
        return parse_optional(self.extend_by, "extend_by_s"), parse_optional(self.extend_limit, "extend_limit_s")


def parse_optional(text: str, field: str) -> int:
    """Return the seconds of a duration; zero for an empty text."""
    seconds = parse_duration(text) if text else 0
    if seconds is None:
        raise InvalidValue(
            field,
            _("{text} is not a valid duration.").format(text=text),
            fix=_("Enter, for example, 90 min, 8 h or 1 d 12 h, or leave it empty."),
        )
    return seconds
