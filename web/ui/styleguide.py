"""Style guide page: every component in every state, with consistent sample values."""

from datetime import UTC, datetime, timedelta
from math import sin
from typing import Any

from django.conf import settings
from django.http import Http404
from django.views.generic import TemplateView

SAMPLE_NOW = datetime(2026, 11, 19, 14, 32, tzinfo=UTC)
LEASE_STATES = [
    "requested",
    "queued",
    "provisioning",
    "active",
    "stopping",
    "stopped",
    "releasing",
    "released",
    "failed",
]
INVOICE_STATES = ["draft", "closing", "finalized", "partially_paid", "paid", "uncollectible", "reported", "void"]
FLEET_STATES = ["healthy", "cordoned", "draining", "maintenance", "unreachable", "unhealthy"]
COLOUR_TOKENS = {
    "bg": "page",
    "surface": "panel",
    "sunken": "wells",
    "line": "hairline",
    "edge": "controls 3:1",
    "ink-3": "meta",
    "ink-2": "second",
    "ink": "text",
    "accent": "links",
    "accent-fill": "buttons",
    "ok-mark": "active, paid",
    "wait-mark": "queued, due",
    "bad-mark": "failed",
    "keep-mark": "held, reserved",
    "still-mark": "stopped",
}
SERIES_COLOURS = {
    "s1": "series 1",
    "s2": "series 2",
    "s3": "series 3",
    "s4": "series 4",
    "s5": "series 5",
    "s6": "other",
    "sl-sold": "sold",
    "sl-spot": "sold, spot",
    "sl-idle": "sold, idle",
    "sl-free": "free",
}
GPU_HOURS = [
    ("fill-sold", 1392.6, "Billed"),
    ("series-6", 4.1, "Courtesy"),
    ("fill-free", 294.8, "Idle"),
    ("fragmented", 63.9, "Fragmented"),
    ("reserved", 71.5, "Reserved, unused"),
    ("unhealthy", 9.4, "Unhealthy"),
    ("maintenance", 24.0, "Maintenance"),
]
# one GPU of each kind, as the map draws them
SAMPLE_GPUS: list[list[tuple[int, int, str]]] = [
    [(0, 8, "sold")],
    [(0, 2, "sold"), (2, 1, "sold"), (3, 1, "free"), (4, 4, "sold")],
    [(0, 4, "spot"), (4, 2, "sold"), (6, 1, "sold"), (7, 1, "fragmented")],
    [(0, 4, "idle"), (4, 4, "sold")],
    [(0, 2, "free"), (2, 2, "reserved"), (4, 4, "free")],
    [(0, 8, "free")],
    [(0, 8, "unhealthy")],
    [(0, 8, "maintenance")],
]


def sample_fleet(clusters: int, nodes: int) -> list[dict[str, Any]]:
    """Return a sample fleet, its GPUs varied from node to node."""

    def gpu(cluster: int, node: int, place: int) -> dict[str, Any]:
        spans = SAMPLE_GPUS[(place * 3 + node * 5 + cluster) % len(SAMPLE_GPUS)]
        if spans[0][2] in {"unhealthy", "maintenance"} and (node + place) % 5:
            spans = SAMPLE_GPUS[0]
        sold = sum(size for _, size, kind in spans if kind in {"sold", "spot", "idle"})
        return {
            "url": "#fleet",
            "words": f"north-{cluster + 1} n{node + 1:02d} GPU {place}: {sold} of 8 sold",
            "summary": f"{sold}/8",
            "index": place,
            "spans": spans,
            "current": (cluster, node, place) == (0, 1, 3),
        }

    return [
        {
            "name": f"north-{c + 1}",
            "note": f"H200 · {nodes * 8} GPUs",
            "rows": [
                {
                    "name": f"n{n + 1:02d}",
                    "words": f"north-{c + 1} n{n + 1:02d}",
                    "url": "#fleet",
                    "gpus": [gpu(c, n, p) for p in range(8)],
                }
                for n in range(nodes)
            ],
        }
        for c in range(clusters)
    ]


def sample_days() -> list[dict[str, Any]]:
    """Return a month of spend, nineteen days known and the rest forecast."""
    known = [
        {
            "label": str(day) if day in {1, 5, 10, 15} else "",
            "amounts": tuple(
                round(share * (6000 + 3500 * sin(day * 1.7)) * (0.5 if day % 7 in {1, 0} else 1))
                for share in (0.4, 0.22, 0.23, 0.08, 0.07)
            ),
        }
        for day in range(1, 20)
    ]
    expected = [
        {
            "label": str(day) if day in {20, 25, 30} else "",
            "expected": 5600 if day % 7 in {1, 0} else 9800,
            "low": 4300 if day % 7 in {1, 0} else 7900,
            "high": 6900 if day % 7 in {1, 0} else 11700,
        }
        for day in range(20, 31)
    ]
    return known + expected


def sample_running_total() -> dict[str, Any]:
    """Return November's running total against a budget of €3,000."""
    done = [(day / 30, 164_218 * (day + sin(day) * 0.4) / 18.5) for day in range(19)]
    forecast = [
        (day / 30, 164_218 + (day - 18) * 8_482, 164_218 + (day - 18) * 7_200, 164_218 + (day - 18) * 9_980)
        for day in range(20, 31, 2)
    ]
    return {
        "done": tuple(done),
        "limit": 300_000,
        "limit_word": "Budget €3,000",
        "forecast": tuple(forecast),
        "forecast_word": "€2,660 likely",
        "ticks": ((0.02, "1"), (0.33, "10"), (0.66, "20"), (1.0, "30")),
    }


def sample_plot() -> dict[str, Any]:
    """Return two hours of a metric, with a gap and a marked event."""
    start = int(SAMPLE_NOW.timestamp()) - 7200
    times = [start + 60 * i for i in range(120)]
    values = [None if 52 <= i <= 62 else round(72 + 14 * sin(i / 5) + 6 * sin(i * 1.9), 1) for i in range(120)]
    gap = {"at": times[52], "to": times[62], "colour": "--bad-mark"}
    return {
        "tz": "Etc/UTC",
        "max": 100,
        "unit": " %",
        "size": 52,
        "series": [{"colour": "--s1", "fill": True}],
        "marks": [gap],
        "rows": [times, values],
    }


def sample_list(options: list[dict[str, str]]) -> dict[str, Any]:
    """Return an operators' list that is filtered and has pages."""
    shown_by = {
        "states": options,
        "errors": {},
        "typed": {"q": "", "tenant": "Fjord", "since": "", "until": ""},
        "offered": {"q", "tenant", "days", "state"},
        "words": "",
        "tenant": "Fjord",
        "tenant_name": "Fjord Climate",
        "days": "",
        "kept": [],
        "active": True,
        "urls": dict.fromkeys(("q", "tenant", "days", "clear"), "#table"),
    }
    return {
        "spec": {"name": "sample"},
        "filter": shown_by,
        "rows": ["October 2026"],
        "count_text": "1,204 rows",
        "first": 1,
        "end": 1,
        "paged": True,
        "before": "",
        "after": "#table",
        "csv": "#table",
        "totals": [{"label": "Total", "amounts": ["€26.59"]}],
    }


def sample_context() -> dict[str, Any]:
    """Return everything the style guide shows."""
    busy = [86 + 7 * sin(i / 2) + 3 * sin(i * 2.3) for i in range(20)]
    idle = [60 if i < 9 else max(2, 60 - (i - 9) * 9) for i in range(24)]
    options = [{"label": word, "url": "#choices"} for word in ("Day", "Week", "Month")]
    tabs = [{"label": word, "url": "#choices"} for word in ("Connect", "Metrics", "Cost")]
    options[0]["current"] = tabs[0]["current"] = "yes"
    return {
        "now": SAMPLE_NOW,
        "colours": COLOUR_TOKENS,
        "series": SERIES_COLOURS,
        "lease_states": LEASE_STATES,
        "invoice_states": INVOICE_STATES,
        "fleet_states": FLEET_STATES,
        "options": options,
        "list": sample_list(options),
        "tabs": tabs,
        "classes": [{"value": "on_demand", "label": "On-demand"}, {"value": "spot", "label": "Spot −54 %"}],
        "ends": SAMPLE_NOW + timedelta(hours=3, minutes=9),
        "started": SAMPLE_NOW - timedelta(days=36, hours=11),
        "busy": busy,
        "idle": idle,
        "gap": [None if 10 <= i <= 14 else value for i, value in enumerate(busy)],
        "steps": [
            {"word": "Requested", "text": "14:31:02"},
            {"word": "Hold placed", "text": "+0.1 s"},
            {"word": "Placed", "text": "+0.3 s"},
            {"word": "Image", "text": "+3.9 s"},
            {"word": "Active", "text": "+8.6 s"},
            {"word": "Now", "text": "4 h 51 min", "when": "now"},
            {"word": "Stops", "text": "17:41", "when": "next"},
        ],
        "starts": [2, 5, 14, 27, 34, 26, 20, 13, 8, 5, 4, 3, 1],
        "gpu": [
            (0, 1, "other-slice", "1g"),
            (1, 1, "free-slice", ""),
            (2, 2, "free-slice", "2g fits"),
            (4, 4, "own-slice", "yours · 3g"),
        ],
        "gpu_hours": [(kind, amount) for kind, amount, _ in GPU_HOURS],
        "gpu_hours_keys": [{"kind": k, "label": word, "value": f"{amount:,.1f}"} for k, amount, word in GPU_HOURS],
        "days": sample_days(),
        "day_classes": ["series-1", "series-5", "series-3", "series-2", "series-6"],
        "day_keys": [
            {"kind": "series-1", "label": "H200 whole GPU"},
            {"kind": "series-5", "label": "H200 slices"},
            {"kind": "series-3", "label": "H100 slices"},
            {"kind": "series-2", "label": "A100 slices, spot"},
            {"kind": "series-6", "label": "Volumes and other"},
        ],
        "track": sample_running_total(),
        "plot": sample_plot(),
        "fleet": sample_fleet(1, 2),
        "large_fleet": sample_fleet(3, 7),
        "call": SAMPLE_CALL,
        "command": SAMPLE_COMMAND,
    }


SAMPLE_COMMAND = "gpub launch --quote quo_7Q2M9d --name fold-batch-22"
SAMPLE_CALL = """curl -X POST https://gpub.example/api/v1/leases \\
  -H "Authorization: Bearer $GPB_TOKEN" \\
  -H "Idempotency-Key: 9f2c1e7a" \\
  -d '{"quote": "quo_7Q2M9d"}'"""


class StyleguideView(TemplateView):
    """The style guide page: for operators, in development."""

    template_name = "styleguide/styleguide.html"
    extra_context = sample_context()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not (settings.STYLE_GUIDE and request.user.is_staff):
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(explain="explain" in self.request.GET, **kwargs)
