"""Explanation of one invoice line: leases, rates and rounding."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from billing.domain.line_explanations import format_exact, format_fraction
from billing.domain.money import SYMBOLS, format_fixed_point
from billing.models import AdjustmentKind, InvoiceAdjustment, InvoiceLine
from billing.services.reports.line_explanations import CorrectionEffect, ExplainedLine, explain_invoice_line

MAX_LEASES = 12
BarSegment = tuple[str, int]


@dataclass(frozen=True)
class LineExplanationPanel:
    """Contents of the panel that explains a line."""

    explained: ExplainedLine
    month: tuple[datetime, datetime]

    @property
    def unlisted_lease_count(self) -> int:
        """Return how many leases are not listed one by one."""
        return self.explained.leases_total - len(self.explained.leases)

    @property
    def charged_period_count(self) -> int:
        return sum(1 for use in self.explained.leases for window in use.windows if window.charged)

    @property
    def rule(self) -> tuple[str, str, str]:
        """Return the multiplication, its exact result and the rounded one.

        Three empty strings for a line that is not billed by the hour.
        """
        if self.explained.rule is None:
            return "", "", ""
        left, _, right = self.explained.rule.sum.partition(" = ")
        exact, _, rounded = right.partition(" → ")
        return left, exact, rounded

    @property
    def exact_amount(self) -> str:
        """Return the exact amount of its seconds, before the month's adjustments."""
        return format_fraction(
            self.explained.line.charged_num - sum(each.exact_num for each in self.explained.corrected)
        )

    @property
    def adjusted_amount(self) -> tuple[str, str]:
        """Return the exact amount after the month's adjustments, as a fraction and in decimals."""
        num = int(self.explained.line.exact_num)
        return format_fraction(num), format_exact(num)

    @property
    def changes(self) -> list[tuple[InvoiceAdjustment | CorrectionEffect, str, str]]:
        """Return corrections and adjustments with their exact absolute amounts and how they were computed."""
        listed: list[InvoiceAdjustment | CorrectionEffect] = [*self.explained.corrected, *self.explained.month]
        return [(each, format_exact(abs(int(each.exact_num))), self._by(each)) for each in listed]

    def _by(self, each: InvoiceAdjustment | CorrectionEffect) -> str:
        """Return a commitment's seconds and price: `36,000 s at 0.500000000 €/h`."""
        if not isinstance(each, InvoiceAdjustment) or each.kind not in (
            AdjustmentKind.COMMIT,
            AdjustmentKind.SHORTFALL,
        ):
            return ""
        unit = SYMBOLS.get(self.explained.invoice.currency, self.explained.invoice.currency)
        return _("{units:,} s at {thousands} {unit}/h").format(
            units=each.units,
            thousands=format_fixed_point(int(each.terms["nano_per_hour"]), 9, thousands=","),
            unit=unit,
        )

    @property
    def timeline_segments(self) -> list[BarSegment]:
        """Return the month as a bar: charged by any listed lease, or not."""
        start, end = self.month
        spans = [(w.start, w.end) for use in self.explained.leases for w in use.windows if w.charged]
        return bar_segments(merge_intervals(spans), start, end)

    @property
    def timeline_label(self) -> str:
        return _("{windows} charged periods in the month").format(windows=self.charged_period_count)


def build_line_panel(line: InvoiceLine) -> LineExplanationPanel:
    """Explain a line, with up to a dozen of its leases in detail."""
    span = line.invoice.period.span
    return LineExplanationPanel(explain_invoice_line(line, most=MAX_LEASES), (span.lower, span.upper))


def merge_intervals(spans: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Join intervals that touch or overlap."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def bar_segments(spans: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime) -> list[BarSegment]:
    """Return the segments of a bar from start to end, in seconds."""
    second, at = timedelta(seconds=1), start
    segments: list[BarSegment] = []
    for begin, over in spans:
        segments += [
            ("fill-free", max(begin - at, timedelta(0)) // second),
            ("series-1", (over - max(begin, at)) // second),
        ]
        at = over
    return [*segments, ("fill-free", max(end - at, timedelta(0)) // second)]
