from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ports import clock
from tests.broker.provisioners.kubernetes.wire import Say, Serve, Wire


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that answer from a script."""
    with ExitStack() as servers:
        yield lambda *script: servers.enter_context(Wire(*(script or (Say(),))).up())


@pytest.fixture
def quick_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody sleep, and time be past as if they had: it passes in no other way."""
    moment = [clock.monotonic()]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(clock, "sleep", lambda seconds: moment.append(moment.pop() + seconds))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let nobody sleep, and remember for how long they wanted to."""
    slept: list[float] = []
    monkeypatch.setattr(clock, "sleep", slept.append)
    return slept
