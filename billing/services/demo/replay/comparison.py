"""Comparison of replays of one trace on one fleet under different rules."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMPARED_INPUTS = ("trace", "model", "gpus", "tenants", "seed", "requests")  # inputs that must be equal
LABELS = {
    "sold_percent_while_waiting": "Sold while requests were queued, % of the fleet",
    "sold_percent_until_last_request": "Sold until the last request, % of the fleet",
    "hours_somebody_waited": "Hours with queued requests",
    "queued": "Queued leases",
    "queued_p50_s": "Queue time, p50, s",
    "queued_p95_s": "Queue time, p95, s",
    "longest_wait_s": "Longest queue time, s",
    "slices.at_once_percent": "Slices placed immediately, %",
    "slices.mean_wait_s": "Mean queue time of slices, s",
    "gpus.at_once_percent": "Single whole GPUs placed immediately, %",
    "gpus.mean_wait_s": "Mean queue time of whole GPUs, s",
    "gangs.at_once_percent": "Gangs placed immediately, %",
    "gangs.mean_wait_s": "Mean queue time of gangs, s",
}


class NotComparable(Exception):
    """The file is not a comparable replay; the message says why."""


def read_report(path: Path) -> dict[str, Any]:
    """Read the report of an earlier replay, or raise NotComparable."""
    try:
        found = json.loads(path.read_text())
        return _column(found)
    except OSError as error:
        raise NotComparable(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotComparable(f"{path} is not a replay report. Use a replay.json of this version.") from error


def check_comparable(earlier: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Raise NotComparable if the earlier replay has other inputs."""
    for name in COMPARED_INPUTS:
        if earlier[name] != inputs[name]:
            raise NotComparable(
                f"The earlier replay differs in its {name}: {earlier[name]}, not {inputs[name]}. Both must be equal."
            )


def comparison_columns(earlier: Sequence[dict[str, Any]], report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier replays and this one, each with its rule and compared figures."""
    return [*earlier, _column(report)]


def comparison_rows(columns: Sequence[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return a row per figure, with a value for each replay."""
    return [(label, [its["figures"][name] for its in columns]) for name, label in LABELS.items()]


def format_figure(value: str | int | None) -> str:
    """Write a figure; a missing one is a dash."""
    if isinstance(value, int):
        return f"{value:,}"
    return value or "–"


def _column(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in (*COMPARED_INPUTS, "engine", "digest")} | {
        "figures": {name: _figure(report, name) for name in LABELS}
    }


def _figure(report: dict[str, Any], name: str) -> Any:
    group, _, key = name.rpartition(".")
    return report["placed"][group][key] if group else report[key]
