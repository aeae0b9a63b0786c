"""`python -m deploy.embedded run`."""

import argparse
import sys
from pathlib import Path

from deploy.embedded import folders
from deploy.embedded.complaint import Complaint
from deploy.embedded.run import run


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.embedded")
    parser.add_argument("what", choices=["run"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--data", type=Path, help="where the state lies; this checkout's own folder by default"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the state of earlier starts")
    return parser.parse_args()


def main() -> int:
    """Do what was asked; a Complaint is for the person, anything else is a defect of ours."""
    chosen = options()
    try:
        return run(chosen)
    except Complaint as complaint:
        sys.stdout.flush()
        print(f"\n{complaint}", file=sys.stderr)
    except OSError as failure:
        print(f"\n{folders.describe(failure, chosen.data or folders.usual())}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
