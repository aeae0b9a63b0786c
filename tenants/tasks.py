"""When things happen. A task loads nothing itself: it reads the clock and calls one service."""

from ports import clock
from ports.doorbell import answering
from tenants.services import tidying


@answering("tenants.tidy")
def tidy() -> None:
    """Drop what is kept for a while only."""
    tidying.forget_old(now=clock.now())
