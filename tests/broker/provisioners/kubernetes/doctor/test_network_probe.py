"""Objects and exit codes of the network probe."""

import subprocess
import sys
import time
from collections.abc import Iterator

import kubernetes_validate
import pytest

from broker.provisioners.kubernetes.doctor import network_probe
from tests.broker.provisioners.kubernetes.restricted_standard import violations
from tests.controlplane.plane import free_port

HERE, NOBODY = "127.0.0.1", "127.0.0.2"


@pytest.mark.parametrize("version", ["1.34", "1.36", "1.37"])
def test_probe_objects_are_valid_and_their_pods_restricted(version: str) -> None:
    made = [
        *network_probe.probe_objects("gpub-tries-1", "gpubroker:1"),
        network_probe.probe_pod("gpub-tries-1", "caller", "x", ["y"]),
    ]
    for each in made:
        kubernetes_validate.validate(each, version, strict=True)
    assert [violations(dict(each)) for each in made if each["kind"] == "Pod"] == [[]] * 3
    closed = next(each for each in made if each["kind"] == "NetworkPolicy")["spec"]
    assert (closed["podSelector"], "ingress" in closed) == ({"matchLabels": {"app": "closed"}}, False)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Serve as the open pod does, at one address of this machine."""
    given = free_port()
    command = [
        sys.executable,
        *network_probe.SERVE[1:3],
        str(given),
        *network_probe.SERVE[4:],
        "--bind",
        HERE,
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield given
    server.kill()
    server.wait()


@pytest.mark.parametrize(
    ("opened", "closed", "code"),
    [
        (HERE, NOBODY, network_probe.POLICY_HELD),
        (HERE, HERE, network_probe.POLICY_BROKEN),
        (NOBODY, HERE, network_probe.NOTHING_REACHED),
    ],
)
@pytest.mark.deep
def test_the_probe_exit_code_tells_which_targets_it_reached(opened: str, closed: str, code: int, port: int) -> None:
    patience = 2 if opened is NOBODY else 8  # while the server begins
    began = time.monotonic()
    command = [sys.executable, "-c", network_probe.CALL, opened, closed, str(port), str(patience)]
    assert subprocess.run(command, check=False, timeout=60).returncode == code
    assert time.monotonic() - began >= 2
    assert (
        len({network_probe.POLICY_HELD, network_probe.POLICY_BROKEN, network_probe.NOTHING_REACHED, 1}) == 4
    )  # a program that breaks says nothing
