"""Make .venv from a hash-pinned lock, once per lock: `python3 deploy/embedded/environment.py run|dev`.

Runs under whatever python3 the machine has, before anything of ours is installed: standard library
only, and a syntax that an old interpreter can still read, so that it can say what is wrong.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from typing import NoReturn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.environ.get("VENV") or os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "installed.json")
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
OLDEST = (3, 11)


def stop(message: str) -> NoReturn:
    """Say what happened, why and what next, and end."""
    sys.stderr.write(message + "\n")
    sys.exit(1)


def use_a_new_enough_python() -> None:
    """Go on under a newer interpreter when python3 is too old and another is on the path."""
    if sys.version_info >= OLDEST:
        return
    for minor in (13, 12, 11):
        better = shutil.which(f"python3.{minor}")
        if better and subprocess.call([better, "-c", "pass"], stderr=subprocess.DEVNULL) == 0:
            os.execv(better, [better, *sys.argv])
    stop(
        f"gpubroker needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}, "
        "and no python3.11 is on the path.\n"
        "Install one (Debian 12: apt-get install python3 python3-venv), or name it:\n"
        "make run PYTHON=/path/to/python3.11"
    )


def need_venv() -> None:
    """Pass when venv can work: Debian splits it from python3, and half an environment helps nobody."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        stop(
            f"Python's own module {missing[0]} is missing, so no environment can be made.\n"
            f"On Debian or Ubuntu: apt-get install python3-venv (or python{version}-venv), then try again."
        )


def fingerprint(level: str) -> str:
    """Tell one lock from another."""
    with open(os.path.join(ROOT, LOCKS[level]), "rb") as lock:
        return hashlib.sha256(lock.read()).hexdigest()


def installed() -> "dict[str, str]":
    """Return what the stamp says is installed; nothing when there is no whole environment."""
    try:
        with open(STAMP) as stamp:
            return dict(json.load(stamp))
    except (OSError, ValueError):
        return {}


def works(python: str, *check: str) -> bool:
    """Tell whether an interpreter starts and passes a check."""
    try:
        return subprocess.call([python, "-c", *check], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def install(level: str) -> None:
    """Create the environment when it is not there and install exactly the lock."""
    python = os.path.join(VENV, "bin", "python")
    if not works(python, "import sys; sys.exit(sys.version_info < (3, 11))"):
        need_venv()
        print(f"Making the environment in {os.path.relpath(VENV)}", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.check_call([sys.executable, "-m", "venv", VENV])
    elif not works(python, "import pip"):
        subprocess.check_call([python, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
    print(f"Installing {LOCKS[level]}", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--prefer-binary", "--require-hashes", "-r", os.path.join(ROOT, LOCKS[level])]
    if subprocess.call(command) != 0:
        stop(
            f"The packages of {LOCKS[level]} could not be installed; pip's own words are above.\n"
            "A package index must be reachable this once; afterwards no network is needed."
        )
    # The development lock holds everything of the other one.
    done = {"run": fingerprint("run"), level: fingerprint(level)}
    with open(STAMP + ".new", "w") as stamp:
        json.dump(done, stamp)
    os.replace(STAMP + ".new", STAMP)


def main(level: str) -> None:
    """Bring the environment to the level asked for; two at once wait for each other."""
    use_a_new_enough_python()
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with open(os.path.join(ROOT, "build", ".environment"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if installed().get(level) != fingerprint(level):
            install(level)


if __name__ == "__main__":
    main(sys.argv[1])
