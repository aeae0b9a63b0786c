"""Collecting through Stripe, for operators: where our books and Stripe's differ, and events that nobody understood."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.domain.stripe_amounts import DECIMALS, to_minor
from billing.models import EventState, StripeDifference, StripeEvent
from billing.services.stripe import differences, inbox, watching
from broker.portal.operations import OpsRequest, Step, ask, page
from tenants.portal.acts import MOST, ops_call
from tenants.services import audit
from tenants.services.refusals import Missing


@require_safe
@page("stripe")
def stripe(request: OpsRequest) -> HttpResponse:
    """Show differences, parked events, and which days were compared when."""
    watch = watching.look(now=request.now)
    shown = {
        "watch": watch,
        "differences": [(each, there(each)) for each in watch.differences],
        "calls": [
            ops_call("Where the books differ", "ops/stripe-differences", limit=MOST),
            ops_call("Events that wait for a person", "ops/stripe-events", state="parked", limit=MOST),
            ops_call("Days that were compared", "ops/stripe-days", limit=MOST),
        ],
    }
    return render(request, "ops/stripe.html", shown)


def there(each: StripeDifference) -> int | None:
    """Return what Stripe has as minor units of ours; None where it is not known in which currency."""
    if each.theirs is None or each.currency not in DECIMALS:
        return None
    return to_minor(each.theirs, each.currency)


@require_POST
@page("stripe.look_again")
def look_again(request: OpsRequest, pk: str) -> HttpResponse:
    """Have a parked event looked at once more."""
    event = StripeEvent.objects.filter(pk=pk, state=EventState.PARKED).first()
    if event is None:
        raise Missing(f"No event {pk!r} waits here.", fix="Go to the list of those that wait.")
    inbox.look_again(event, now=request.now)
    audit.record(
        "stripe.look_again",
        actor=request.actor,
        now=request.now,
        subject_id=event.pk,
        subject_label=event.type,
        why=event.why,
    )
    messages.success(request, f"{event.type} is looked at once more.")
    return redirect("ops-stripe")


@require_http_methods(["GET", "HEAD", "POST"])
@page("stripe.acknowledge")
def acknowledge(request: OpsRequest, pk: int) -> HttpResponse:
    """Let a difference wait for nobody any longer; a reason is required."""
    found = StripeDifference.objects.filter(pk=pk, acknowledged_at=None).first()
    if found is None:
        raise Missing(f"No difference {pk} waits here.", fix="Go to the list of those that wait.")

    def act(why: str) -> str:
        differences.acknowledge(found, why=why, actor=request.actor, now=request.now)
        return f"{found.title} of {found.ref} is acknowledged."

    step = Step(
        title=f"Acknowledge: {found.title.lower()}, {found.ref}?",
        verb="Acknowledge",
        back=reverse("ops-stripe"),
        lines=(
            found.says,
            found.next,
            "It waits for nobody any longer. Should it become another amount, it waits again.",
        ),
        danger=False,
        hint="Stands beside the difference and in the audit trail.",
    )
    return ask(request, step, act)
