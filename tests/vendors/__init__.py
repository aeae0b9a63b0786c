"""What real GPU clusters emit: node labels, ResourceSlices and pod statuses, each with its source."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def load_cases(name: str) -> dict[str, dict[str, Any]]:
    """Return the cases of a file by name."""
    lines = (FOLDER / f"{name}.jsonl").read_text().splitlines()
    return {case["case"]: case for case in map(json.loads, lines)}
