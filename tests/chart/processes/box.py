"""Run the image's contents in namespaces, without a container engine.

The first process in its own process namespace, secrets as files under /run/secrets, a root that nobody writes to.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.chart.rendering import secret_files

ROOT = Path(__file__).resolve().parents[3]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
# /tmp and /dev/shm stay open to writing, as in a pod; everything else on the root becomes read-only.
ENTER = """
set -e
mount --make-rprivate /
mount --bind /tmp /tmp
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets /run/app
mount --bind {secrets} /run/secrets
mount --bind {app} /run/app
mount -o remount,bind,ro /run/app
mount -o remount,bind,ro /
cd /run/app
exec {command}
"""


def unshare() -> list[str]:
    """Return the command that makes namespaces: root needs no user namespace, everybody else does."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


@cache
def possible() -> bool:
    """Return whether this machine allows namespaces."""
    if not shutil.which("unshare"):
        return False
    mounts = ("--make-rprivate /", "--bind /tmp /tmp", "-t tmpfs tmpfs /run", "-o remount,bind,ro /")
    enter = " && ".join(f"mount {each}" for each in mounts)
    return subprocess.run([*unshare(), "sh", "-c", enter], capture_output=True, check=False).returncode == 0


def image(place: Path) -> Path:
    """Copy what the Containerfile copies, and nothing else."""
    last = CONTAINERFILE.read_text().rpartition("\nFROM ")[2]
    for line in re.findall(r"^COPY (?!--from)(.+)$", last, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            goal = place / (source if target in (".", "./") else target)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, goal)
    return place


def environment() -> dict[str, str]:
    """Return the variables that the Containerfile sets, less those that name its folders."""
    [block] = re.findall(r"^ENV PATH(.+?)^USER", CONTAINERFILE.read_text(), re.MULTILINE | re.DOTALL)
    found = dict(re.findall(r"\b([A-Z_]+)=(\S+)", block))
    return {**found, "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}


@dataclass
class Box:
    """One process of the chart, running."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    env: dict[str, str]
    probe: list[str]
    app: Path

    def words(self) -> str:
        return self.log.read_text(errors="replace")

    def beside(self, command: list[str]) -> str:
        """Run a probe with the container's settings; return its output."""
        limited = ["timeout", "120", *command]
        done = subprocess.run(limited, env=self.env, cwd=self.app, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def stop(self) -> int:
        """Stop it as a kubelet would, by a signal to its first process."""
        if self.process.poll() is None:
            first = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            for pid in first:
                os.kill(int(pid), signal.SIGTERM)
        return self.process.wait(180)


def start(
    name: str,
    pod: dict[str, Any],
    *,
    command: list[str],
    secrets: dict[tuple[str, str], str],
    place: Path,
    app: Path,
) -> Box:
    """Start a container with its command, or with one that fits here."""
    files, own = place / "secrets" / "gpubroker", place / "data"
    files.mkdir(parents=True)
    own.mkdir()
    mounted = {file: secrets[key] for file, key in secret_files(pod).items()}
    for file, value in mounted.items():
        (files / file).write_text(value)
    [container] = pod["spec"]["containers"]
    given = {item["name"]: item.get("value", "") for item in container["env"]}
    given |= {"POD_IP": "127.0.0.1", "POD_NAME": f"{name}-1", "GPUBROKER_DATA_DIR": str(own)}
    env = environment() | {key: expanded(value, given) for key, value in given.items()}
    words = [expanded(word, given).replace("/data/", f"{own}/") for word in command]
    inside = ENTER.format(secrets=files.parent, app=app, command=shlex.join(words))
    log = place / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*unshare(), "sh", "-c", inside], env=env, stdout=output, stderr=subprocess.STDOUT)
    answer = container.get("startupProbe", {}).get("exec", {}).get("command", [])
    return Box(name, process, log, env | mounted, answer, app)


def expanded(text: str, given: dict[str, str]) -> str:
    """Replace $(NAME) as a kubelet does."""
    return re.sub(r"\$\((\w+)\)", lambda found: given.get(found[1], found[0]), text)
