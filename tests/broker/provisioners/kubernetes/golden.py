"""Compare rendered objects with files; `GOLDEN=write` rewrites them."""

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"


def expect(name: str, objects: list[dict[str, Any]]) -> None:
    """Compare objects with the golden file of this name."""
    path, text = FOLDER / f"{name}.json", json.dumps(objects, indent=1, sort_keys=True) + "\n"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; GOLDEN=write accepts the change, then read the diff"
