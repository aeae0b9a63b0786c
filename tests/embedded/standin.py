"""Start real databases with stand-ins for the product's processes."""

import os
import sys
from argparse import Namespace
from pathlib import Path

from deploy.embedded.process import ProcessSpec
from deploy.embedded.run import installation
from deploy.embedded.startup_error import StartupError
from deploy.embedded.supervisor import StopRequested

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
# Like gunicorn or Celery: a parent with children of its own.
FAMILY = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPER!r}])"
LINGERING = f"import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(1.5), sys.exit())); {SLEEPER}"
STUBBORN = f"import signal; [signal.signal(number, signal.SIG_IGN) for number in (2, 3, 15)]; {SLEEPER}"
DYING = "print('up', flush=True); import time; time.sleep(0.2); raise SystemExit('I cannot go on')"
FULL = DYING.replace("I cannot go on", "could not write to file: No space left on device")
KINDS = {
    "full": FULL,
    "sleeper": SLEEPER,
    "lingering": LINGERING,
    "family": FAMILY,
    "stubborn": STUBBORN,
    "dying": DYING,
}


def part(kind: str) -> ProcessSpec:
    """Return the spec of a stand-in, which is ready once it printed so."""
    command = [sys.executable, "-c", KINDS[kind]]
    return ProcessSpec(kind, command, dict(os.environ), ready=lambda process: "up" in process.read_log())


def main(data: str, port: str, *kinds: str) -> int:
    """Start the requested stand-ins, report it, and supervise."""
    options = Namespace(data=Path(data), port=int(port), host="127.0.0.1", fresh=False)
    try:
        with installation(options) as (_product, supervisor):
            supervisor.start(*(part(kind) for kind in kinds))
            print("ready", flush=True)
            supervisor.watch()
    except StopRequested:
        print("stopped", flush=True)
    except StartupError as complaint:
        print(complaint, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
