"""The explain drawer: one invoice line opened down to the seconds behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.domain.explain import exactly, fraction
from billing.domain.money import SYMBOLS, fixed_point
from billing.models import InvoiceLine, MonthCharge, MonthKind
from billing.services.explain import Corrected, Explained, explain

SHOWN = 12
Part = tuple[str, int]


@dataclass(frozen=True)
class Drawer:
    """What the drawer shows."""

    told: Explained
    month: tuple[datetime, datetime]

    @property
    def more(self) -> int:
        """Leases that are not listed one by one."""
        return self.told.leases_total - len(self.told.leases)

    @property
    def windows(self) -> int:
        return sum(1 for use in self.told.leases for window in use.windows if window.charged)

    @property
    def rule(self) -> tuple[str, str, str]:
        """The multiplication, its exact result and the rounded one; of what is of no hours, nothing."""
        if self.told.rule is None:
            return "", "", ""
        left, _, right = self.told.rule.sum.partition(" = ")
        exact, _, rounded = right.partition(" → ")
        return left, exact, rounded

    @property
    def fraction(self) -> str:
        """What its seconds come to, before the month takes anything off."""
        return fraction(self.told.line.charged_num - sum(each.exact_num for each in self.told.corrected))

    @property
    def left(self) -> tuple[str, str]:
        """What is left after the month, as a fraction, and with its decimals."""
        num = int(self.told.line.exact_num)
        return fraction(num), exactly(num)

    @property
    def carried(self) -> list[tuple[MonthCharge | Corrected, str, str]]:
        """What corrections changed and the month took off or added, each exact and without its sign, and by what."""
        listed: list[MonthCharge | Corrected] = [*self.told.corrected, *self.told.month]
        return [(each, exactly(abs(int(each.exact_num))), self._by(each)) for each in listed]

    def _by(self, each: MonthCharge | Corrected) -> str:
        """Tell of how many seconds a commitment is, and at which price: `36,000 s at 0.500000000 €/h`."""
        if not isinstance(each, MonthCharge) or each.kind not in (MonthKind.COMMIT, MonthKind.SHORTFALL):
            return ""
        unit = SYMBOLS.get(self.told.invoice.currency, self.told.invoice.currency)
        return (
            f"{each.units:,} s at {fixed_point(int(each.terms['nano_per_hour']), 9, thousands=',')} {unit}/h"
        )

    @property
    def parts(self) -> list[Part]:
        """The month as a bar: when any of the listed leases was charged on this line, and when none was."""
        start, end = self.month
        spans = [(w.start, w.end) for use in self.told.leases for w in use.windows if w.charged]
        return stripes(merged(spans), start, end)

    @property
    def words(self) -> str:
        return f"{self.windows} charged stretches in the month"


def opened(line: InvoiceLine) -> Drawer:
    """Explain a line; a dozen of its leases in detail."""
    span = line.invoice.period.span
    return Drawer(explain(line, most=SHOWN), (span.lower, span.upper))


def merged(spans: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Join stretches that touch or overlap."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def stripes(spans: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime) -> list[Part]:
    """Return the parts of a bar from start to end, in seconds."""
    second, at = timedelta(seconds=1), start
    parts: list[Part] = []
    for begin, over in spans:
        parts += [
            ("k-free", max(begin - at, timedelta(0)) // second),
            ("f1", (over - max(begin, at)) // second),
        ]
        at = over
    return [*parts, ("k-free", max(end - at, timedelta(0)) // second)]
