"""Replays of one trace on one fleet by different rules, set side by side."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SAME = ("trace", "model", "cards", "tenants", "seed", "asked")  # else there is nothing to compare
LABELS = {
    "sold_percent_while_waiting": "Sold while somebody waited, % of the fleet",
    "sold_percent_until_last_request": "Sold until the last request, % of the fleet",
    "hours_somebody_waited": "Hours in which somebody waited",
    "queued": "Leases that waited",
    "queued_p50_s": "Their wait, p50, s",
    "queued_p95_s": "Their wait, p95, s",
    "longest_wait_s": "Longest wait, s",
    "slices.at_once_percent": "Slices placed at once, %",
    "slices.mean_wait_s": "Mean wait for a slice, s",
    "cards.at_once_percent": "Single whole cards placed at once, %",
    "cards.mean_wait_s": "Mean wait for a whole card, s",
    "gangs.at_once_percent": "Gangs placed at once, %",
    "gangs.mean_wait_s": "Mean wait for a gang, s",
}


class NotBeside(Exception):
    """The file is no replay that this one can stand beside; the message says why."""


def read(path: Path) -> dict[str, Any]:
    """Read the report of an earlier replay, or raise NotBeside."""
    try:
        found = json.loads(path.read_text())
        return _column(found)
    except OSError as error:
        raise NotBeside(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NotBeside(
            f"{path} is no report of a replay: it wants a replay.json of this version."
        ) from error


def must_match(earlier: dict[str, Any], asked: dict[str, Any]) -> None:
    """Raise NotBeside for a replay of something else than was asked for."""
    for name in SAME:
        if earlier[name] != asked[name]:
            raise NotBeside(
                f"The earlier replay is of another {name} ({earlier[name]}, not {asked[name]}); both must be alike."
            )


def columns(earlier: Sequence[dict[str, Any]], report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the earlier replays and this one, each by its rule with the figures that are compared."""
    return [*earlier, _column(report)]


def table(columns: Sequence[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return a row by figure, with a value for each replay."""
    return [(label, [its["figures"][name] for its in columns]) for name, label in LABELS.items()]


def shown(value: str | int | None) -> str:
    """Write a figure; nothing is a dash."""
    if isinstance(value, int):
        return f"{value:,}"
    return value or "–"


def _column(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in (*SAME, "engine", "digest")} | {
        "figures": {name: _at(report, name) for name in LABELS}
    }


def _at(report: dict[str, Any], name: str) -> Any:
    group, _, key = name.rpartition(".")
    return report["placed"][group][key] if group else report[key]
