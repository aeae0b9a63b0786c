"""Whether an object in a cluster is as we would write it."""

from collections.abc import Mapping
from typing import Any


def covers(there: Any, wanted: Any) -> bool:
    """Tell whether all that we want is there; what the server adds by itself is no difference."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            covers(there[name], value) if name in there else not value  # empty is left out
            for name, value in wanted.items()
            if name != "image"  # of the dead man's switch: whatever was installed
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(covers, there, wanted))
    return bool(there == wanted)
