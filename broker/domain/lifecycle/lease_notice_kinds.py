"""Kinds of notices about the end of a lease."""

from enum import StrEnum


class LeaseNoticeKind(StrEnum):
    """What a notice reports."""

    ENDS_SOON = "ends_soon"
    EXTENDED = "extended"  # automatically
    EXTENSION_REFUSED = "extension_refused"  # an automatic extension; the lease ends
    ENDED = "ended"  # sent where it was asked for
