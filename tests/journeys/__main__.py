"""Print how many source files each traced request flow executes, as JSON."""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["GPUBROKER_LOG_LEVEL"] = "ERROR"
django.setup()

from tests.journeys import journeys  # noqa: E402


def main() -> int:
    counts = {name: len(trace().functions) for name, trace in journeys.JOURNEYS.items()}
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
