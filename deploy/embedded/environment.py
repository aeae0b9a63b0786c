"""Create .venv from a hash-pinned lock file, once per lock file.

Usage: `python3 -m deploy.embedded.environment run|dev [PORT]`. It runs under any python3, before anything is
installed: standard library only, and syntax that Python 3.7 can still parse, so that it can report
what is wrong. The Makefile refuses older ones.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NoReturn

from deploy.embedded.port_check import parse_port
from deploy.embedded.progress import Progress
from deploy.embedded.startup_error import StartupError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.environ.get("VENV") or os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "installed.json")
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
OLDEST = (3, 11)


def stop(message: str) -> NoReturn:
    """Print a message and exit."""
    sys.stderr.write(message + "\n")
    sys.exit(1)


def use_a_new_enough_python() -> None:
    """Re-execute under a newer interpreter on the path if python3 is too old."""
    if sys.version_info >= OLDEST:
        return
    version = sys.version.split()[0]
    for minor in (13, 12, 11):
        better = shutil.which(f"python3.{minor}")
        if better and works(better, "pass"):
            print(f"{sys.executable} is Python {version}, which is too old; using {better}", flush=True)
            os.execv(better, [better, "-m", "deploy.embedded.environment", *sys.argv[1:]])
    stop(
        f"gpubroker needs Python 3.11 or newer and {sys.executable} is {version}: install one (Debian 12: "
        "apt-get install python3 python3-venv) or name it, make run PYTHON=/path/to/python3.11."
    )


def need_venv() -> None:
    """Exit if venv cannot work here.

    Debian packages it apart from python3, and half an environment is useless.
    """
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        stop(
            f"{sys.executable} lacks its module {missing[0]}, which the environment needs: install it (Debian or "
            f"Ubuntu: apt-get install python3-venv or python{version}-venv) or name another Python, "
            "make run PYTHON=/path/to/python3.11."
        )


def fingerprint(level: str) -> str:
    """Return the hash of a lock file."""
    with open(os.path.join(ROOT, LOCKS[level]), "rb") as lock:
        return hashlib.sha256(lock.read()).hexdigest()


def installed() -> "dict[str, str]":
    """Return which lock files are installed; empty without a complete environment."""
    try:
        with open(STAMP) as stamp:
            return dict(json.load(stamp))
    except (OSError, ValueError):
        return {}


def works(python: str, *check: str) -> bool:
    """Return whether an interpreter starts and passes a check."""
    try:
        return subprocess.call([python, "-c", *check], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def run_step(progress: Progress, name: str, *command: str) -> str:
    """Run a command as a step; return its standard error if it failed."""
    with tempfile.TemporaryFile("w+") as errors, progress.step(f"Environment: {name}"):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, text=True)
        if progress.wait(child) == 0:
            return ""
        errors.seek(0)
        return errors.read().strip() or f"exit status {child.returncode}"


def install(level: str, progress: Progress) -> None:
    """Create the environment if necessary and install exactly the lock file."""
    python = os.path.join(VENV, "bin", "python")
    failed = ""
    if not works(python, "import sys; sys.exit(sys.version_info < (3, 11))"):
        need_venv()
        shutil.rmtree(VENV, ignore_errors=True)
        failed = run_step(progress, f"create {os.path.relpath(VENV)}", sys.executable, "-m", "venv", VENV)
    elif not works(python, "import pip"):
        failed = run_step(progress, "install pip", python, "-m", "ensurepip")
    if failed:
        stop(f"{failed}\nPython could not create the environment {VENV}; its own words are above.")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--prefer-binary", "--require-hashes", "-r", os.path.join(ROOT, LOCKS[level])]
    failed = run_step(progress, f"install the packages of {LOCKS[level]}", *command)
    if failed:
        stop(
            f"{failed}\nThe packages of {LOCKS[level]} could not be installed; pip's own words are above.\n"
            "A package index must be reachable this once; afterwards no network is needed."
        )
    # The development lock file includes the other one.
    done = {"run": fingerprint("run"), level: fingerprint(level)}
    with open(STAMP + ".new", "w") as stamp:
        json.dump(done, stamp)
    os.replace(STAMP + ".new", STAMP)


def prepare(level: str, progress: Progress) -> None:
    """Install the requested lock file; two concurrent calls wait for each other."""
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with open(os.path.join(ROOT, "build", ".environment"), "w") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Environment: another make is creating it; waiting for it", flush=True)
            fcntl.flock(turn, fcntl.LOCK_EX)
        if installed().get(level) != fingerprint(level):
            install(level, progress)


def main(level: str, port: str = "") -> None:
    """Prepare the environment; say in one sentence why it cannot be.

    A port that the product could not use is refused here, not minutes later when everything is installed.
    """
    use_a_new_enough_python()
    try:
        if port:
            parse_port(port)
        prepare(level, Progress())
    except StartupError as refusal:
        stop(str(refusal))
    except KeyboardInterrupt:
        stop("Stopped. Start again with the same command.")
    except OSError as failure:
        stop(f"The environment could not be made: {failure.filename or VENV}: {failure.strerror}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
