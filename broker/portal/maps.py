"""The fleet map's cards, coloured by state, by tenant or by price class, and its legend with amounts."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from django.urls import reverse

from broker.domain.states import PriceClass
from broker.services.catalogue import short_name
from broker.services.fleet.summary import share
from broker.services.fleet.uses import CHARGED, SCALE, Card, Slice, Use, scaled

VIEWS = {"state": "State", "tenant": "Tenant", "class": "Price class"}
LARGE_UP_TO = 160  # above it the map is dense, and says less on each card
KINDS = {
    Use.SOLD: "sold",
    Use.SPOT: "spot",
    Use.RESERVED: "res",
    Use.FREE: "free",
    Use.FRAGMENTED: "frag",
    Use.UNHEALTHY: "bad",
    Use.MAINTENANCE: "off",
}
WORDS = {
    "sold": "sold",
    "spot": "sold as spot",
    "res": "reserved",
    "free": "free",
    "frag": "fragmented",
    "bad": "unhealthy",
    "off": "maintenance",
}
CLASSES = {PriceClass.ON_DEMAND: "f1", PriceClass.SPOT: "f5", PriceClass.RESERVED: "f3"}
CLASS_WORDS = {"f1": "on-demand", "f5": "spot", "f3": "reserved"}
TOP = ("f1", "f2", "f3", "f4", "f5")
OTHER = "f6"
UNHELD = ("free", "frag", "bad", "off")
Spans = tuple[tuple[int, int, str], ...]  # start, size, kind


@dataclass(frozen=True)
class Key:
    """One entry of the legend: a kind of the map, its word and how many cards it comes to."""

    kind: str
    label: str
    amount: int  # in parts of SCALE

    @property
    def tenths(self) -> str:
        return tenths(self.amount)

    @property
    def square(self) -> str:
        """The class of its square in a legend."""
        return f"k-{self.kind}" if self.kind in ("sold", "spot", "free") else self.kind

    @property
    def path(self) -> str:
        """Its square in the legend of a dense map, where height speaks too."""
        return {"res": "M0 0h12v4H0z", "frag": "M0 9h12v3H0z", "off": "M0 5h12v2H0z"}.get(
            self.kind, "M0 0h12v12H0z"
        )


@dataclass(frozen=True)
class Map:
    """All that the page draws."""

    by: str
    blocks: list[dict[str, Any]]
    keys: list[Key]
    cards: int

    @property
    def dense(self) -> bool:
        return self.cards > LARGE_UP_TO

    @property
    def words(self) -> str:
        return f"Fleet map, {self.cards:,} cards. Arrow keys move between cards, Enter opens one."


def draw(cards: Sequence[Card], by: str, *, current: str = "") -> Map:
    """Arrange cards by cluster and node, and paint their runs."""
    painted, words = _painted(cards, by)
    amounts: Counter[str] = Counter()
    for card in cards:
        for _, size, kind in painted[card.id]:
            amounts[kind] += scaled(size, card.grid)
    keys = [Key(kind, word, amounts[kind]) for kind, word in words.items() if kind in UNHELD or amounts[kind]]
    brief = len(cards) > LARGE_UP_TO
    blocks = [
        _block(name, list(its), painted, current=current, brief=brief)
        for name, its in groupby(cards, key=lambda card: card.cluster_name)
    ]
    return Map(by, blocks, keys, len(cards))


def _painted(cards: Sequence[Card], by: str) -> tuple[dict[str, Spans], dict[str, str]]:
    """Colour every run of every card, and say what each colour means."""
    rest = {kind: WORDS[kind] for kind in UNHELD}
    if by == "tenant":
        kinds, words = _tenants(cards)
        return _by_holder(cards, lambda held: kinds.get(held.tenant, OTHER)), words | rest
    if by == "class":
        return _by_holder(cards, lambda held: CLASSES[held.price_class]), CLASS_WORDS | rest
    # Cards that look alike are painted once: the looks live as long as the cards, so their ids name them.
    looks = {id(card.look): card.look for card in cards}
    spans = {
        name: tuple((start, size, KINDS[use]) for start, size, use, _ in look.runs)
        for name, look in looks.items()
    }
    return {card.id: spans[id(card.look)] for card in cards}, WORDS


def _by_holder(cards: Sequence[Card], colour: Callable[[Slice], str]) -> dict[str, Spans]:
    return {
        card.id: tuple((r.start, r.size, colour(r.held) if r.held else KINDS[r.use]) for r in card.runs)
        for card in cards
    }


def _tenants(cards: Sequence[Card]) -> tuple[dict[str, str], dict[str, str]]:
    """Give the five largest tenants a colour of their own."""
    held: Counter[tuple[str, str]] = Counter()
    for card in cards:
        for s in card.slices:
            held[s.tenant, s.tenant_name] += scaled(s.size, card.grid)
    largest = sorted(held, key=lambda tenant: (-held[tenant], tenant))[: len(TOP)]
    kinds = {tenant: kind for (tenant, _), kind in zip(largest, TOP, strict=False)}
    words = {kind: name for (_, name), kind in zip(largest, TOP, strict=False)}
    return kinds, words | {OTHER: "other tenants"}


def _block(
    name: str, cards: list[Card], painted: dict[str, Spans], *, current: str, brief: bool
) -> dict[str, Any]:
    models = ", ".join(sorted({short_name(card.model) for card in cards}))
    sold = sum(scaled(card.units(*CHARGED), card.grid) for card in cards)
    return {
        "name": name,
        "note": f"{models} · {len(cards)} cards · {share(sold, len(cards) * SCALE) // 10} % sold",
        "rows": [
            {
                "name": node,
                "words": f"{name} {node}",
                "url": node_page(pk),
                "cards": [_card(card, painted[card.id], current=current, brief=brief) for card in its],
            }
            for (node, pk), its in groupby(cards, key=lambda card: (card.node_name, card.node))
        ],
    }


@lru_cache(maxsize=4096)
def node_page(pk: str) -> str:
    """Return where a node's page is: the same answer every few seconds, for each of a hundred nodes."""
    return reverse("ops-node", args=[pk])


def _card(card: Card, spans: Spans, *, current: str, brief: bool) -> dict[str, Any]:
    sold, aside = card.units(*CHARGED), f", {KINDS_ASIDE[card.idle_use]}" if card.idle_use else ""
    words = f"{card.cluster_name} {card.node_name} card {card.index}: {sold} of {card.grid} sold{aside}"
    if not brief:
        words += "".join(
            f"; {s.profile} {s.tenant_name}, since {s.since:%d %b %H:%M} UTC" for s in card.slices
        )
    return {
        "url": "" if brief else reverse("ops-card", args=[card.id]),
        "words": words,
        "told": f"{sold}/{card.grid}{aside}",
        "index": card.index,
        "spans": spans,
        "cells": card.grid,
        "current": card.id == current,
        "ill": card.idle_use is Use.UNHEALTHY,
    }


KINDS_ASIDE = {Use.UNHEALTHY: "unhealthy", Use.MAINTENANCE: "in maintenance"}


def tenths(scaled_cards: int) -> str:
    """Write parts of SCALE as cards with one decimal, rounded half up."""
    count = (scaled_cards * 20 + SCALE) // (2 * SCALE)
    return f"{count // 10:,}.{count % 10}"
