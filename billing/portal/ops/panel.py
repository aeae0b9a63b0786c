"""One card described: what is cut from it, who has it since when, what it earns, when it ends."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from billing.services import earnings
from broker.models import Health
from broker.portal.operations import OpsRequest, page
from broker.services.catalogue import short_name
from broker.services.fleet import cards
from broker.services.fleet.uses import Card, Run, Use
from tenants.services.refusals import Missing

DRAWN = {
    Use.SOLD: "k-sold",
    Use.SPOT: "k-spot",
    Use.RESERVED: "res",
    Use.FREE: "fre",
    Use.FRAGMENTED: "frag",
    Use.UNHEALTHY: "bad",
    Use.MAINTENANCE: "off",
}
BARRED = {Use.FREE: "k-free"}  # a bar has no outline to tell a free unit by
WORDLESS = {"res", "frag", "bad", "off"}  # a word on a pattern cannot be read


@dataclass(frozen=True)
class Line:
    """One run of units as a row; the price is that of one slice."""

    run: Run
    nano_per_hour: int | None
    currency: str


@dataclass(frozen=True)
class Panel:
    """A card with its drawing and its rows."""

    card: Card
    lines: tuple[Line, ...]

    @property
    def model(self) -> str:
        return short_name(self.card.model)

    @property
    def state(self) -> str:
        """The worst word there is: the node's unless the card itself is unhealthy."""
        if self.card.health is Health.UNHEALTHY:
            return "unhealthy"
        return "healthy" if self.card.node_state == "ready" else self.card.node_state.value

    @property
    def spans(self) -> list[tuple[int, int, str, str]]:
        return [(r.start, r.size, DRAWN[r.use], self._word(r)) for r in self.card.runs]

    @property
    def bar(self) -> list[tuple[str, int]]:
        return [(BARRED.get(r.use, DRAWN[r.use]), r.size) for r in self.card.runs]

    @property
    def words(self) -> str:
        return ", ".join(f"{r.size} {r.use}" for r in self.card.runs)

    @property
    def free_units(self) -> int:
        return self.card.units(Use.FREE)

    def _word(self, run: Run) -> str:
        if run.held is None or DRAWN[run.use] in WORDLESS:
            return ""
        whole = run.size == self.card.grid
        return "whole card" if whole else run.held.profile.partition(".")[0]


def panel_of(card: Card, priced: dict[str, tuple[int, str]]) -> Panel:
    """Describe a card; `priced` holds (10⁻⁹ units an hour, currency) of active leases."""
    unknown = (None, "")
    return Panel(
        card,
        tuple(
            Line(run, *(priced.get(run.held.lease, unknown) if run.held else unknown)) for run in card.runs
        ),
    )


def described(card: Card, *, now: datetime) -> Panel:
    """Describe a card with the prices of this moment; one query."""
    return panel_of(card, earnings.of_leases([s.lease for s in card.slices], now=now))


def card_or_missing(pk: str) -> Card:
    """Load one card; raises Missing for an id that names none."""
    found = cards.load(gpu=pk)
    if not found:
        raise Missing(f"There is no card {pk!r}.", fix="Go to the list of cards.")
    return found[0]


@require_safe
@page("card_panel", repeats=True)
def panel(request: OpsRequest, pk: str) -> HttpResponse:
    """Answer with the rail's panel for the card that is pointed at."""
    return render(request, "ops/_panel.html", {"chosen": described(card_or_missing(pk), now=request.now)})
