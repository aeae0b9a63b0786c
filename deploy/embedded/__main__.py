"""Command line `python -m deploy.embedded run`."""

import argparse
import sys
from pathlib import Path

from deploy.embedded import folders
from deploy.embedded.port_check import parse_port
from deploy.embedded.run import run
from deploy.embedded.startup_error import StartupError


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.embedded")
    parser.add_argument("what", choices=["run"])
    parser.add_argument("--host", default="127.0.0.1", help="address of this machine to listen on")
    parser.add_argument("--port", default="8000", help="port of the web server; live events use the next one")
    parser.add_argument("--data", type=Path, help="folder of the state; by default one for this checkout")
    parser.add_argument("--fresh", action="store_true", help="delete the state of earlier starts first")
    return parser.parse_args()


def main() -> int:
    """Run the command; print why it failed without a traceback."""
    chosen = options()
    try:
        chosen.port = parse_port(chosen.port)
        return run(chosen)
    except StartupError as complaint:
        print(complaint, file=sys.stderr)
    except OSError as failure:
        print(
            folders.describe_os_error(failure, chosen.data or folders.default_data_directory()),
            file=sys.stderr,
        )
    except KeyboardInterrupt:  # before there was anything to stop
        print("\nStopped. Start again with: make run", flush=True)
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
