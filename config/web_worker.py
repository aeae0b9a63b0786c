"""Gunicorn worker that receives whole requests before a thread serves them.

Gunicorn manages the processes, waitress receives and sends: one loop reads all connections, so a client that sends
or reads slowly occupies a socket, and never a thread. Gunicorn's own threads wait for each client that has begun. The
loop also passes live connections on to the events process (config/live_relay.py).
"""

import os
import resource

from gunicorn.workers.base import Worker
from waitress import create_server, wasyncore
from waitress.server import BaseWSGIServer

from config.live_relay import LiveRelays, RelayingChannel
from ports import clock

IDLE_S = 60  # without a byte: then a connection is closed
LOOP_S = 1.0
MAX_BODY = 10_000_000  # bytes; the application answers what is above its own limit, with a problem
MAX_HEADERS = 64 * 1024  # bytes
MAX_CONNECTIONS, OTHER_FILES = 2000, 200  # of one process; what it needs besides


class BufferingWorker(Worker):  # type: ignore[misc]  # gunicorn has no types
    """Serve requests with threads that never wait for a client."""

    def run(self) -> None:
        connections: dict[int, object] = {}
        server = create_server(self.wsgi, map=connections, **self._options())
        relays = self._relay_live_connections(server, connections)
        while self.alive and self._has_parent():
            self._pass_events(connections)
            if relays:
                relays.pass_connected()
        server.accepting = False  # other processes accept, or nobody any more
        server.del_channel()
        ends_at = clock.monotonic() + self.cfg.graceful_timeout
        while _is_busy(server) and clock.monotonic() < ends_at:
            self._pass_events(connections)
        server.task_dispatcher.shutdown(timeout=1)
        if relays:
            relays.stop()

    def _relay_live_connections(self, server: BaseWSGIServer, connections: dict[int, object]) -> LiveRelays | None:
        """Have live connections passed on to `events_upstream` of the application, if it names one."""
        host, _, port = getattr(self.wsgi, "events_upstream", "").rpartition(":")
        if not host:
            return None
        server.relays = relays = LiveRelays(host.strip("[]"), int(port), connections, server.pull_trigger)
        server.channel_class = RelayingChannel
        return relays

    def _options(self) -> dict[str, object]:
        trusts_all = "*" in self.cfg.forwarded_allow_ips
        return {
            "sockets": [each.sock for each in self.sockets],
            "threads": self.cfg.threads,
            "backlog": self.cfg.backlog,
            "connection_limit": _connection_limit(),
            "asyncore_use_poll": True,  # select() ends at 1024 files
            "channel_timeout": IDLE_S,
            "cleanup_interval": IDLE_S // 4,
            "max_request_header_size": MAX_HEADERS,
            "max_request_body_size": MAX_BODY,
            "trusted_proxy": "*" if trusts_all else "127.0.0.1",
            "trusted_proxy_headers": {"x-forwarded-proto"},
            "clear_untrusted_proxy_headers": False,  # the application decides what it believes
            "ident": None,
        }

    def _pass_events(self, connections: dict[int, object]) -> None:
        self.notify()
        wasyncore.loop(timeout=LOOP_S, use_poll=True, map=connections, count=1)

    def _has_parent(self) -> bool:
        return bool(os.getppid() == self.ppid)


def _is_busy(server: BaseWSGIServer) -> bool:
    """Return whether a request is being served, or its response sent."""
    return bool(any(each.requests or each.total_outbufs_len for each in server.active_channels.values()))


def _connection_limit() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(files - OTHER_FILES, MAX_CONNECTIONS), OTHER_FILES)
