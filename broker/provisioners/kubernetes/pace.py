"""How fast one process asks one cluster: no faster than agreed, half as fast for a while once the server complains."""

from threading import Lock

from broker.provisioners.kubernetes.refusals import Throttled
from ports import clock

A_SECOND, BURST = 100.0, 200.0  # calls; a launch takes two or three
SLOWEST = 2.0  # calls a second, however often it complains
RECOVERY_S = 30.0  # from half the pace back to all of it


class Pace:
    """A bucket of tokens, and a door that is closed for as long as the server asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._filled_at, self._tokens = clock.monotonic(), BURST
        self._pace, self._closed_until = A_SECOND, 0.0

    def take(self, ends: float) -> None:
        """Wait for one's turn; Throttled, and no turn is used up, when it comes only after `ends`."""
        with self._lock:
            now = clock.monotonic()
            self._fill(now)
            wait = max(-(self._tokens - 1) / self._pace, self._closed_until - now, 0.0)
            if wait and now + wait >= ends:
                raise Throttled("it has asked for a pause, or too much is asked of it", again_in_s=wait)
            self._tokens -= 1
        if wait:
            clock.sleep(wait)

    def slow_down(self, seconds: float) -> None:
        """Ask nothing for as long as the server said, and half as much as before from then on."""
        with self._lock:
            now = clock.monotonic()
            self._fill(now)
            self._pace = max(self._pace / 2, SLOWEST)
            self._tokens = min(self._tokens, self._pace)
            self._closed_until = max(self._closed_until, now + seconds)

    def _fill(self, now: float) -> None:
        passed, self._filled_at = now - self._filled_at, now
        self._tokens = min(self._tokens + passed * self._pace, BURST)
        self._pace = min(self._pace + passed * A_SECOND / 2 / RECOVERY_S, A_SECOND)
