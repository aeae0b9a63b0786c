"""The disk fills up: accepted requests get a lease, others an error."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.disturbed import Disturbed
from tests.chaos.running import empty_folder, product

SIZE_MB = 380


def mounted(folder: Path) -> str:
    """Mount a small disk in memory; return the reason if that is impossible."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    return done.stderr.strip()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    folder = empty_folder()
    if not shutil.which("mount") or (why := mounted(folder)):
        folder.rmdir()
        pytest.skip(f"a disk that fills up needs the right to mount one: {why}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


def fill(folder: Path) -> Path:
    """Fill the disk completely."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    return ballast


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_a_full_disk_loses_no_acknowledged_request(small_disk: Path) -> None:
    with product(nodes=1, data=small_disk) as running, closing(Disturbed(running)) as here:
        intents = [here.intent()]
        assert here.ask(intents[0]).status == 202
        web = here.fault_injector.children("web")
        ballast = fill(small_disk)
        end = time.monotonic() + 30
        while intents[-1].acknowledged:  # what was set aside before takes a few more rows
            assert time.monotonic() < end
            intents.append(here.intent())
            here.ask(intents[-1])
        for _ in range(10):
            intents.append(here.intent())
            here.ask(intents[-1])
        refused = [intent for intent in intents if not intent.acknowledged]
        assert {(one.heard[-1].status, one.heard[-1].body.get("code")) for one in refused} == {(503, "busy")}
        assert here.fault_injector.children("web") == web
        promised = [intent for intent in intents if intent.acknowledged]
        assert [here.count(intent) for intent in promised] == [1] * len(promised)
        ballast.unlink()
        for intent in refused:
            here.client.launch(intent)
        assert [here.count(intent) for intent in intents] == [1] * len(intents)
        for intent in intents[:40]:
            here.until(intent, "active", within_s=60)
