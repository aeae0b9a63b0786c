"""What needs an operator's attention: the control room's list, and the bell of every page.

The bell polls for both at once, so that list, sentence, bell and the tab's title always agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.services.catalogue import price_list
from billing.services.reports import pending_decisions
from broker.services.reports import attention_items, cluster_attention, fleet_gpus, fleet_summary
from broker.services.reports.gpu_usage import FleetGpu
from web.portal.layout.operator_figures import OperatorFigures, format_count, load_operator_figures
from web.portal.operators.page_context import OperatorRequest, operator_page


@dataclass(frozen=True, slots=True)
class AttentionPage:
    """What needs attention, worst first."""

    needs: list[attention_items.AttentionItem]


@operator_page("attention", repeats=True)
def show_attention(request: OperatorRequest) -> HttpResponse:
    """Return the bell with the control room's list and sentence."""
    fleet = fleet_gpus.load_gpus()
    figures = load_operator_figures(request, fleet_summary.summarise(fleet))
    page = AttentionPage(find_needs(request, fleet, figures))
    return render(request, "operators/fleet/attention.html", {"page": page})


def find_needs(
    request: OperatorRequest, fleet: list[FleetGpu], figures: OperatorFigures
) -> list[attention_items.AttentionItem]:
    """Return everything that needs an operator."""
    return [
        *cluster_attention.find_troubled_clusters(now=request.now),
        *attention_items.find_attention_items(fleet, figures.queue, now=request.now),
        *cluster_attention.find_proposed_plans(),
        *unpriced_offerings(request),
        *decision_needs(),
    ]


def unpriced_offerings(request: OperatorRequest) -> list[attention_items.AttentionItem]:
    """List published offerings that have no price."""
    gaps = price_list.offerings_without_price(currency=settings.CURRENCY, moment=request.now)
    if not gaps:
        return []
    names = ", ".join(offering.label for offering in gaps[:3])
    return [
        attention_items.AttentionItem(
            attention_items.AttentionKind.OFFERINGS,
            _("{gaps} published without a price").format(gaps=len(gaps)),
            names,
            urgent=True,
        )
    ]


def decision_needs() -> Iterator[attention_items.AttentionItem]:
    """List disputes and corrections that wait for a decision; one query."""
    seen = pending_decisions.count_pending_decisions()
    if seen.disputes:
        why = _("disputed amounts are not collected until you respond")
        what = _("{disputes} open").format(disputes=format_count(seen.disputes, "dispute"))
        yield attention_items.AttentionItem(
            attention_items.AttentionKind.DISPUTES, what, why, since=seen.disputed_since
        )
    if seen.corrections:
        why = _("needs approval by another operator before booking")
        if seen.second:
            verb = "lacks" if seen.second == 1 else "lack"
            why += _(". {second:,} of them {verb} a second approval only").format(second=seen.second, verb=verb)
        what = _("{corrections} to approve").format(corrections=format_count(seen.corrections, "correction"))
        yield attention_items.AttentionItem(
            attention_items.AttentionKind.CORRECTIONS, what, why, since=seen.proposed_since
        )
