"""`make run`: first start, first lease and restart."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import session
from tests.embedded.conftest import Start, parents


@contextmanager
def running(data: Path, port: int, *more: str) -> Iterator[tuple[str, Start]]:
    """Start the product, yield its output, and stop it as Ctrl-C does."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GPUBROKER_")}
    env.pop("DATABASE_URL", None)
    popen = subprocess.Popen(
        [sys.executable, "-m", "deploy.embedded", "run", "--data", str(data), "--port", str(port), *more],
        cwd=session.CHECKOUT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert popen.stdout
    said = ""
    try:
        for line in popen.stdout:
            said += line
            if "Ctrl-C" in line:
                yield said, Start(popen)
                break
        else:
            pytest.fail(said)
    finally:
        popen.send_signal(signal.SIGINT)
        popen.communicate(timeout=60)


def curl_of(said: str) -> tuple[str, dict[str, str], bytes]:
    """Return URL, headers and body of the printed curl command."""
    words = shlex.split(next(line for line in said.splitlines() if line.strip().startswith("curl ")))
    headers = [words[n + 1].split(": ", 1) for n, word in enumerate(words) if word == "-H"]
    address = next(word for word in words if word.startswith("http"))
    return address, dict(headers), words[words.index("-d") + 1].encode()


def call(address: str, headers: dict[str, str], body: bytes | None = None) -> dict[str, Any]:
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def steps(said: str) -> list[str]:
    """Return the first word of every line that names a step and its seconds."""
    return re.findall(r"^(\w+): [\w, ]+ \.\.\.+ \d+\.\d s$", said, re.MULTILINE)


@pytest.mark.timeout(900)
@pytest.mark.deep
def test_the_printed_command_gets_a_lease_that_survives_a_restart_but_no_fresh_start(data: Path, port: int) -> None:
    with running(data, port) as (said, run):
        assert [step for step in steps(said) if step != "Processes"] == ["Database", "Migrations", "Seed"]
        assert steps(said)[-1] == "Processes"
        address, headers, body = curl_of(said)
        lease = call(address, headers, body)
        end = time.monotonic() + 120
        while (state := call(f"{address}/{lease['id']}", headers)["status"]["state"]) != "active":
            assert time.monotonic() < end, state
            time.sleep(0.2)
        family = run.family()
    assert not family & parents().keys()
    with running(data, port) as (again, _):
        assert not {"Migrations", "Seed"} & set(steps(again))
        assert re.findall(r"gpb_\w+", again) == re.findall(r"gpb_\w+", said)
        assert call(f"{address}/{lease['id']}", headers)["status"]["state"] == "active"
        assert call(*curl_of(again))["id"] != lease["id"]
    (data / "letter.txt").write_text("not gpubroker's")
    with running(data, port, "--fresh") as (anew, _):
        assert not set(re.findall(r"gpb_\w+", anew)) & set(re.findall(r"gpb_\w+", said))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            call(f"{address}/{lease['id']}", headers)
        address, headers, body = curl_of(anew)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            call(f"{address}/{lease['id']}", headers)
        assert call(address, headers, body)["id"] != lease["id"]
    assert (data / "letter.txt").read_text() == "not gpubroker's"


def test_make_variables_are_passed_to_the_launcher() -> None:
    said = ["FRESH=1", "PORT=8100", "HOST=0.0.0.0", "DATA=/srv/one folder"]
    found = subprocess.run(
        ["make", "--dry-run", "run", *said], cwd=session.CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    (command,) = [line for line in found.splitlines() if "deploy.embedded run" in line]
    words = shlex.split(command)
    assert words[words.index("run") + 1 :] == [
        *("--port", "8100", "--host", "0.0.0.0", "--data", "/srv/one folder", "--fresh")
    ]
