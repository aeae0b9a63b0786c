"""Replay report as one self-contained HTML file."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string

from billing.domain.money import format_minor
from billing.services.demo.replay.comparison import comparison_rows
from billing.services.demo.replay.comparison import format_figure as shown_figure

LEFT, RIGHT, TOP, BOTTOM = 40, 1000, 10, 195


def render_report(report: dict[str, Any]) -> str:
    """Return the HTML page for a report from `assemble_report`."""
    currency = report["currency"]
    tokens = (Path(settings.BASE_DIR) / "static" / "css" / "design_tokens.css").read_text()
    return render_to_string(
        "replay/report.html",
        {
            **report,
            **_use_chart(report["daily_slices"], report["slices"], report["gpus"]),
            "engines": [its["engine"] for its in report.get("beside", ())],
            "compared": [
                (label, [shown_figure(value) for value in values])
                for label, values in comparison_rows(report.get("beside", ()))
            ],
            "tokens": "\n".join(line for line in tokens.splitlines() if not line.startswith("@font-face")),
            "parts": _conservation_bar(report["conservation"], report["total_gpu_seconds"]),
            "clean": report["unexplained_gpu_seconds"] == 0,
            "revenue": [{**row, **_formatted(row, currency)} for row in report["revenue"]],
            "months": [
                {**row, "shown": _money(row["minor"], currency), "net": _money(row["net_minor"], currency)}
                for row in report["months"]
            ],
            "revenue_shown": _money(sum(row["minor"] for row in report["revenue"]), currency),
            "invoices": sum(row["invoices"] for row in report["months"]),
        },
    )


def _money(minor: int, currency: str) -> str:
    return format_minor(minor, currency)


def _formatted(row: dict[str, Any], currency: str) -> dict[str, str]:
    return {"shown": _money(row["minor"], currency), "hours": _tenths(row["unit_seconds"], 3600)}


def _tenths(amount: int, unit: int) -> str:
    """Write amount/unit with one decimal, without a float."""
    tenths = (amount * 10 + unit // 2) // unit
    return f"{tenths // 10:,}.{tenths % 10}"


def _conservation_bar(conservation: dict[str, str], total: int) -> list[dict[str, Any]]:
    """Lay the kinds end to end on a bar of 1000 units.

    Seconds come as decimal strings of GPU-seconds.
    """
    parts, begun = [], 0
    for kind, seconds in conservation.items():
        whole = int(seconds.partition(".")[0])
        width = 1000 * whole // total
        parts.append(
            {"kind": kind, "seconds": f"{whole:,}", "x": begun, "width": width, "share": _tenths(100 * whole, total)}
        )
        begun += width
    return parts


def _use_chart(days: list[tuple[str, int]], slices: int, gpus: int) -> dict[str, Any]:
    step = (RIGHT - LEFT) * 100 // max(len(days) - 1, 1)
    points = [
        (LEFT + step * number // 100, BOTTOM - (BOTTOM - TOP) * held // slices) for number, (_, held) in enumerate(days)
    ]
    line = " ".join(f"{x},{y}" for x, y in points)
    return {
        "line": line,
        "area": f"{LEFT},{BOTTOM} {line} {points[-1][0]},{BOTTOM}",
        "grid": [{"y": BOTTOM - (BOTTOM - TOP) * quarter // 4, "label": gpus * quarter // 4} for quarter in range(5)],
        "ticks": [
            {"x": points[number][0], "label": day[:7]} for number, (day, _) in enumerate(days) if day.endswith("-01")
        ],
    }
