"""Command `make check`: every check that does not run the product.

All steps run even if one fails.
"""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
MANAGE = [sys.executable, "-W", "ignore::RuntimeWarning", "manage.py"]
STEPS = {
    # The longest first: the others run beside it.
    "types": [sys.executable, "-m", "deploy.type_check"],
    "import contract": [str(BIN / "lint-imports"), "--no-cache"],
    "migrations complete": [*MANAGE, "makemigrations", "--check", "--dry-run"],
    "deployment": [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"],
    "format": [str(BIN / "ruff"), "format", "--check", "--output-format", "concise", "."],
    "template format": [str(BIN / "djangofmt"), "--check", "templates"],
    "lint": [str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", "."],
    "glossary": [sys.executable, "-m", "deploy.glossary_check"],
    "secrets": [sys.executable, "-m", "deploy.secret_scan"],
}


@dataclass(frozen=True)
class Result:
    """How a step ended, and what it printed."""

    passed: bool
    took_s: float
    output: str


def settings() -> dict[str, str]:
    """Return a production-like environment, with a database that no step connects to."""
    # Compiled files are worth seconds in each step, also where the machine says to write none.
    ours = ("GPUBROKER_", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "GPUBROKER_SECRET_KEY": secrets.token_urlsafe(64),
        "GPUBROKER_DATABASE_URL": "postgresql:///nowhere?host=/nonexistent",
        "GPUBROKER_PUBLIC_URL": "https://gpubroker.example",
        "GPUBROKER_EVENTS_URL": "https://gpubroker.example",
    }


def run(command: Sequence[str], env: Mapping[str, str]) -> Result:
    """Run one step to its end."""
    began = time.monotonic()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Result(done.returncode == 0, time.monotonic() - began, done.stdout.rstrip())


def main() -> int:
    """Run the steps side by side; print a line each and the output of failures."""
    env, failed = settings(), []
    with ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0)))) as pool:
        running = {name: pool.submit(run, command, env) for name, command in STEPS.items()}
        for name, step in running.items():
            result = step.result()
            print(f"{'ok    ' if result.passed else 'FAILED'} {name} ({result.took_s:.1f} s)", flush=True)
            if not result.passed:
                failed.append(name)
                print(result.output, flush=True)
    if failed:
        print(f"make check: {len(failed)} of {len(STEPS)} failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
