"""Whether the house stands: proofs computed now, queues of hints, payments that wait, and what operators did."""

from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from billing.portal.ops.frame import holding
from billing.services import proofs
from billing.services.payments import waiting
from billing.services.post import waiting as letters
from billing.services.post.waiting import Post
from billing.services.stripe import watching
from broker.portal.operations import OpsRequest, page
from broker.services import upkeep
from tenants.models import AuditEvent
from tenants.portal import sifting
from tenants.portal.acts import MOST, ops_call
from tenants.portal.trail import tell

SHOWN = 30
ZONE = "UTC"  # of those who run it, wherever their tenants are


@require_safe
@page("system")
def system(request: OpsRequest) -> HttpResponse:
    """Show proofs, hints on their way, and the operators' trail."""
    found = request.proofs = proofs.check(now=request.now)
    visits = request.GET.get("trail") == "visits"
    money, post = waiting.look(now=request.now), letters.look()
    rows = trail(visits=visits)
    chosen, asked = sifting.sifted(rows, request.GET, ZONE)
    events = tell(chosen[:SHOWN])

    tab = {"trail": "visits" if visits else "changes"}

    def to(asked: sifting.Asked) -> str:
        return f"?{urlencode({**tab, **asked})}#trail"

    shown = {
        "proofs": found,
        "failed": [proof for proof in found if not proof.holds],
        "upkeep": upkeep.look(now=request.now),
        "money": money,
        "post": post,
        "stripe_waits": watching.waits(now=request.now),
        "database": f"{connection.pg_version // 10000}.{connection.pg_version % 10000}",  # type: ignore[attr-defined]
        "calls": _calls(visits=visits, money=money, post=post, asked=sifting.for_api(asked, ZONE)),
        "trail": events,
        "filters": sifting.chips(
            rows, asked, events, to, today=request.now.astimezone(ZoneInfo(ZONE)).date(), also=tab
        ),
        "trails": [
            {"url": "?trail=changes#trail", "label": "Changes", "current": not visits},
            {"url": "?trail=visits#trail", "label": "Visits", "current": visits},
        ],
    }
    return render(request, "ops/system.html", shown)


def _calls(*, visits: bool, money: waiting.Waiting, post: Post, asked: sifting.Asked) -> list[dict[str, str]]:
    """Return the call behind each table of the page."""
    flag = str(visits).lower()
    calls = [
        ops_call("Proofs, checked now", "ops/proofs"),
        ops_call(
            "What operators did", "ops/audit-events", actor_kind="staff", visits=flag, **asked, limit=SHOWN
        ),
    ]
    if post.unsent:
        calls.insert(1, ops_call("Letters that were given up", "ops/letters", unsent="given_up", limit=MOST))
        calls.insert(1, ops_call("Letters to nobody", "ops/letters", unsent="nobody", limit=MOST))
    if money.refunds:
        calls.insert(1, ops_call("Refunds that wait for a person", "ops/refunds", status="stuck", limit=MOST))
    if money.topups:
        calls.insert(1, ops_call("Top-ups that wait for a person", "ops/topups", status="stuck", limit=MOST))
    if money.stuck:
        calls.insert(
            1, ops_call("Payments that wait for a person", "ops/payments", status="stuck", limit=MOST)
        )
    return calls


def trail(*, visits: bool) -> QuerySet[AuditEvent]:
    """Return what operators changed, or which pages they looked at."""
    rows = AuditEvent.objects.filter(actor_kind="staff")
    looked = {"action__startswith": "ops."}
    return rows.filter(**looked) if visits else rows.exclude(**looked)


@require_safe
@page("proofs", repeats=True)
def strip(request: OpsRequest) -> HttpResponse:
    """Answer with the proofs as one line, for the foot of the control room, and as the meter of every page."""
    found = proofs.check(now=request.now)
    shown = {"proofs": found, "meter": holding(found), "alone": request.headers.get("HX-Target") == "proven"}
    return render(request, "ops/_proofs.html", shown)
