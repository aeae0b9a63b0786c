"""Every table of the product shows the call that gives the same rows to whoever looks at the table."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.test.signals import template_rendered

from billing.gateways.simulated import Ill, SimulatedGateway, suffer
from billing.models import Invoice, Letter, Payment, RatedCharge, Refund
from billing.services import closing, commitments, crediting, drafts, minimums, own_prices, rating
from billing.services.corrections import proposing
from billing.services.discounts import campaigns
from billing.services.discounts import giving as less
from billing.services.discounts.campaigns import Round
from billing.services.discounts.terms import Terms as LessTerms
from billing.services.disputes import asking
from billing.services.funds import budgets
from billing.services.grants import giving
from billing.services.grants.giving import Terms
from billing.services.topups import collecting as topped
from billing.services.topups import opening as topping
from broker.domain.states import LeaseState
from broker.models import (
    Allocation,
    Cluster,
    Examination,
    Gpu,
    LayoutChange,
    Lease,
    Move,
    MovePlan,
    Offering,
    OfferingState,
)
from broker.services import inventory
from broker.services.inventory import Rack
from broker.services.layouts import cards
from ports import payments
from tenants.domain.roles import Role
from tenants.models import QuotaKind, User
from tenants.services import invitations, service_accounts, walls
from tests.architecture import routes
from tests.architecture.matrix import ROWS, a_stripe_difference, a_stripe_event
from tests.architecture.tables import CALL, addresses, missing, tables
from tests.billing.histories import OPERATOR, customer, ran
from tests.billing.payments.bills import bill, collect, ill, pay
from tests.billing.portal.desks import Desk, opened
from tests.billing.tax.papers import taxed
from tests.broker.services.layouts import ONES
from tests.tenants.people import ALL
from tests.world import MODEL, REGION, offering

pytestmark = pytest.mark.django_db
TEMPLATES = Path(__file__).parents[2] / "templates"
# Parts of others, the page of all parts, and a report that is a file of its own.
NO_PAGE = ("components/", "style/", "allauth/elements/", "replay/")
WRITTEN = re.compile(r'<c-table\b[^>]*caption="([^"]*)"|<caption class="vh">([^<]*)')
MORE = {  # what is behind a page's own tabs and drawers
    "ops/system/": ("?trail=visits",),
    "ops/ledger/": ("?before=999999",),
    "ops/offerings/": ("?state=draft", "?state=published"),
    "ops/offerings/<str:pk>/": ("?try=5.60",),
    "ops/cards/": ("?show=free", "?show=sold"),
    "leases/": ("?state=over", "?state=all&by=me", "?q=fold", "?state=waiting&class=spot"),
    "": ("?whose=all", "?whose=mine"),
    "spend/": ("?by=month", "?group=project", "?group=user", "?class=spot", "?by=week&class=on_demand"),
    "invoices/<str:pk>/": ("?line=1", "?by=user"),
    "catalogue/": ("?model=H100-80GB", "?memory=32", "?free=now", "?isolation=hardware&region=eu-north"),
    "audit/": ("?action=lease.request",),
}


# Here the first call answers no other rows than the page has, whatever is filtered.
EXACT = ("/", "/leases/", "/queue/", "/tokens/", "/invoices/", "/ops/tenants/", "/ops/queue/",
         "/ops/offerings/", "/ops/cards/")  # fmt: skip


@dataclass
class House:
    """A product in which every table has rows: who looks, and what stands in the addresses."""

    desk: Desk
    operator: Client
    things: dict[str, str]
    rendered: set[str] = field(default_factory=set)

    def pages(self) -> Iterator[tuple[Client, str]]:
        """Yield every page there is, with whoever may see it."""
        for route, row in ROWS.items():
            if row.kind not in ("page", "ops", "account", "anybody") or "GET" not in row.methods:
                continue
            if routes.places(route) and row.thing not in self.things:
                continue
            if route.endswith((".csv", "metrics", ".json")) or route == "style/":
                continue
            path = routes.address(route, *([self.things[row.thing]] if routes.places(route) else []))
            for query in ("", *MORE.get(route, ())):
                yield (self.operator if row.kind == "ops" else self.desk.client), path + query


@pytest.fixture
def house(settings: Any) -> Iterator[House]:
    settings.OPERATORS_NEED_MFA = False
    with opened() as desk, payments.through(SimulatedGateway()):
        operator = Client()
        operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
        yield House(desk, operator, {**of_tenant(desk), **of_operators(desk, operator)})


def of_tenant(desk: Desk) -> dict[str, str]:
    """Let a tenant live for a while: leases in every state, money, people and what they left behind."""
    life, owner = desk.life, desk.owner
    child = owner.child("below")
    owner.quota(QuotaKind.UNITS, 50_000, child)
    over = life.lease(owner, offering("1g.10gb"), project=child)
    life.run(600)
    life.release(over)
    life.run(60)
    volume = life.volume(owner)
    life.lease(owner, offering("2g.20gb"), project=child, max_duration_s=9000)
    active = life.lease(owner, offering("3g.40gb"), volume=volume.pk, max_duration_s=9000)
    with walls.as_tenant(owner.tenant.pk):
        budgets.set_limit(project=owner.project, limit_minor=10**6, actor=owner.actor, now=life.now)
        taxed("DE", 19)
    life.run(100)
    life.lease(owner, offering("card"), LeaseState.QUEUED, quantity=8, same_node=True)
    rating.rate(now=life.now)
    owner.member(Role.VIEWER, child)
    with walls.as_tenant(owner.tenant.pk):
        drafts.refresh(owner.tenant, now=life.now)
        asked = {
            "tenant": owner.tenant,
            "project": None,
            "actor": owner.actor,
            "now": life.now,
            "grants": ALL,
        }
        service_accounts.create(name="robot", role=Role.MEMBER, **asked)
        invitations.invite(email="new@example.org", role=Role.VIEWER, **asked)
        invoice = Invoice.objects.filter(tenant=owner.tenant).latest("pk")
    owner.token()
    return {"lease": active.pk, "invoice": invoice.pk, "volume": volume.pk}


def of_operators(desk: Desk, operator: Client) -> dict[str, str]:
    """Let operators have what they work on: a cut node, an examined cluster, a payment that is stuck, a trail."""
    life = desk.life
    inventory.add_simulated((Rack("mig-1", REGION, MODEL, nodes=1, cards_per_node=2),), now=life.now)
    cluster = Cluster.objects.get(name="mig-1")
    for card in Gpu.objects.filter(node__cluster=cluster):
        cards.cut_as(card, ONES)
    node = cluster.nodes.get()
    change = LayoutChange.objects.create(
        node=node,
        wanted={"0": {"3g.40gb": 2}, "1": {"1g.10gb": 7}},
        before={"0": {"1g.10gb": 7}, "1": {"1g.10gb": 7}},
        planned_at=life.now,
        step_at=life.now,
    )
    plan = a_plan(desk)
    found = [
        {"name": f"check of {outcome}", "outcome": outcome, "seen": "this", "why": "that", "fix": "so"}
        for outcome in ("bad", "warn", "unknown", "ok")
    ]
    Examination.objects.create(cluster=cluster, asked_at=life.now, done_at=life.now, findings=found)
    was_used(desk)
    with walls.as_tenant(desk.owner.tenant.pk):
        topping.top_up(desk.owner.tenant, minor=5000, actor=OPERATOR, now=life.now)
    gift = Terms(minor=1, reason="to see it pay")
    giving.give(desk.owner.tenant, gift, idem="house", actor=OPERATOR, now=life.now)
    giving_less = {"terms": LessTerms("Partner", percent_bp=1000), "actor": OPERATOR, "now": life.now}
    less.give(desk.owner.tenant, **giving_less)
    campaigns.make("HOUSE-10", LessTerms("House", percent_bp=1000), Round(), actor=OPERATOR, now=life.now)
    least = {"minor": 100, "since": life.now + timedelta(days=1), "until": None}
    minimums.agree(desk.owner.tenant, **least, actor=OPERATOR, now=life.now)
    always = {"units": 1, "nano_per_hour": 10**9, "since": life.now, "until": None}
    commitments.agree(desk.owner.tenant, offering("card"), **always, actor=OPERATOR, now=life.now)
    final = closing.close_period(desk.owner.tenant, "2026-10", now=life.now)
    assert final is not None
    crediting.credit(final, wanted={1: 1}, seen=0, why="to see it given back", actor=OPERATOR, now=life.now)
    (question,) = asking.dispute(final, lines={1: 1}, reason="to see it asked", actor=OPERATOR, now=life.now)
    with walls.as_tenant(desk.owner.tenant.pk):
        charge = RatedCharge.objects.filter(billed_period_id=final.period_id)[0]
        wrong = Lease.objects.get(pk=charge.lease_id)
    mended = proposing.of_lease(
        wrong,
        charge=False,
        since=charge.s,
        until=charge.e,
        why="to see it mended",
        actor=OPERATOR,
        now=life.now,
    )
    invoice = bill()
    for each, what in ((final, Ill.DECLINED), (invoice, Ill.REJECTED)):
        ill(each, what)
        collect(pay(each))
    suffer(invoice.tenant_id, Ill.REJECTED)
    with walls.as_tenant(invoice.tenant_id):
        waits = topping.top_up(invoice.tenant, minor=5000, actor=OPERATOR, now=life.now)
    topped.collect(waits.pk, waits.tenant_id, now=life.now)
    a_stuck_refund(final, life.now)
    a_letter_to_nobody(final, life.now)
    a_stripe_difference()
    a_stripe_event()
    Offering.objects.filter(gpu_model="H200-141GB").update(state=OfferingState.DRAFT)  # of no real shape
    tenant = desk.owner.tenant.pk
    operator.post(f"/ops/tenants/{tenant}/suspend/", {"why": "to see it in the trail"})
    operator.post(f"/ops/tenants/{tenant}/resume/")
    with walls.as_staff():
        stuck = Payment.objects.get(status="stuck")
        home = Gpu.objects.filter(allocation__isnull=False).first()
    assert home is not None
    return {
        "cluster": cluster.pk,
        "layout change": change.pk,
        "move plan": plan.pk,
        "node": home.node_id,
        "gpu": home.pk,
        "offering": offering("2g.20gb").pk,
        "payment": stuck.pk,
        "invoice": final.pk,
        "final invoice": final.pk,
        "dispute": question.pk,
        "correction": mended.pk,
    }


def a_stuck_refund(final: Invoice, now: datetime) -> None:
    """Let a payment have taken something of which nobody knows whether it went back."""
    asked = {"tenant_id": final.tenant_id, "currency": "EUR", "gateway": "simulated", "opened_at": now}
    settled = {"settled_at": now, "due_at": None}
    with walls.as_tenant(final.tenant_id):
        due = Invoice.objects.get(pk=final.pk)
        paid = Payment.objects.create(invoice=due, minor=due.to_pay, due_at=now, **asked)
        Payment.objects.filter(pk=paid.pk).update(status="succeeded", **settled)
        waits = Refund.objects.create(payment=paid, minor=1, why="x", opened_by="x", due_at=now, **asked)
        Refund.objects.filter(pk=waits.pk).update(status="stuck", due_at=None, stuck_at=now)


def a_letter_to_nobody(final: Invoice, now: datetime) -> None:
    with walls.as_tenant(final.tenant_id):
        Letter.objects.create(
            tenant_id=final.tenant_id, kind="invoice-paid", about=final.pk, made_at=now, unsent="nobody"
        )


def was_used(desk: Desk) -> None:
    """Let something have been used last month, and something by somebody in whose currency it has no price."""
    now = desk.life.now.replace(microsecond=0)
    ran(desk.owner.project, offering("2g.20gb"), now - timedelta(days=25), 3600)
    ran(customer(currency="USD")[1], offering("2g.20gb"), now - timedelta(hours=1), 60)
    rating.rate(now=desk.life.now)
    agreed = {"tenant": desk.owner.tenant, "offering": offering("2g.20gb"), "nano_per_hour": 10**9}
    own_prices.agree(**agreed, since=now + timedelta(days=1), actor=OPERATOR, now=now)


def a_plan(desk: Desk) -> MovePlan:
    """Propose to move one of the tenant's leases to another card of its cluster."""
    now = desk.life.now
    with walls.as_tenant(desk.owner.tenant.pk):
        here = Allocation.objects.filter(lease__state="active", released_at=None).select_related("gpu__node")[
            0
        ]
        there = Gpu.objects.filter(node__cluster=here.gpu.node.cluster_id).exclude(pk=here.gpu_id)[0]
        plan = MovePlan.objects.create(
            cluster_id=here.gpu.node.cluster_id,
            gpu_model=here.gpu.gpu_model,
            reason="one card could be whole",
            cost_s=20,
            gain_milli=125,
            cards=[],
            state_at=now,
            proposed_at=now,
        )
        Move.objects.create(
            tenant=desk.owner.tenant,
            plan=plan,
            n=1,
            lease_id=here.lease_id,
            profile=here.profile,
            size=here.placement.upper - here.placement.lower,
            from_gpu=here.gpu,
            from_start=here.placement.lower,
            to_gpu=there,
            to_start=0,
            cost_s=20,
            gain_milli=125,
            state_at=now,
        )
    return plan


def unanswered(client: Client, page: str) -> list[str]:
    """Return what is wrong with a page's tables: those that no single call beside them gives whole."""
    calls, wrong, answers = addresses(page), [], {}
    for address in calls:
        answer = client.get(address)
        if answer.status_code != 200:
            wrong.append(f"{address} answers {answer.status_code}: {answer.content[:200]!r}")
        elif answer["Content-Type"] == "application/json":  # else it is a file, which gives no rows
            answers[address] = answer.json()
    for table in tables(page):
        lost = {address: missing(table, answer) for address, answer in answers.items()}
        if not any(len(left) == 0 for left in lost.values()):
            nearest = min(lost.items(), key=lambda each: len(each[1]), default=("no call", table.lines))
            wrong.append(f"“{table.caption}”: {nearest[0]} lacks {nearest[1][:2]}")
    return wrong


def test_every_table_is_given_whole_by_a_call_beside_it(house: House) -> None:
    seen: set[str] = set()
    captions: set[str] = set()
    wrong: dict[str, list[str]] = {}

    def note(sender: Any, template: Any, **_: Any) -> None:
        if template.name:
            seen.add(str(template.name))

    for client, path in house.pages():
        template_rendered.connect(note)
        try:
            answer = client.get(path)
        finally:
            template_rendered.disconnect(note)
        if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
            continue
        body = answer.content.decode()
        if "<html" not in body:
            continue  # a part that a page asks for; the call is on that page
        captions |= {table.caption for table in tables(body)}
        if found := unanswered(client, body):
            wrong[path] = found
        if path.partition("?")[0] in EXACT:
            items = client.get(addresses(body)[0]).json()["items"]
            more = [item["id"] for item in items if item["id"] not in body]
            assert more == [], f"{path}: its call answers rows that the page has not"
        silent = unanswered(client, CALL.sub("", body))
        assert len(silent) == len(tables(body)), f"{path}: without its calls a table is still answered"
    assert not wrong, "\n".join(f"{path}: {one}" for path, found in wrong.items() for one in found)
    drawn = {name: words for name, words in captions_of_templates().items() if words}
    assert set(drawn) - seen == set(), "no page of the walk draws these"
    unseen = [
        (name, each) for name, words in drawn.items() for each in words if not any(map(fits(each), captions))
    ]
    assert unseen == [], "these had no rows in the walk"


def captions_of_templates() -> dict[str, list[str]]:
    """Return what every table of every template is called there."""
    found = {}
    for path in TEMPLATES.rglob("*.html"):
        name, text = str(path.relative_to(TEMPLATES)), path.read_text()
        if not name.startswith(NO_PAGE):
            words = [one or other for one, other in WRITTEN.findall(text)]
            assert len(words) == len(re.findall(r"<c-table\b|<table\b", text)), (
                f"{name}: a table has no caption"
            )
            found[name] = words
    return found


def fits(written: str) -> Callable[[str], bool]:
    """Return the test of whether a caption that was seen is this one."""
    parts = [re.escape(part) for part in re.split(r"{{.*?}}", written)]
    pattern = re.compile(".+".join(parts))
    return lambda seen: bool(pattern.fullmatch(seen))
