"""Check types with mypy; later runs use its daemon, which checks changes only.

The daemon starts from mypy's cache and ends when idle. The Django plugin imports settings and models into it and never
looks at them again, so a change of those needs a new daemon. Where the daemon fails or is unwanted, mypy judges.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
ARGUMENTS = ["--no-error-summary"]
FOLDER = Path("build")
IMPORTED_BY_PLUGIN = ("config/*.py", "*/apps.py", "*/models.py", "*/models/**/*.py")
CONFIGURATION = ("pyproject.toml", "requirements-dev.lock")
IDLE_S, PATIENCE_S = 1800, 600
CHECKED = (0, 1)  # how mypy ends when it could look: no errors, or some


def state() -> str:
    """Summarise what a daemon must have been started with to be right."""
    files = [Path(name) for name in CONFIGURATION]
    files += sorted(file for pattern in IMPORTED_BY_PLUGIN for file in Path().glob(pattern))
    digest = hashlib.sha256(sys.executable.encode())
    for file in files:
        digest.update(f"{file}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def daemon(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Speak to the daemon of the present state."""
    return _dmypy(FOLDER / f"mypy-daemon-{state()}.json", *arguments)


def _dmypy(status_file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "dmypy"), "--status-file", str(status_file), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as failure:
        return subprocess.CompletedProcess(command, 2, "", str(failure))


def judged_by_daemon() -> int | None:
    """Return how a running daemon judged; None when there is none or it failed."""
    if daemon("status").returncode != 0:
        return None
    done = daemon("run", "--", *ARGUMENTS, "--use-fine-grained-cache")
    if done.returncode not in CHECKED or "Daemon crashed" in done.stdout + done.stderr:
        return None
    print(done.stdout, end="")
    return done.returncode


def start_daemon() -> None:
    """Start a daemon for the next time, in place of those of other states."""
    for file in FOLDER.glob("mypy-daemon-*.json"):
        _dmypy(file, "kill")
        file.unlink(missing_ok=True)
    FOLDER.mkdir(exist_ok=True)
    daemon("start", "--timeout", str(IDLE_S), "--", *ARGUMENTS, "--use-fine-grained-cache")


def main(arguments: Sequence[str]) -> int:
    """Judge the types; a machine that is thrown away afterwards wants no daemon."""
    wanted = os.environ.get("MYPY_DAEMON") != "no"
    judged = judged_by_daemon() if wanted else None
    if judged is None:
        judged = subprocess.call([str(BIN / "mypy"), *ARGUMENTS, *arguments])
        if wanted and judged in CHECKED:
            start_daemon()
    return judged


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
