"""Move the process and its database sessions to two other time zones than UTC: `TESTS_IN_OTHER_TIME_ZONES=1`.

Django puts its process and its sessions into UTC, whatever the machine says. Nothing may depend on that: a worker
started otherwise, a psql session or a report of somebody else's must come to the same months and the same seconds.
"""

import os
import time

PROCESS, SESSIONS = "Asia/Kolkata", "America/St_Johns"


def move() -> None:
    """Set other time zones for process and new connections."""
    from django.db import connections

    os.environ["TZ"] = PROCESS
    time.tzset()
    for alias in connections:
        connections[alias].close()
        settings = connections.settings[alias]
        settings["TIME_ZONE"] = SESSIONS
        options = settings["OPTIONS"]
        options["options"] = options["options"].replace("timezone=UTC", f"timezone={SESSIONS}")
        vars(connections[alias]).pop("timezone", None)  # what was asked for before is remembered there
        vars(connections[alias]).pop("timezone_name", None)
