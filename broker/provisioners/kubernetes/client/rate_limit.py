"""Rate limit of one process's calls to one cluster.

The rate is halved for a while when the server asks for a pause.
"""

from threading import Lock

from broker.provisioners.kubernetes.client.api_errors import ApiThrottled
from ports import clock

CALLS_PER_SECOND, BURST = 100.0, 200.0  # calls; a launch takes two or three
MIN_CALLS_PER_SECOND = 2.0  # calls a second, however often the server asks for a pause
RECOVERY_S = 30.0  # seconds from half the rate back to the full rate


class RateLimiter:
    """A token bucket that also pauses for as long as the server asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._filled_at, self._tokens = clock.monotonic(), BURST
        self._pace, self._closed_until = CALLS_PER_SECOND, 0.0

    def take(self, ends: float) -> None:
        """Wait for a token; raise ApiThrottled if it would come after `ends`.

        In that case no token is used up.
        """
        with self._lock:
            now = clock.monotonic()
            self._fill(now)
            wait = max(-(self._tokens - 1) / self._pace, self._closed_until - now, 0.0)
            if wait and now + wait >= ends:
                raise ApiThrottled("its API server or the broker limits the request rate", again_in_s=wait)
            self._tokens -= 1
        if wait:
            clock.sleep(wait)

    def slow_down(self, seconds: float) -> None:
        """Pause for as long as the server asked, then continue at half the rate."""
        with self._lock:
            now = clock.monotonic()
            self._fill(now)
            self._pace = max(self._pace / 2, MIN_CALLS_PER_SECOND)
            self._tokens = min(self._tokens, self._pace)
            self._closed_until = max(self._closed_until, now + seconds)

    def _fill(self, now: float) -> None:
        passed, self._filled_at = now - self._filled_at, now
        self._tokens = min(self._tokens + passed * self._pace, BURST)
        self._pace = min(self._pace + passed * CALLS_PER_SECOND / 2 / RECOVERY_S, CALLS_PER_SECOND)
