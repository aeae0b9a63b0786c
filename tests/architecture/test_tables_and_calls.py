"""Each table of a page names its API call; element ids are unique."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings
from django.test.signals import template_rendered

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import ApprovalRequest, Invoice, Payment, QueuedEmail, RatedCharge, Refund
from billing.services.agreements import commitments, minimums
from billing.services.agreements.discounts import campaigns
from billing.services.agreements.discounts import tenant_discounts as less
from billing.services.agreements.discounts.campaigns import RedemptionLimits
from billing.services.agreements.discounts.discount_terms import DiscountTerms as LessTerms
from billing.services.catalogue import tenant_prices
from billing.services.funds.budgets import budget_settings
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.corrections import correction_proposals
from billing.services.invoicing.disputes import dispute_requests
from billing.services.invoicing.month_close import close_month
from billing.services.payments.topups import topup_collection as topped
from billing.services.payments.topups import topup_creation as topping
from billing.services.rating import lease_rating
from billing.services.reports.accounting import debtor_accounts
from billing.services.tax import exchange_rates
from broker.domain.lifecycle.states import LeaseState
from broker.models import (
    Allocation,
    Cluster,
    ClusterExamination,
    Gpu,
    Lease,
    Offering,
    OfferingState,
    Relocation,
    RelocationPlan,
    Repartition,
    ScheduledRun,
)
from broker.services.clusters import image_prepulls
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.launch_templates import template_store
from broker.services.leases import attempt_records, lease_arrays
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.schedules import schedule_records
from broker.services.repartition import layout_rows
from broker.services.secrets import secret_store
from ports import payments
from tenants.domain.roles import Role
from tenants.models import QuotaKind, User
from tenants.services import invitations, projects, rls, service_accounts, ssh_keys
from tests.architecture import routes
from tests.architecture.matrix import (
    PUBLIC_KEY,
    ROWS,
    TEMPLATE,
    a_bank_entry,
    a_receipt,
    a_stripe_difference,
    a_stripe_event,
    an_approval_request,
)
from tests.architecture.tables import CALL, addresses, missing, tables
from tests.billing.gateways.faults import inject_faults
from tests.billing.histories import OPERATOR, add_ended_lease, create_customer
from tests.billing.payments.payable_invoices import (
    create_final_invoice,
    fail_next_charges,
    process_payment,
    request_payment,
)
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, create_october_invoice, set_tax_rate
from tests.broker.services.repartition.fixed_layouts import ONES
from tests.simulation import MODEL, REGION, offering
from tests.tenants.tenant_setup import ALL_ROLES, TenantWithOwner
from tests.web.portal.signed_in_user import PortalSession, open_portal

pytestmark = pytest.mark.django_db
TEMPLATES = Path(__file__).parents[2] / "templates"
# Parts of others, the page of all parts, and a report that is a file of its own.
NO_PAGE = ("components/", "styleguide/", "allauth/elements/", "replay/")
WRITTEN = re.compile(r'<c-table\b[^>]*caption="([^"]*)"|<caption class="visually-hidden">([^<]*)')
ELEMENT_ID = re.compile(r'<[a-z][^<>]*?\sid="([^"]*)"')
MARKUP = re.compile(r"""{% translate (['"])(.*?)\1 %}|{% (?:end)?blocktranslate\b.*?%}""")
MORE = {  # what is behind a page's own tabs and drawers
    "ops/system/": ("?trail=visits",),
    "ops/ledger/": ("?before=999999",),
    "ops/offerings/": ("?state=draft", "?state=published"),
    "ops/offerings/<str:pk>/": ("?try=5.60",),
    "ops/accounting/": ("?month=2026-10", "?month=2026-11", "?month=2026-09"),
    "ops/gpus/": ("?show=free", "?show=sold"),
    "leases/": ("?state=over", "?state=all&by=me", "?q=fold", "?state=waiting&class=spot"),
    "": ("?whose=all", "?whose=mine"),
    "spend/": ("?by=month", "?group=project", "?group=user", "?class=spot", "?by=week&class=on_demand"),
    "invoices/<str:pk>/": ("?line=1", "?by=user"),
    "catalogue/": ("?model=H100-80GB", "?memory=32", "?free=now", "?isolation=hardware&region=eu-north"),
    "audit/": ("?action=lease.request",),
}


# Here the first call answers no other rows than the page has, whatever is filtered.
EXACT = ("/", "/leases/", "/queue/", "/tokens/", "/invoices/", "/ops/tenants/", "/ops/queue/",
         "/ops/offerings/", "/ops/gpus/")  # fmt: skip


@dataclass
class House:
    """Test data with rows in every table, and its visitors."""

    portal: PortalSession
    operator: Client
    things: dict[str, str]
    rendered: set[str] = field(default_factory=set)

    def pages(self) -> Iterator[tuple[Client, str]]:
        """Yield every page with a client that can open it."""
        for route, row in ROWS.items():
            if row.kind not in ("page", "ops", "account", "anybody") or "GET" not in row.methods:
                continue
            if routes.places(route) and row.thing not in self.things:
                continue
            if route.endswith((".csv", "metrics", ".json")) or route == "styleguide/":
                continue
            path = routes.address(route, *([self.things[row.thing]] if routes.places(route) else []))
            for query in ("", *MORE.get(route, ())):
                yield (self.operator if row.kind == "ops" else self.portal.client), path + query

    def account_pages(self) -> Iterator[tuple[Client, str]]:
        """Yield account pages and the style guide for owner, operator and anonymous visitor."""
        kinds, clients = ("account", "anybody"), (self.portal.client, self.operator, Client())
        for route, row in ROWS.items():
            if row.kind in kinds and "GET" in row.methods and not routes.places(route):
                yield from ((client, routes.address(route)) for client in clients)


@pytest.fixture
def house(settings: Any) -> Iterator[House]:
    settings.OPERATORS_REQUIRE_MFA = False
    with open_portal() as portal, payments.using_gateway(SimulatedGateway()):
        operator = Client()
        operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
        yield House(portal, operator, {**create_tenant_data(portal), **create_operator_data(portal, operator)})


BATCH_JOB: dict[str, Any] = {"workload": "batch", "command": "train"}


def create_tenant_data(portal: PortalSession) -> dict[str, str]:
    """Create a tenant's history: leases, money, members and leftovers."""
    sim, owner = portal.sim, portal.owner
    child = owner.create_project("below")
    owner.set_quota(QuotaKind.UNITS, 50_000, child)
    with rls.tenant_scope(owner.tenant.pk):
        projects.archive(owner.create_project("of last year"), actor=owner.actor, now=sim.now)
    over = sim.create_lease(owner, offering("1g.10gb"), project=child)
    sim.run(600)
    sim.release_lease(over)
    sim.run(60)
    volume = sim.create_volume(owner)
    sim.create_lease(owner, offering("2g.20gb"), project=child, max_duration_s=9000)
    active = sim.create_lease(owner, offering("3g.40gb"), volume=volume.pk, max_duration_s=9000, **BATCH_JOB)
    with rls.tenant_scope(owner.tenant.pk):
        budget_settings.set_budget(project=owner.project, limit_minor=10**6, actor=owner.actor, now=sim.now)
        set_tax_rate("DE", 19)
    sim.run(100)
    sim.create_lease(owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, same_node=True)
    lease_rating.rate_all_leases(now=sim.now)
    owner.create_member(Role.VIEWER, child)
    with rls.tenant_scope(owner.tenant.pk):
        drafts.refresh_drafts(owner.tenant, now=sim.now)
        values = {
            "tenant": owner.tenant,
            "project": None,
            "actor": owner.actor,
            "now": sim.now,
            "grants": ALL_ROLES,
        }
        service_accounts.create(name="robot", role=Role.MEMBER, **values)
        invitations.invite(email="new@example.org", role=Role.VIEWER, **values)
        invoice = Invoice.objects.filter(tenant=owner.tenant).latest("pk")
        secret = secret_store.create_secret(
            project=owner.project, name="HF_TOKEN", value="v", actor=owner.actor, now=sim.now
        )
        attempt_records.record_attempt(active, ended_at=sim.now, exit_code=1, text="its command failed: exit code 1")
        array = lease_arrays.request_array(
            LeaseRequest(offering_id=offering("1g.10gb").pk, name="sweep", max_duration_s=3600),
            size=2,
            project=owner.project,
            actor=owner.actor,
            now=sim.now,
        )
        schedule = schedule_records.create_schedule(
            LeaseRequest(offering_id=offering("1g.10gb").pk, name="nightly", max_duration_s=3600),
            cron="0 3 * * *",
            time_zone="UTC",
            project=owner.project,
            actor=owner.actor,
            now=sim.now,
        )
        past = {"due_at": sim.now - timedelta(hours=1), "made_at": sim.now}
        ScheduledRun.objects.create(tenant=owner.tenant, schedule=schedule, result="skipped", **past)
        template_store.create_operator_template(values={**TEMPLATE, "name": "Shared"}, actor=OPERATOR, now=sim.now)
        template = template_store.create_template(
            project=owner.project, values={**TEMPLATE, "name": "ComfyUI"}, actor=owner.actor, now=sim.now
        )
    ssh_keys.add_key(name="laptop", public_key=PUBLIC_KEY, actor=owner.actor, now=sim.now)
    owner.token()
    return {
        "lease": active.pk,
        "invoice": invoice.pk,
        "volume": volume.pk,
        "secret": secret.pk,
        "lease array": array.pk,
        "lease schedule": schedule.pk,
        "template": template.pk,
    }


def create_operator_data(portal: PortalSession, operator: Client) -> dict[str, str]:
    """Create what operators work on: nodes, clusters, payments and audit events."""
    sim = portal.sim
    hardware.add_simulated_racks((SimulatedRack("mig-1", REGION, MODEL, nodes=1, gpus_per_node=2),), now=sim.now)
    cluster = Cluster.objects.get(name="mig-1")
    for gpu in Gpu.objects.filter(node__cluster=cluster):
        layout_rows.store_gpu_layout(gpu, ONES)
    node = cluster.nodes.get()
    change = Repartition.objects.create(
        node=node,
        wanted={"0": {"3g.40gb": 2}, "1": {"1g.10gb": 7}},
        before={"0": {"1g.10gb": 7}, "1": {"1g.10gb": 7}},
        planned_at=sim.now,
        step_at=sim.now,
    )
    plan = a_plan(portal)
    image_prepulls.add_image(cluster, TEMPLATE["image"], actor=OPERATOR, now=sim.now)
    found = [
        {"name": f"check of {outcome}", "outcome": outcome, "seen": "this", "why": "that", "fix": "so"}
        for outcome in ("bad", "warn", "unknown", "ok")
    ]
    ClusterExamination.objects.create(cluster=cluster, asked_at=sim.now, done_at=sim.now, findings=found)
    add_last_month_usage(portal)
    with rls.tenant_scope(portal.owner.tenant.pk):
        topping.open_topup(portal.owner.tenant, minor=5000, actor=OPERATOR, now=sim.now)
    gift = GrantTerms(minor=1, reason="to see it pay")
    new_grants.give_grant(portal.owner.tenant, gift, idem="house", actor=OPERATOR, now=sim.now)
    giving_less = {"terms": LessTerms("Partner", percent_bp=1000), "actor": OPERATOR, "now": sim.now}
    less.give_discount(portal.owner.tenant, **giving_less)
    campaigns.create_campaign(
        "HOUSE-10", LessTerms("House", percent_bp=1000), RedemptionLimits(), actor=OPERATOR, now=sim.now
    )
    least = {"minor": 100, "since": sim.now + timedelta(days=1), "until": None}
    minimums.create_minimum(portal.owner.tenant, **least, actor=OPERATOR, now=sim.now)
    always = {"units": 1, "nano_per_hour": 10**9, "since": sim.now, "until": None}
    commitments.create_commitment(portal.owner.tenant, offering("whole-gpu"), **always, actor=OPERATOR, now=sim.now)
    final = close_month.close_period(portal.owner.tenant, "2026-10", now=sim.now)
    assert final is not None
    credit_notes.issue_credit_note(
        final, wanted={1: 1}, seen=0, why="to see it given back", actor=OPERATOR, now=sim.now
    )
    (question,) = dispute_requests.dispute_lines(
        final, lines={1: 1}, reason="to see it asked", actor=OPERATOR, now=sim.now
    )
    with rls.tenant_scope(portal.owner.tenant.pk):
        charge = RatedCharge.objects.filter(billed_period_id=final.period_id)[0]
        wrong = Lease.objects.get(pk=charge.lease_id)
    proposed_correction = correction_proposals.propose_lease_correction(
        wrong,
        charge=False,
        since=charge.s,
        until=charge.e,
        why="to see it corrected",
        actor=OPERATOR,
        now=sim.now,
    )
    invoice = create_final_invoice()
    for each, what in ((final, GatewayFault.DECLINED), (invoice, GatewayFault.REJECTED)):
        fail_next_charges(each, what)
        process_payment(request_payment(each))
    inject_faults(invoice.tenant_id, GatewayFault.REJECTED)
    with rls.tenant_scope(invoice.tenant_id):
        waits = topping.open_topup(invoice.tenant, minor=5000, actor=OPERATOR, now=sim.now)
    topped.TOPUPS.collect(waits.pk, waits.tenant_id, now=sim.now)
    a_stuck_refund(final, sim.now)
    an_email_without_a_recipient(final, sim.now)
    a_stripe_difference()
    a_stripe_event()
    exchange_rates.add_exchange_rate(
        currency="USD", day=date(2026, 10, 31), rate=900_000, source="ECB", actor=OPERATOR, now=sim.now
    )
    debtor_accounts.set_debtor_accounts({portal.owner.tenant.pk: "10000"}, actor=OPERATOR, now=sim.now)
    later = GrantTerms(minor=5, reason="to see it deferred")
    new_grants.give_grant(portal.owner.tenant, later, idem="house later", actor=OPERATOR, now=sim.now)
    with override_settings(SUPPLIER=LUMEN.as_dict()):
        create_october_invoice(1000, party=ATELIER)
    Offering.objects.filter(gpu_model="H200-141GB").update(state=OfferingState.DRAFT)  # of no real shape
    tenant = portal.owner.tenant.pk
    with rls.tenant_scope(tenant):
        asked = an_approval_request(TenantWithOwner(portal.owner.tenant, portal.owner.project, portal.user))
        ApprovalRequest.objects.update(needs_operator=True, expires_at=sim.now + timedelta(days=1))
    operator.post(f"/ops/tenants/{tenant}/suspend/", {"why": "to see it in the trail"})
    operator.post(f"/ops/tenants/{tenant}/resume/")
    with rls.tenant_scope(portal.owner.tenant.pk):
        receipt = a_receipt(portal.owner)  # type: ignore[arg-type]
    a_bank_entry(portal.owner)  # type: ignore[arg-type]
    with rls.staff_scope():
        stuck = Payment.objects.get(status="stuck")
        home = Gpu.objects.filter(allocation__isnull=False).first()
    assert home is not None
    return {
        "approval request": asked,
        "tenant": tenant,
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
        "correction": proposed_correction.pk,
        "bank receipt": receipt,
    }


def a_stuck_refund(final: Invoice, now: datetime) -> None:
    """Create a refund with an unknown outcome."""
    values = {"tenant_id": final.tenant_id, "currency": "EUR", "gateway": "simulated", "opened_at": now}
    settled = {"settled_at": now, "due_at": None}
    with rls.tenant_scope(final.tenant_id):
        due = Invoice.objects.get(pk=final.pk)
        paid = Payment.objects.create(invoice=due, minor=due.to_pay, due_at=now, **values)
        Payment.objects.filter(pk=paid.pk).update(status="succeeded", **settled)
        waits = Refund.objects.create(payment=paid, minor=1, why="x", opened_by="x", due_at=now, **values)
        Refund.objects.filter(pk=waits.pk).update(status="stuck", due_at=None, stuck_at=now)


def an_email_without_a_recipient(final: Invoice, now: datetime) -> None:
    with rls.tenant_scope(final.tenant_id):
        QueuedEmail.objects.create(
            tenant_id=final.tenant_id,
            kind="invoice-paid",
            subject_id=final.pk,
            made_at=now,
            undelivered_reason="no_recipient",
        )


def add_last_month_usage(portal: PortalSession) -> None:
    """Add last month's usage, also in a currency without a price."""
    now = portal.sim.now.replace(microsecond=0)
    add_ended_lease(portal.owner.project, offering("2g.20gb"), now - timedelta(days=25), 3600)
    add_ended_lease(create_customer(currency="USD")[1], offering("2g.20gb"), now - timedelta(hours=1), 60)
    lease_rating.rate_all_leases(now=portal.sim.now)
    agreed = {"tenant": portal.owner.tenant, "offering": offering("2g.20gb"), "nano_per_hour": 10**9}
    tenant_prices.set_tenant_price(**agreed, since=now + timedelta(days=1), actor=OPERATOR, now=now)


def a_plan(portal: PortalSession) -> RelocationPlan:
    """Propose the relocation of one of the tenant's leases."""
    now = portal.sim.now
    with rls.tenant_scope(portal.owner.tenant.pk):
        here = Allocation.objects.filter(lease__state="active", released_at=None).select_related("gpu__node")[0]
        there = Gpu.objects.filter(node__cluster=here.gpu.node.cluster_id).exclude(pk=here.gpu_id)[0]
        plan = RelocationPlan.objects.create(
            cluster_id=here.gpu.node.cluster_id,
            gpu_model=here.gpu.gpu_model,
            reason="one GPU could be whole",
            cost_s=20,
            gain_milli=125,
            gpus=[],
            state_at=now,
            proposed_at=now,
        )
        Relocation.objects.create(
            tenant=portal.owner.tenant,
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


def tables_without_call(client: Client, page: str) -> list[str]:
    """Return the tables of a page that no single API call matches."""
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


@pytest.mark.deep
def test_every_table_of_a_page_has_an_api_call_with_the_same_rows(house: House) -> None:
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
        if found := tables_without_call(client, body):
            wrong[path] = found
        if path.partition("?")[0] in EXACT:
            items = client.get(addresses(body)[0]).json()["items"]
            more = [item["id"] for item in items if item["id"] not in body]
            assert more == [], f"{path}: its call answers rows that the page has not"
        silent = tables_without_call(client, CALL.sub("", body))
        assert len(silent) == len(tables(body)), f"{path}: without its calls a table is still answered"
    assert not wrong, "\n".join(f"{path}: {one}" for path, found in wrong.items() for one in found)
    drawn = {name: words for name, words in captions_of_templates().items() if words}
    assert set(drawn) - seen == set(), "no page of the walk draws these"
    unseen = [(name, each) for name, words in drawn.items() for each in words if not any(map(matcher(each), captions))]
    assert unseen == [], "these had no rows in the walk"


@pytest.mark.deep
def test_no_page_has_two_elements_with_the_same_id(house: House) -> None:
    repeated: dict[str, list[str]] = {}
    for client, path in [*house.pages(), *house.account_pages()]:
        answer = client.get(path)
        if answer.get("Content-Type", "").startswith("text/html") and (found := repeated_ids(answer.content.decode())):
            repeated[path] = found
    assert repeated == {}


def repeated_ids(page: str) -> list[str]:
    counts = Counter(ELEMENT_ID.findall(page))
    return [each for each, count in counts.items() if count > 1]


def captions_of_templates() -> dict[str, list[str]]:
    """Return the table captions of every template."""
    found = {}
    for path in TEMPLATES.rglob("*.html"):
        name, text = str(path.relative_to(TEMPLATES)), path.read_text()
        if not name.startswith(NO_PAGE):
            words = [MARKUP.sub(r"\2", one or other).strip() for one, other in WRITTEN.findall(text)]
            assert len(words) == len(re.findall(r"<c-table\b|<table\b", text)), f"{name}: a table has no caption"
            found[name] = words
    return found


def matcher(written: str) -> Callable[[str], bool]:
    """Return a predicate that matches rendered captions with a template's."""
    parts = [re.escape(part) for part in re.split(r"{{.*?}}", written)]
    pattern = re.compile(".+".join(parts))
    return lambda seen: bool(pattern.fullmatch(seen))
