"""`make check`: everything that can be judged without running the product, each step even if one fails."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
MANAGE = [sys.executable, "-W", "ignore::RuntimeWarning", "manage.py"]
STEPS = {
    "format": [str(BIN / "ruff"), "format", "--check", "--output-format", "concise", "."],
    "lint": [str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", "."],
    "types": [str(BIN / "mypy"), "--no-error-summary"],
    "import contract": [str(BIN / "lint-imports"), "--no-cache"],
    "migrations complete": [*MANAGE, "makemigrations", "--check", "--dry-run"],
    "deployment": [*MANAGE, "check", "--deploy", "--fail-level", "WARNING"],
    "secrets": [sys.executable, "-m", "deploy.secret_scan"],
}


def settings() -> dict[str, str]:
    """Return an environment as in production, with a database that no step needs to reach."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GPUBROKER_")},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "GPUBROKER_SECRET_KEY": secrets.token_urlsafe(64),
        "GPUBROKER_DATABASE_URL": "postgresql:///nowhere?host=/nonexistent",
        "GPUBROKER_PUBLIC_URL": "https://gpubroker.example",
        "GPUBROKER_EVENTS_URL": "https://gpubroker.example",
    }


def main() -> int:
    """Run the steps and print one line each; the output of those that failed comes with it."""
    failed = []
    for name, command in STEPS.items():
        began = time.monotonic()
        done = subprocess.run(
            command, env=settings(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        passed = done.returncode == 0
        print(f"{'ok    ' if passed else 'FAILED'} {name} ({time.monotonic() - began:.1f} s)", flush=True)
        if not passed:
            failed.append(name)
            print(done.stdout.rstrip(), flush=True)
    if failed:
        print(f"make check: {len(failed)} of {len(STEPS)} failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
