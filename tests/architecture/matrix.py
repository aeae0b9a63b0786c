"""Access table: which visitors may request which address.

To add an address, write one line in ROWS: its route exactly as `urls.py` composes it, and what it is.

    "api/v1/leases": api("leases", GET=ALL, POST=WORKERS, part=SAME),
    "api/v1/leases/<str:pk>": api("leases", thing="lease", GET=ALL, DELETE=WORKERS, part=SAME),
    "leases/<str:pk>/": page(thing="lease", GET=ALL, part=SAME),
    "ops/gpus/": ops(GET=STAFF),

* `api(noun, …)`: a collection under /api/v1/; `noun` is the scope a token needs (`noun:read`, `noun:write`).
* `page(…)`: a portal page of the open tenant. `ops(…)`: an operators' page. `account()`: whoever is signed in.
  `anybody()`: open to all. `shared(noun, …)`: an id under /api/v1/ that is the same for every tenant.
  `fleet()`: an address under /api/v1/ that is there for operators' sessions only; `audited` where it tells of tenants.
* methods name the roles that are let in; any method not named must answer 405. Being let in means any answer
  but 401, 403, 404 and 5xx: an empty body may well be refused with 400.
* `part` says what a role is worth that is held on one project of the tree only: SAME as on the whole tenant, of what
  lies in that project, while all else is missing; or NOBODY, for it tells of the whole tenant or changes it; or the
  roles method by method (docs/decisions/0019). Operators' pages know no such roles.
* `thing` names a function in THINGS that makes the row whose id stands in the address, in a given world.
* `body` (optional) makes a good body for POST or PATCH from a world; it is also sent with the other tenant's ids,
  and with fields nobody may set.
"""

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange

from billing.domain.approvals import Approver, LaunchLimits
from billing.models import (
    AccountTerms,
    ApprovalRequest,
    BankEntry,
    Campaign,
    Commitment,
    CreditNote,
    Discount,
    Dispute,
    Hold,
    Invoice,
    InvoiceLine,
    LedgerTransfer,
    Minimum,
    Payment,
    PaymentCardForm,
    QueuedEmail,
    Refund,
    StripeDifference,
    StripeEvent,
    StripeReconciliationDay,
    TopUp,
)
from billing.models.default_ids import approval_request_id
from billing.services.approvals import approval_limits
from billing.services.approvals.stored_launches import store_launch
from billing.services.catalogue import tenant_prices
from billing.services.funds.budgets import budget_settings
from billing.services.funds.costs import hold_context
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from billing.services.funds.holds import budget_holds
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.corrections import correction_proposals
from billing.services.invoicing.disputes import dispute_requests
from billing.services.ledger import posting
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from billing.services.payments.bank_statements.statement_import import import_statement
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from billing.services.tax import exchange_rates, tax_rates
from broker.models import Allocation, Lease, LeaseArray, Node, Offering, RelocationPlan, Repartition
from broker.services.clusters import image_prepulls
from broker.services.launch_templates import template_store
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.schedules import schedule_records
from broker.services.secrets import secret_store
from broker.services.volumes import volume_lifecycle
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Project, Quota, QuotaKind, User
from tenants.services import (
    invitations,
    members,
    operator_tokens,
    projects,
    quotas,
    rls,
    service_accounts,
    ssh_keys,
    tokens,
)
from tenants.services.actors import SYSTEM, Actor
from tests.billing.histories import add_ended_lease, add_quote, create_priced_offering, set_price
from tests.simulation import create_fleet as create_fleet
from tests.tenants.tenant_setup import ALL_ROLES as EVERYTHING
from tests.tenants.tenant_setup import TenantWithOwner, current_time

ALL = frozenset({"viewer", "member", "billing", "admin", "owner"})
WORKERS = frozenset({"member", "admin", "owner"})
LEADERS = frozenset({"admin", "owner"})
PAYERS = frozenset({"billing", "admin", "owner"})
SETTLERS = frozenset({"billing", "owner"})
OWNERS = frozenset({"owner"})
STAFF = frozenset({"staff"})
NOBODY: frozenset[str] = frozenset()
SAME = None

TEMPLATE = {"icon": "package", "shape": "session", "image": "ghcr.io/acme/comfy:1"}
PARTY = {
    "name": "Lumen", "street": "Weg 1", "postcode": "10115", "city": "Berlin", "country": "DE",
    "vat_id": "DE136695976", "email": "books@lumen.example", "phone": "+49 30 1",
}  # fmt: skip
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f matrix"

Thing = Callable[[TenantWithOwner], str | tuple[str, ...]]
Body = Callable[[TenantWithOwner], dict[str, Any]]
Methods = dict[str, frozenset[str]]
Part = Methods | frozenset[str] | None


@dataclass(frozen=True)
class Row:
    """One address, and the visitors that each of its methods allows."""

    kind: str
    methods: Methods = field(default_factory=dict)
    noun: str = ""
    thing: str = ""
    body: Body | None = None
    writes_on_get: bool = False
    stores: bool = True  # False: its POST only asks; a reading token may send it, and who is suspended
    opens: bool = False  # its GET hands out what opens a lease, so a token that may only read may not send it
    part: Part = SAME
    bodiless: tuple[str, ...] = ()  # methods to which operators need send nothing
    by_token: bool = False  # about the token of the request: signed in by session there is none

    def project_only_roles(self, method: str) -> frozenset[str]:
        """Return the roles that have access when held on one project only."""
        found = self.methods if self.part is SAME else self.part
        return found[method] if isinstance(found, dict) else found


def api(
    noun: str,
    *,
    part: Part,
    thing: str = "",
    body: Body | None = None,
    stores: bool = True,
    opens: bool = False,
    **methods: frozenset[str],
) -> Row:
    return Row("api", methods, noun, thing, body, stores=stores, opens=opens, part=part)


def page(
    *, part: Part, thing: str = "", body: Body | None = None, stores: bool = True, **methods: frozenset[str]
) -> Row:
    return Row("page", methods, "", thing, body, stores=stores, part=part)


def ops(*, thing: str = "", body: Body | None = None, **methods: frozenset[str]) -> Row:
    return Row("ops", methods, "", thing, body)


def shared(noun: str, *, thing: str, **methods: frozenset[str]) -> Row:
    return Row("shared", methods, noun, thing)


def fleet(*, thing: str = "", audited: bool = False, bodiless: tuple[str, ...] = (), **methods: frozenset[str]) -> Row:
    return Row("fleet", {"GET": STAFF, **methods}, "", thing, writes_on_get=audited, bodiless=bodiless)


def account(*methods: str, thing: str = "") -> Row:
    return Row("account", dict.fromkeys(methods or ("GET", "POST"), ALL), "", thing)


def anybody(*methods: str, thing: str = "", writes_on_get: bool = False) -> Row:
    return Row("anybody", dict.fromkeys(methods or ("GET",), ALL), "", thing, writes_on_get=writes_on_get)


def in_its_tenant(make: Thing) -> Thing:
    def inside(world: TenantWithOwner) -> str | tuple[str, ...]:
        with rls.tenant_scope(world.tenant.pk):
            return make(world)

    return inside


def below(world: TenantWithOwner, project: Project) -> TenantWithOwner:
    """Return the test data of one project."""
    return replace(world, root=project)


def node(world: TenantWithOwner) -> Project | None:
    """Return where members are added: to the project or the whole tenant."""
    return world.root if world.root.parent_id else None


def an_archived_project(world: TenantWithOwner) -> str:
    child = world.create_project(f"archived-{current_time().timestamp()}")
    with rls.tenant_scope(world.tenant.pk):
        return str(projects.archive(child, actor=SYSTEM, now=current_time()).pk)


def a_member(world: TenantWithOwner) -> str:
    somebody = User.objects.create_user(f"zed-{world.root.pk}@example.org")
    member = members.add(
        tenant=world.tenant, user=somebody, role=Role.VIEWER, project=node(world), actor=SYSTEM, now=current_time()
    )
    return str(member.pk)


def an_invitation(world: TenantWithOwner) -> tuple[Any, str]:
    return invitations.invite(
        tenant=world.tenant,
        email="guest@example.org",
        role=Role.VIEWER,
        project=node(world),
        grants=EVERYTHING,
        actor=SYSTEM,
        now=current_time(),
    )


def a_service_account(world: TenantWithOwner) -> str:
    account = service_accounts.create(
        tenant=world.tenant,
        name=f"matrix of {world.root.pk}",
        role=Role.MEMBER,
        project=node(world),
        grants=EVERYTHING,
        actor=SYSTEM,
        now=current_time(),
    )
    return str(account.pk)


def an_operator_token() -> str:
    operator, _ = User.objects.get_or_create(email="issuer@operators.example.org", defaults={"is_staff": True})
    token, _ = operator_tokens.issue_operator_token(
        operator,
        name="of the matrix",
        scopes=["fleet:read"],
        expires_at=current_time() + timedelta(days=1),
        actor=SYSTEM,
        now=current_time(),
    )
    return token.pk


def a_token(world: TenantWithOwner) -> str:
    token, _ = tokens.issue(
        tenant=world.tenant,
        name="of the owner",
        scopes=["leases:read"],
        expires_at=current_time() + timedelta(days=1),
        actor=SYSTEM,
        now=current_time(),
        user_id=world.owner.pk,
    )
    return str(token.pk)


def a_quota(world: TenantWithOwner) -> str:
    child = world.create_project(f"limited-{current_time().timestamp()}")
    quota = quotas.set_limit(project=child, kind=QuotaKind.UNITS, limit=1000, actor=SYSTEM, now=current_time())
    assert isinstance(quota, Quota)
    return str(quota.pk)


def a_month(world: TenantWithOwner) -> str:
    billing_periods.ensure_periods(world.tenant, since=current_time(), until=current_time())
    return f"{current_time():%Y-%m}"


def a_tax_rate(world: TenantWithOwner) -> str:
    since = date(2020, 1, 1)
    what = {"jurisdiction": "DE", "category": "standard", "rate_bp": 1900, "since": since}
    return str(
        (tax_rates.find_tax_rate(**what) or tax_rates.publish_tax_rate(**what, actor=SYSTEM, now=current_time())).pk
    )


def an_exchange_rate(world: TenantWithOwner) -> str:
    day, rate = date(2020, 1, 31), {"currency": "USD", "rate": 900_000, "source": "ECB"}
    return str(exchange_rates.add_exchange_rate(**rate, day=day, actor=SYSTEM, now=current_time()).pk)


def a_budget(world: TenantWithOwner) -> str:
    child = world.create_project(f"ceiling-{current_time().timestamp()}")
    return str(budget_settings.set_budget(project=child, limit_minor=100, actor=SYSTEM, now=current_time()).pk)


def a_hold(world: TenantWithOwner) -> str:
    a_quote(world)
    budget_settings.set_budget(project=world.root, limit_minor=10**9, actor=SYSTEM, now=current_time())
    lease = Lease.objects.get(pk=a_lease(world))
    if not Hold.objects.filter(lease=lease).exists():
        look = hold_context.open_lease_hold(lease, now=current_time())
        budget_holds.set_budget_holds(look, look.max_cost.needed(lease, look.usage, now=current_time()))
    return str(Hold.objects.get(lease=lease).pk)


def a_card_form(world: TenantWithOwner) -> str:
    form = PaymentCardForm.objects.create(
        tenant=world.tenant, asked_at=current_time(), asked_by="x", due_at=current_time()
    )
    return str(form.pk)


def a_stripe_difference() -> str:
    day, _ = StripeReconciliationDay.objects.get_or_create(
        day=current_time().date(), defaults={"checked_at": current_time()}
    )
    known, _ = StripeDifference.objects.update_or_create(
        day=day,
        kind="not_booked",
        ref="pay_x",
        defaults={
            "acknowledged_at": None,
            "currency": "EUR",
            "ours": 1,
            "theirs": 1,
            "found_at": current_time(),
            "seen_at": current_time(),
        },
    )
    return str(known.pk)


def a_stripe_event() -> str:
    now = current_time()
    known, _ = StripeEvent.objects.get_or_create(
        pk="evt_x",
        defaults={"type": "invoice.paid", "created": now, "received_at": now, "state": "parked"},
    )
    return known.pk


def an_offering() -> Offering:
    if not Offering.objects.filter(profile="1g.10gb").exists():
        create_fleet(now=current_time())
    return Offering.objects.select_related("gpu_model").filter(profile="1g.10gb", state="published")[0]


def a_lease(world: TenantWithOwner) -> str:
    wanted = LeaseRequest(offering_id=an_offering().pk, name="of the matrix", max_duration_s=3600)
    return str(request_lease(wanted, project=world.root, actor=SYSTEM, now=current_time()).pk)


def a_quote(world: TenantWithOwner) -> str:
    offering, now = an_offering(), current_time().replace(microsecond=0)
    version = offering.price_versions.first() or set_price(offering, 10**9, since=now - timedelta(days=1))
    return str(add_quote(add_ended_lease(world.root, offering, now - timedelta(hours=2), 3600), version).pk)


def an_own_price(world: TenantWithOwner) -> str:
    """A current tenant-specific price of an offering."""
    offering, now = create_priced_offering(), current_time()
    agreed = {"tenant": world.tenant, "offering": offering, "nano_per_hour": 1, "since": now}
    version = tenant_prices.set_tenant_price(**agreed, actor=SYSTEM, now=now - timedelta(seconds=1))
    return str(version.pk)


def a_volume(world: TenantWithOwner) -> str:
    name = f"of the matrix {current_time().timestamp()}"
    return str(
        volume_lifecycle.create_volume(project=world.root, name=name, size_gib=1, actor=SYSTEM, now=current_time()).pk
    )


def a_lease_array(world: TenantWithOwner) -> str:
    values = {"name": "of the matrix", "size": 1, "created_at": current_time(), "requested_by": "usr_1"}
    return str(LeaseArray.objects.create(tenant=world.tenant, project=world.root, **values).pk)


def a_lease_schedule(world: TenantWithOwner) -> str:
    name = f"of the matrix {current_time().timestamp()}"
    wanted = LeaseRequest(offering_id=an_offering().pk, name=name, max_duration_s=3600)
    made = schedule_records.create_schedule(
        wanted, cron="0 3 * * *", time_zone="UTC", project=world.root, actor=SYSTEM, now=current_time()
    )
    return str(made.pk)


def a_secret(world: TenantWithOwner) -> str:
    name = f"OF_THE_MATRIX_{current_time().timestamp():.6f}".replace(".", "_")
    made = secret_store.create_secret(project=world.root, name=name, value="v", actor=SYSTEM, now=current_time())
    return str(made.pk)


def a_template(world: TenantWithOwner) -> str:
    values = {**TEMPLATE, "name": f"template {current_time()}"}
    made = template_store.create_template(project=world.root, values=values, actor=SYSTEM, now=current_time())
    return str(made.pk)


def an_operator_template(world: TenantWithOwner) -> str:
    values = {**TEMPLATE, "name": f"template {current_time()}"}
    return str(template_store.create_operator_template(values=values, actor=SYSTEM, now=current_time()).pk)


def a_kept_image(world: TenantWithOwner) -> str:
    return str(image_prepulls.add_image(a_node().cluster, "acme/comfy:1", actor=SYSTEM, now=current_time()).pk)


def an_ssh_key(world: TenantWithOwner) -> str:
    """A saved key of the owner."""
    blob = struct.pack(">I", 11) + b"ssh-ed25519" + world.owner.pk.encode() + str(current_time()).encode()
    line = f"ssh-ed25519 {base64.b64encode(blob).decode()} of the matrix"
    actor = Actor("user", world.owner.pk, world.owner.email)
    return str(ssh_keys.add_key(name=f"key {current_time()}", public_key=line, actor=actor, now=current_time()).pk)


def a_node() -> Node:
    an_offering()
    return Node.objects.all()[0]


def a_layout_change() -> Repartition:
    plan = {
        "wanted": {"0": {"1g.10gb": 7}},
        "before": {"0": {"whole-gpu": 1}},
        "planned_at": current_time(),
        "step_at": current_time(),
    }
    return Repartition.objects.get_or_create(node=a_node(), step="planned", defaults=plan)[0]


def a_move_plan() -> RelocationPlan:
    gpu = a_node().gpus.all()[0]
    plan = {
        "reason": "x",
        "cost_s": 1,
        "gain_milli": 1,
        "gpus": [],
        "state_at": current_time(),
        "proposed_at": current_time(),
    }
    pool = {"cluster_id": gpu.node.cluster_id, "gpu_model": gpu.gpu_model}
    return RelocationPlan.objects.get_or_create(state="proposed", **pool, defaults=plan)[0]


def an_invoice(world: TenantWithOwner) -> str:
    month = billing_periods.current_period(world.tenant, now=current_time())
    invoice, _ = Invoice.objects.get_or_create(
        tenant=world.tenant, period=month, defaults={"currency": "EUR", "refreshed_at": current_time()}
    )
    return str(invoice.pk)


def a_final_invoice(world: TenantWithOwner) -> str:
    """One of a month that is over, with an amount due on it."""
    over = current_time() - timedelta(days=40)
    billing_periods.ensure_periods(world.tenant, since=over, until=over)
    final = {
        "currency": "EUR",
        "refreshed_at": over,
        "status": "finalized",
        "total": 100,
        "finalized_at": over,
    }
    month = billing_periods.current_period(world.tenant, now=over)
    return str(Invoice.objects.get_or_create(tenant=world.tenant, period=month, defaults=final)[0].pk)


def an_e_invoice(world: TenantWithOwner) -> str:
    """A final invoice whose parties have all that an electronic invoice requires."""
    return str(CreditNote.objects.get(pk=a_credit_note(world)).invoice_id)


def a_payment(world: TenantWithOwner) -> str:
    values = {"minor": 100, "currency": "EUR", "gateway": "none", "opened_at": current_time(), "due_at": current_time()}
    where = {"tenant": world.tenant, "invoice_id": a_final_invoice(world)}
    return str(Payment.objects.get_or_create(**where, defaults=values)[0].pk)


def a_credit_note(world: TenantWithOwner) -> str:
    """A euro on an invoice of its own, for an earlier month."""
    over = current_time() - timedelta(days=80)
    billing_periods.ensure_periods(world.tenant, since=over, until=over)
    month = billing_periods.current_period(world.tenant, now=over)
    final = {"currency": "EUR", "refreshed_at": over, "total": 100}
    invoice, made = Invoice.objects.get_or_create(tenant=world.tenant, period=month, defaults=final)
    if made:
        offering = an_offering()
        version = offering.price_versions.first() or set_price(offering, 10**9, since=over)
        line = {
            "project_id": world.root.pk,
            "offering_id": offering.pk,
            "price_version_id": version.pk,
            "leases": 1,
        }
        sums = {"unit_seconds": 3600, "exact_num": 3600 * 10**9, "minor": 100}
        InvoiceLine.objects.create(tenant=world.tenant, invoice=invoice, n=1, **line, **sums)
        Invoice.objects.filter(pk=invoice.pk).update(
            status="finalized",
            finalized_at=over,
            series="x",
            number=current_time().microsecond,
            treatment="outside",
            supplier=PARTY,
            customer=PARTY | {"country": "CH", "vat_id": ""},
            disputable_until=current_time() + timedelta(days=9),
        )
        credit_notes.issue_credit_note(
            invoice, wanted={1: 1}, seen=0, why="a coin too much", actor=SYSTEM, now=current_time()
        )
    return str(invoice.credit_notes.get().pk)


def a_correction(world: TenantWithOwner) -> str:
    """A proposed correction of one wrongly charged minute of a lease."""
    now = current_time().replace(microsecond=0)
    span = {"since": now - timedelta(minutes=9), "until": now - timedelta(minutes=8)}
    with rls.tenant_scope(world.tenant.pk):
        lease = add_ended_lease(world.root, create_priced_offering(), span["since"], 60)
        lease_rating.rate_tenant_leases(world.tenant, now=now)
    made = correction_proposals.propose_lease_correction(
        lease, charge=False, **span, why="it was down", actor=SYSTEM, now=now
    )
    return str(made.pk)


def an_undisputed_invoice(world: TenantWithOwner) -> str:
    """An invoice without open disputes."""
    with rls.tenant_scope(world.tenant.pk):
        found = Dispute.objects.get(pk=a_dispute(world))
        dispute_requests.withdraw_dispute(found, actor=SYSTEM, now=current_time())
    return str(found.invoice_id)


def a_dispute(world: TenantWithOwner) -> str:
    """An open dispute of one minor unit on the credit note's invoice."""
    a_credit_note(world)
    invoice = Invoice.objects.get(tenant=world.tenant, credit_notes__isnull=False)
    if open_ := Dispute.objects.filter(invoice=invoice, status="open").first():
        return str(open_.pk)
    values = {"lines": {1: 1}, "reason": "it was down", "actor": SYSTEM, "now": invoice.finalized_at}
    return str(dispute_requests.dispute_lines(invoice, **values)[0].pk)


def a_receipt(world: TenantWithOwner) -> str:
    """A bank transfer of a cent for an invoice of its own, for an earlier month."""
    over = current_time() - timedelta(days=120)
    billing_periods.ensure_periods(world.tenant, since=over, until=over)
    month = billing_periods.current_period(world.tenant, now=over)
    final = {"currency": "EUR", "refreshed_at": over, "status": "finalized", "total": 100, "finalized_at": over}
    final |= {"series": f"T{world.tenant.pk[-18:]}", "number": 1}
    invoice, _ = Invoice.objects.get_or_create(tenant=world.tenant, period=month, defaults=final)
    terms = ReceiptTerms(1, "EUR", current_time().date(), pays=ReceiptUse.INVOICES, invoices=(invoice.pk,))
    return str(record_receipt(world.tenant, terms, idem="matrix", actor=SYSTEM, now=current_time()).pk)


def an_open_month(world: TenantWithOwner) -> str:
    """A month that is over and not closed."""
    over = current_time() - timedelta(days=160)
    billing_periods.ensure_periods(world.tenant, since=over, until=over)
    return str(billing_periods.current_period(world.tenant, now=over).pk)


def a_bank_entry(world: TenantWithOwner) -> str:
    """An undecided entry of a bank statement."""
    content = f"date,amount,currency,payer\n2026-11-05,1.00,EUR,{world.tenant.name}\n".encode()
    statement = import_statement(content, file_name="matrix.csv", actor=SYSTEM, now=current_time())
    return str(statement.entries.get().pk)


def a_bank_statement(world: TenantWithOwner) -> str:
    return str(BankEntry.objects.get(pk=a_bank_entry(world)).statement_id)


def a_grant(world: TenantWithOwner) -> str:
    """Credit that is usable; given once."""
    terms = GrantTerms(minor=100, reason="a slow week")
    return str(new_grants.give_grant(world.tenant, terms, idem="matrix", actor=SYSTEM, now=current_time()).pk)


def a_discount(world: TenantWithOwner) -> str:
    values = {"percent_bp": 100, "first_month": "2026-01", "given_by": "x", "given_at": current_time()}
    return str(Discount.objects.get_or_create(tenant=world.tenant, name="Partner", defaults=values)[0].pk)


def a_commitment(world: TenantWithOwner) -> str:
    found = Commitment.objects.filter(tenant=world.tenant).first()
    return str(
        (
            found
            or Commitment.objects.create(
                tenant=world.tenant,
                offering=create_priced_offering(),
                units=1,
                nano_per_hour=1,
                currency="EUR",
                valid=DateTimeTZRange(current_time().replace(microsecond=0), None),
                agreed_by="x",
                agreed_at=current_time(),
            )
        ).pk
    )


def a_minimum(world: TenantWithOwner) -> str:
    values = {
        "minor": 1,
        "currency": "EUR",
        "valid": DateTimeTZRange(current_time().replace(microsecond=0), None),
        "agreed_by": "x",
    }
    return str(
        Minimum.objects.get_or_create(tenant=world.tenant, defaults=values | {"agreed_at": current_time()})[0].pk
    )


def a_campaign(world: TenantWithOwner) -> str:
    """A discount code that every tenant can redeem."""
    made = {"name": "Matrix", "percent_bp": 100, "since": current_time() - timedelta(days=1), "created_by": "x"}
    return str(Campaign.objects.get_or_create(code="MATRIX-1", defaults=made | {"created_at": current_time()})[0].pk)


def a_topup(world: TenantWithOwner) -> str:
    values = {"minor": 100, "currency": "EUR", "gateway": "none", "opened_at": current_time(), "due_at": current_time()}
    return str(TopUp.objects.get_or_create(tenant=world.tenant, defaults=values)[0].pk)


def a_refund(world: TenantWithOwner) -> str:
    """A refund of a payment that succeeded."""
    if found := Refund.objects.filter(tenant=world.tenant).first():
        return str(found.pk)
    paid = a_payment(world)
    Payment.objects.filter(pk=paid, status="pending").update(status="succeeded", settled_at=current_time(), due_at=None)
    values = {"minor": 1, "currency": "EUR", "gateway": "none", "opened_at": current_time(), "due_at": current_time()}
    made = Refund.objects.create(tenant=world.tenant, payment_id=paid, why="x", opened_by="x", **values)
    return str(made.pk)


def an_email(world: TenantWithOwner) -> str:
    made = {
        "kind": "invoice-final",
        "subject_id": "inv_gone",
        "made_at": current_time(),
        "undelivered_reason": "given_up",
    }
    return str(QueuedEmail.objects.get_or_create(tenant=world.tenant, defaults=made)[0].pk)


def some_terms(world: TenantWithOwner) -> str:
    made = {"payment": "invoice", "account_status": "good", "since": current_time()}
    return str(AccountTerms.objects.get_or_create(tenant=world.tenant, defaults=made)[0].pk)


def a_transfer(world: TenantWithOwner) -> str:
    """A ledger transfer posted for an invoice."""
    invoice = a_final_invoice(world)
    posting.post_invoices([invoice], now=current_time())
    return str(LedgerTransfer.objects.for_ref(invoice)[0].pk)


def an_invoice_line(world: TenantWithOwner) -> tuple[str, str]:
    now = current_time()
    add_ended_lease(world.root, create_priced_offering(), now.replace(microsecond=0) - timedelta(minutes=2), 60)
    lease_rating.rate_tenant_leases(world.tenant, now=now)
    drafts.refresh_drafts(world.tenant, now=now)
    line = InvoiceLine.objects.filter(invoice__tenant=world.tenant).order_by("n")[0]
    return str(line.invoice_id), str(line.n)


def an_allocation(world: TenantWithOwner) -> str:
    """A released allocation of a lease."""
    gone = {
        "profile": "1g.10gb",
        "isolation": "hardware",
        "placement": NumericRange(0, 1),
        "held_at": current_time(),
        "released_at": current_time(),
    }
    lease, gpu = a_lease(world), a_node().gpus.all()[0]
    made = Allocation.objects.create(tenant=world.tenant, lease_id=lease, generation=1, gpu=gpu, **gone)
    return str(made.pk)


# Things that lie in a project of the tree, so that a role on another project does not reach them.
PLACED = frozenset(
    {
        "approval request",
        "lease",
        "quote",
        "volume",
        "lease array",
        "lease schedule",
        "secret",
        "template",
        "archived project",
        "project",
        "member",
        "invitation",
        "service account",
        "quota",
        "budget",
        "budget to remove",
        "hold",
    }
)


def an_approval_request(world: TenantWithOwner) -> str:
    """Return a launch that waits for an owner, asked for by the owner."""
    offering, pk, now = an_offering(), approval_request_id(), current_time()
    wanted = LeaseRequest(offering_id=offering.pk, name="asked", max_duration_s=3600)
    asked = ApprovalRequest.objects.create(
        pk=pk,
        tenant_id=world.tenant.pk,
        project=world.root,
        kind="launch",
        name="asked",
        offering=offering,
        quantity=1,
        request=store_launch(wanted, owner_id=pk),
        cost_minor=100,
        currency="EUR",
        milli_gpus=143,
        duration_s=3600,
        exceeded=["tenant:money"],
        requested_by_kind="user",
        requested_by=world.owner.pk,
        requested_by_label=world.owner.email,
        created_at=now,
        expires_at=now + timedelta(days=1),
        needs_tenant=True,
        needs_operator=False,
    )
    return str(asked.pk)


def an_approval_limit(world: TenantWithOwner) -> str:
    wanted = LaunchLimits(Approver.OPERATOR, 10**9, None, None)
    return str(approval_limits.set_limits(world.tenant, wanted, actor=SYSTEM, now=current_time()).pk)


THINGS: dict[str, Thing] = {
    "approval request": in_its_tenant(an_approval_request),
    "approval limit": in_its_tenant(an_approval_limit),
    "problem type": lambda world: "not-found",
    "invoice line": in_its_tenant(an_invoice_line),
    "invoice": in_its_tenant(an_invoice),
    "invoice export": in_its_tenant(lambda world: (an_invoice(world), "focus")),
    "final invoice": in_its_tenant(a_final_invoice),
    "e-invoice": in_its_tenant(an_e_invoice),
    "payment": in_its_tenant(a_payment),
    "correction": lambda world: a_correction(world),
    "statement": lambda world: (str(world.tenant.pk), "csv"),
    "dispute": in_its_tenant(a_dispute),
    "credit note": in_its_tenant(a_credit_note),
    "topup": in_its_tenant(a_topup),
    "refund": in_its_tenant(a_refund),
    "letter": in_its_tenant(an_email),
    "terms": in_its_tenant(some_terms),
    "grant": in_its_tenant(a_grant),
    "bank receipt": in_its_tenant(a_receipt),
    "open month": in_its_tenant(an_open_month),
    "month review": in_its_tenant(an_open_month),
    "bank entry": a_bank_entry,
    "bank statement": a_bank_statement,
    "commitment": in_its_tenant(a_commitment),
    "discount": in_its_tenant(a_discount),
    "minimum-spend": in_its_tenant(a_minimum),
    "campaign": a_campaign,
    "ledger transfer": in_its_tenant(a_transfer),
    "lease": in_its_tenant(a_lease),
    "quote": in_its_tenant(a_quote),
    "allocation": in_its_tenant(an_allocation),
    "price version": lambda world: str(create_priced_offering().price_versions.get().pk),
    "own price": an_own_price,
    "volume": in_its_tenant(a_volume),
    "lease array": in_its_tenant(a_lease_array),
    "lease schedule": in_its_tenant(a_lease_schedule),
    "secret": in_its_tenant(a_secret),
    "template": in_its_tenant(a_template),
    "operators' template": an_operator_template,
    "kept image": a_kept_image,
    "ssh key": an_ssh_key,
    "offering": lambda world: str(an_offering().pk),
    "gpu model": lambda world: str(an_offering().gpu_model_id),
    "cluster": lambda world: str(a_node().cluster_id),
    "node": lambda world: str(a_node().pk),
    "layout change": lambda world: str(a_layout_change().pk),
    "move plan": lambda world: str(a_move_plan().pk),
    "gpu": lambda world: str(a_node().gpus.all()[0].pk),
    "tenant": lambda world: str(world.tenant.pk),
    "archived project": an_archived_project,
    "operators' token": lambda world: an_operator_token(),
    "project": lambda world: str(world.create_project(f"thing-{current_time().timestamp()}").pk),
    "member": in_its_tenant(a_member),
    "invitation": in_its_tenant(lambda world: str(an_invitation(world)[0].pk)),
    "service account": in_its_tenant(a_service_account),
    "token": in_its_tenant(a_token),
    "quota": in_its_tenant(a_quota),
    "budget": in_its_tenant(a_budget),
    "tax rate": a_tax_rate,
    "exchange rate": an_exchange_rate,
    "month": in_its_tenant(a_month),
    "accounting export": lambda _: ("2026-10", "journal"),
    "budget to remove": in_its_tenant(a_budget),
    "hold": in_its_tenant(a_hold),
    "card form": in_its_tenant(a_card_form),
    "stripe difference": lambda _: a_stripe_difference(),
    "stripe event": lambda _: a_stripe_event(),
    "event": in_its_tenant(lambda world: str(AuditEvent.objects.latest("id").pk)),
}

ROWS: dict[str, Row] = {
    # the house
    "health": anybody(),
    "ready": anybody(),
    "metrics": anybody(),
    "styleguide/": anybody(),
    "help/": account("GET"),
    "api-reference/": account("GET"),
    "problems/": anybody(),
    "problems/<slug:code>": anybody(thing="problem type"),
    "api/v1/openapi.json": anybody(),
    # tenants, over the API
    "api/v1/users/me": api("tenant", GET=ALL, part=SAME),
    "api/v1/roles": api("tenant", GET=ALL, part=SAME),
    "api/v1/tenants": api("tenant", GET=ALL, part=SAME),
    "api/v1/tenants/<str:pk>": api(
        "tenant",
        thing="tenant",
        GET=ALL,
        PATCH=OWNERS,
        body=lambda w: {"name": "New"},
        part={"GET": ALL, "PATCH": NOBODY},
    ),
    "api/v1/projects": api(
        "projects", GET=ALL, POST=LEADERS, body=lambda w: {"name": "new", "parent": w.root.pk}, part=SAME
    ),
    "api/v1/projects/<str:pk>": api(
        "projects", thing="project", GET=ALL, PATCH=LEADERS, body=lambda w: {"name": "new"}, part=SAME
    ),
    "api/v1/projects/<str:pk>/archive": api("projects", thing="project", POST=LEADERS, part=SAME),
    "api/v1/projects/<str:pk>/unarchive": api("projects", thing="archived project", POST=LEADERS, part=SAME),
    "api/v1/members": api("members", GET=ALL, part=SAME),
    "api/v1/members/<str:pk>": api(
        "members",
        thing="member",
        GET=ALL,
        PATCH=LEADERS,
        DELETE=LEADERS,
        body=lambda w: {"role": "viewer"},
        part=SAME,
    ),
    "api/v1/invitations": api(
        "members",
        GET=LEADERS,
        POST=LEADERS,
        body=lambda w: {"email": "a@example.org", "role": "viewer", "project": w.root.pk},
        part=SAME,
    ),
    "api/v1/invitations/<str:pk>": api("members", thing="invitation", GET=LEADERS, DELETE=LEADERS, part=SAME),
    "api/v1/service-accounts": api(
        "members",
        GET=ALL,
        POST=LEADERS,
        body=lambda w: {"name": "new", "role": "viewer", "project": w.root.pk},
        part=SAME,
    ),
    "api/v1/service-accounts/<str:pk>": api(
        "members",
        thing="service account",
        GET=ALL,
        PATCH=LEADERS,
        DELETE=LEADERS,
        body=lambda w: {"role": "viewer"},
        part=SAME,
    ),
    "api/v1/tokens": api(
        "tokens",
        GET=ALL,
        POST=ALL,
        body=lambda w: {
            "name": "new",
            "scopes": ["leases:read"],
            "expires_at": (current_time() + timedelta(days=1)).isoformat(),
            "project": w.root.pk,
        },
        part=SAME,
    ),
    # somebody else's token is not there at all for those who do not lead
    "api/v1/tokens/current": api("tokens", GET=ALL, part=SAME),
    "api/v1/tokens/<str:pk>": api("tokens", thing="token", GET=LEADERS, DELETE=LEADERS, part=NOBODY),
    "api/v1/ssh-keys": api(
        "ssh_keys", GET=ALL, POST=ALL, body=lambda w: {"name": "new", "public_key": PUBLIC_KEY}, part=SAME
    ),
    # somebody else's key is not there at all
    "api/v1/ssh-keys/<str:pk>": api("ssh_keys", thing="ssh key", GET=OWNERS, DELETE=OWNERS, part=NOBODY),
    "api/v1/quotas": api(
        "quotas",
        GET=ALL,
        POST=LEADERS,
        body=lambda w: {"project": w.create_project("q").pk, "kind": "units", "limit": 1},
        part=SAME,
    ),
    "api/v1/quotas/<str:pk>": api(
        "quotas",
        thing="quota",
        GET=ALL,
        PATCH=LEADERS,
        DELETE=LEADERS,
        body=lambda w: {"limit": 1},
        part=SAME,
    ),
    "api/v1/quota-usage": api("quotas", GET=ALL, part=SAME),
    "api/v1/audit-events": api("audit", GET=LEADERS, part=NOBODY),
    "api/v1/audit-events/<str:pk>": api("audit", thing="event", GET=LEADERS, part=NOBODY),
    # leases and what is on sale, over the API
    "api/v1/leases": api(
        "leases",
        GET=ALL,
        POST=WORKERS,
        body=lambda w: {
            "name": "new",
            "project": w.root.pk,
            "offering": an_offering().pk,
            "max_duration_s": 3600,
        },
        part=SAME,
    ),
    "api/v1/leases/<str:pk>": api(
        "leases",
        thing="lease",
        GET=ALL,
        PATCH=WORKERS,
        DELETE=WORKERS,
        body=lambda w: {"name": "new"},
        part=SAME,
    ),
    "api/v1/leases/<str:pk>/release": api("leases", thing="lease", POST=WORKERS, part=SAME),
    "api/v1/leases/<str:pk>/extend": api("leases", thing="lease", POST=WORKERS, part=SAME),
    "api/v1/leases/<str:pk>/stop": api("leases", thing="lease", POST=WORKERS, part=SAME),
    "api/v1/leases/<str:pk>/start": api("leases", thing="lease", POST=WORKERS, part=SAME),
    "api/v1/volumes": api(
        "leases",
        GET=ALL,
        POST=WORKERS,
        body=lambda w: {"name": f"new-{current_time().timestamp()}", "project": w.root.pk, "size_gib": 1},
        part=SAME,
    ),
    "api/v1/volumes/<str:pk>": api("leases", thing="volume", GET=ALL, DELETE=WORKERS, part=SAME),
    "api/v1/secrets": api(
        "secrets",
        GET=ALL,
        POST=LEADERS,
        body=lambda w: {
            "name": f"NEW_{current_time().timestamp():.6f}".replace(".", "_"),
            "project": w.root.pk,
            "value": "v",
        },
        part=SAME,
    ),
    "api/v1/secrets/<str:pk>": api(
        "secrets",
        thing="secret",
        GET=ALL,
        PATCH=LEADERS,
        DELETE=LEADERS,
        body=lambda w: {"value": "new"},
        part=SAME,
    ),
    "api/v1/templates": api(
        "templates",
        GET=ALL,
        POST=LEADERS,
        body=lambda w: {"name": f"new {current_time()}", "project": w.root.pk, "image": "ghcr.io/acme/comfy:1"},
        part=SAME,
    ),
    "api/v1/templates/<str:pk>": api(
        "templates",
        thing="template",
        GET=ALL,
        PATCH=LEADERS,
        DELETE=LEADERS,
        body=lambda w: {"description": "new"},
        part=SAME,
    ),
    "api/v1/templates/shared": api("templates", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/transitions": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/metrics": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/logs": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/logs/download": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/connections": api("leases", thing="lease", opens=True, GET=WORKERS, part=SAME),
    "api/v1/lease-arrays": api(
        "leases",
        GET=ALL,
        POST=WORKERS,
        body=lambda w: {
            "name": "new",
            "project": w.root.pk,
            "offering": an_offering().pk,
            "max_duration_s": 3600,
            "array_size": 1,
        },
        part=SAME,
    ),
    "api/v1/lease-arrays/<str:pk>": api("leases", thing="lease array", GET=ALL, part=SAME),
    "api/v1/lease-arrays/<str:pk>/release": api("leases", thing="lease array", POST=WORKERS, part=SAME),
    "api/v1/approval-requests": api("approvals", GET=ALL, POST=WORKERS, part=SAME),
    "api/v1/approval-requests/<str:pk>": api("approvals", thing="approval request", GET=ALL, part=SAME),
    "api/v1/approval-requests/<str:pk>/approve": api("approvals", thing="approval request", POST=OWNERS, part=SAME),
    "api/v1/approval-requests/<str:pk>/decline": api("approvals", thing="approval request", POST=OWNERS, part=SAME),
    "api/v1/approval-requests/<str:pk>/withdraw": api("approvals", thing="approval request", POST=WORKERS, part=SAME),
    "api/v1/approval-limits": api("approvals", GET=ALL, PUT=OWNERS, part=NOBODY),
    "api/v1/ops/approval-requests": fleet(audited=True),
    "api/v1/ops/approval-requests/<str:pk>": fleet(thing="approval request", audited=True),
    "api/v1/ops/approval-requests/<str:pk>/approve": Row(
        "fleet", {"POST": STAFF}, thing="approval request", writes_on_get=True
    ),
    "api/v1/ops/approval-requests/<str:pk>/decline": Row(
        "fleet", {"POST": STAFF}, thing="approval request", writes_on_get=True
    ),
    "api/v1/ops/approval-limits": fleet(audited=True),
    "api/v1/ops/approval-limits/<str:pk>": fleet(thing="approval limit", audited=True),
    "api/v1/ops/tenants/<str:pk>/approval-limits": Row("fleet", {"POST": STAFF}, thing="tenant", writes_on_get=True),
    "api/v1/lease-schedules": api(
        "leases",
        GET=ALL,
        POST=WORKERS,
        body=lambda w: {
            "name": f"new-{current_time().timestamp()}",
            "project": w.root.pk,
            "cron": "0 3 * * *",
            "launch": {"offering": an_offering().pk, "max_duration_s": 3600},
        },
        part=SAME,
    ),
    "api/v1/lease-schedules/<str:pk>": api(
        "leases",
        thing="lease schedule",
        GET=ALL,
        PATCH=WORKERS,
        DELETE=WORKERS,
        body=lambda w: {"cron": "0 4 * * *"},
        part=SAME,
    ),
    "api/v1/lease-schedules/<str:pk>/runs": api("leases", thing="lease schedule", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/attempts": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/notices": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/leases/<str:pk>/allocations": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/queue-entries": api("leases", GET=ALL, part=SAME),
    "api/v1/events": api("leases", GET=ALL, part=SAME),
    "api/v1/offerings": api("offerings", GET=ALL, part=SAME),
    "api/v1/offerings/<str:pk>": shared("offerings", thing="offering", GET=ALL),
    "api/v1/offerings/<str:pk>/availability": shared("offerings", thing="offering", GET=ALL),
    "api/v1/gpu-models": api("offerings", GET=ALL, part=SAME),
    "api/v1/gpu-models/<str:pk>": shared("offerings", thing="gpu model", GET=ALL),
    "api/v1/clusters": fleet(POST=STAFF),
    "api/v1/clusters/<str:pk>": fleet(thing="cluster", PATCH=STAFF, bodiless=("PATCH",)),
    **{
        f"api/v1/clusters/<str:pk>/{name}": Row("fleet", {"POST": STAFF}, thing="cluster")
        for name in ("credentials", "accept-inventory", "unfreeze")
    },
    "api/v1/clusters/<str:pk>/orphans": fleet(thing="cluster", POST=STAFF),
    "api/v1/nodes": fleet(),
    "api/v1/nodes/<str:pk>": fleet(thing="node", PATCH=STAFF),
    "api/v1/nodes/<str:pk>/release-leases": Row("fleet", {"POST": STAFF}, thing="node"),
    "api/v1/gpus": fleet(),
    "api/v1/gpus/<str:pk>": fleet(thing="gpu"),
    "api/v1/clusters/<str:pk>/examination": fleet(thing="cluster", POST=STAFF, bodiless=("POST",)),
    "api/v1/clusters/<str:pk>/layouts": fleet(thing="cluster", POST=STAFF, bodiless=("POST",)),
    "api/v1/ops/layout-changes": fleet(),
    "api/v1/ops/layout-changes/<str:pk>": fleet(thing="layout change", PATCH=STAFF),
    "api/v1/ops/leases": fleet(audited=True),
    "api/v1/ops/leases/<str:pk>": fleet(thing="lease", audited=True),
    "api/v1/ops/leases/<str:pk>/release": Row("fleet", {"POST": STAFF}, thing="lease", writes_on_get=True),
    "api/v1/ops/leases/<str:pk>/transitions": fleet(thing="lease", audited=True),
    "api/v1/ops/allocations": fleet(audited=True),
    "api/v1/ops/allocations/<str:pk>": fleet(thing="allocation", audited=True),
    "api/v1/ops/templates": fleet(POST=STAFF, audited=True),
    "api/v1/ops/templates/<str:pk>": fleet(
        thing="operators' template", audited=True, PATCH=STAFF, DELETE=STAFF, bodiless=("PATCH", "DELETE")
    ),
    "api/v1/ops/image-prepulls": fleet(POST=STAFF, audited=True),
    "api/v1/ops/image-prepulls/<str:pk>": fleet(thing="kept image", audited=True, DELETE=STAFF, bodiless=("DELETE",)),
    "api/v1/ops/relocation-plans": fleet(POST=STAFF, audited=True, bodiless=("POST",)),
    "api/v1/ops/relocation-plans/<str:pk>": fleet(thing="move plan", audited=True, PATCH=STAFF),
    "api/v1/ops/gpus": fleet(audited=True),
    "api/v1/ops/gpus/<str:pk>": fleet(thing="gpu", audited=True, PATCH=STAFF),
    "api/v1/ops/offerings": fleet(audited=True),
    "api/v1/ops/offerings/derive": Row("fleet", {"POST": STAFF}, writes_on_get=True, bodiless=("POST",)),
    "api/v1/ops/offerings/<str:pk>": fleet(thing="offering", audited=True, PATCH=STAFF, bodiless=("PATCH",)),
    "api/v1/ops/offerings/<str:pk>/price": Row("fleet", {"POST": STAFF}, thing="offering", writes_on_get=True),
    "api/v1/ops/offerings/<str:pk>/preview": fleet(thing="offering", audited=True),
    "api/v1/ops/price-gaps": fleet(audited=True),
    "api/v1/ops/price-versions": fleet(audited=True),
    "api/v1/ops/price-versions/<str:pk>": fleet(thing="price version", audited=True, PATCH=STAFF),
    "api/v1/ops/invoices": fleet(audited=True),
    "api/v1/ops/invoices/<str:pk>": fleet(thing="invoice", audited=True, PATCH=STAFF),
    "api/v1/ops/invoices/<str:pk>/credit-note": Row("fleet", {"POST": STAFF}, thing="invoice", writes_on_get=True),
    "api/v1/ops/invoices/<str:pk>/pdf": fleet(thing="invoice", audited=True),
    "api/v1/ops/invoices/<str:pk>/xrechnung": fleet(thing="e-invoice", audited=True),
    "api/v1/ops/invoices/<str:pk>/lines": fleet(thing="invoice", audited=True),
    "api/v1/ops/credit-notes": fleet(audited=True),
    "api/v1/ops/credit-notes/<str:pk>": fleet(thing="credit note", audited=True),
    "api/v1/ops/corrections": fleet(audited=True),
    "api/v1/ops/corrections/<str:pk>": fleet(thing="correction", PATCH=STAFF, audited=True),
    "api/v1/ops/leases/<str:pk>/correction": Row("fleet", {"POST": STAFF}, thing="lease", writes_on_get=True),
    "api/v1/ops/price-versions/<str:pk>/correction": Row(
        "fleet", {"POST": STAFF}, thing="price version", writes_on_get=True
    ),
    "api/v1/ops/tenants/<str:pk>/statement": fleet(thing="tenant", audited=True),
    "api/v1/ops/tenants/<str:pk>/statement/pdf": fleet(thing="tenant", audited=True),
    "api/v1/ops/invoices/<str:pk>/exports/<str:kind>": fleet(thing="invoice export", audited=True),
    "api/v1/ops/disputes": fleet(audited=True),
    "api/v1/ops/disputes/<str:pk>": fleet(thing="dispute", PATCH=STAFF, audited=True),
    **{
        f"api/v1/ops/{name}s{rest}": row
        for name in ("campaign", "commitment", "discount", "minimum-spend")
        for rest, row in (
            ("", fleet(POST=STAFF, audited=True)),
            ("/<str:pk>", fleet(thing=name, audited=True, PATCH=STAFF)),
        )
    },
    **{
        f"api/v1/ops/{noun.replace(' ', '-').replace('entry', 'entrie')}s{rest}": row
        for noun, makes, changes in (
            ("bank receipt", {"POST": STAFF}, {"PATCH": STAFF}),
            ("bank entry", {}, {"PATCH": STAFF}),
            ("bank statement", {"POST": STAFF}, {}),
            ("month review", {}, {"PATCH": STAFF}),
        )
        for rest, row in (
            ("", fleet(audited=True, **makes)),
            ("/<str:pk>", fleet(thing=noun, audited=True, **changes)),
        )
    },
    "api/v1/ops/grants": fleet(POST=STAFF, audited=True),
    "api/v1/ops/grants/<str:pk>": fleet(thing="grant", audited=True, PATCH=STAFF),
    "api/v1/ops/credit-notes/<str:pk>/pdf": fleet(thing="credit note", audited=True),
    "api/v1/ops/credit-notes/<str:pk>/xrechnung": fleet(thing="credit note", audited=True),
    "api/v1/ops/payment-terms": fleet(audited=True),
    "api/v1/ops/payment-terms/<str:pk>": fleet(thing="terms", audited=True),
    "api/v1/ops/payments": fleet(audited=True),
    "api/v1/ops/payments/<str:pk>": fleet(thing="payment", audited=True, PATCH=STAFF),
    "api/v1/ops/payments/<str:pk>/refund": Row("fleet", {"POST": STAFF}, thing="payment", writes_on_get=True),
    "api/v1/ops/notifications": fleet(audited=True),
    "api/v1/ops/notifications/<str:pk>": fleet(thing="letter", audited=True, PATCH=STAFF),
    "api/v1/ops/refunds": fleet(audited=True),
    "api/v1/ops/refunds/<str:pk>": fleet(thing="refund", audited=True, PATCH=STAFF),
    "api/v1/ops/topups": fleet(audited=True),
    "api/v1/ops/topups/<str:pk>": fleet(thing="topup", audited=True, PATCH=STAFF),
    "api/v1/ops/month-closes/<str:pk>": fleet(thing="month", PATCH=STAFF, audited=True),
    "api/v1/ops/tax-rates": fleet(POST=STAFF, audited=True),
    "api/v1/ops/exchange-rates": fleet(POST=STAFF, audited=True),
    "api/v1/ops/exchange-rates/<str:pk>": fleet(thing="exchange rate", audited=True),
    "api/v1/ops/tax-rates/<str:pk>": fleet(thing="tax rate", audited=True),
    "api/v1/ops/ledger-transfers": fleet(audited=True),
    "api/v1/ops/ledger-transfers/<str:pk>": fleet(thing="ledger transfer", audited=True),
    "api/v1/ops/trial-balance": fleet(audited=True),
    "api/v1/ops/accounting/<str:pk>": fleet(thing="month", audited=True),
    "api/v1/ops/accounting/<str:pk>/exports/<str:kind>": fleet(thing="accounting export", audited=True),
    "api/v1/ops/journal-settings": fleet(PATCH=STAFF, audited=True),
    "api/v1/ops/stripe-differences": fleet(audited=True),
    "api/v1/ops/stripe-differences/<str:pk>": fleet(thing="stripe difference", audited=True, PATCH=STAFF),
    "api/v1/ops/stripe-events": fleet(audited=True),
    "api/v1/ops/stripe-events/<str:pk>": fleet(thing="stripe event", audited=True),
    "api/v1/ops/stripe-events/<str:pk>/retry": Row(
        "fleet", {"POST": STAFF}, thing="stripe event", writes_on_get=True, bodiless=("POST",)
    ),
    "api/v1/ops/stripe-days": fleet(audited=True),
    "api/v1/ops/integrity-checks": fleet(audited=True),
    "api/v1/ops/tenants": fleet(POST=STAFF, audited=True),
    "api/v1/ops/tenants/<str:pk>": fleet(thing="tenant", audited=True, PATCH=STAFF, bodiless=("PATCH",)),
    "api/v1/ops/tenants/<str:pk>/payment-terms": Row("fleet", {"PATCH": STAFF}, thing="tenant", writes_on_get=True),
    "api/v1/ops/tokens": fleet(POST=STAFF, audited=True),
    "api/v1/ops/tokens/current": Row("fleet", {"GET": STAFF}, writes_on_get=True, by_token=True),
    "api/v1/ops/tokens/<str:pk>": fleet(thing="operators' token", audited=True, DELETE=STAFF, bodiless=("DELETE",)),
    "api/v1/ops/tenants/<str:pk>/release": Row("fleet", {"POST": STAFF}, thing="tenant", writes_on_get=True),
    "api/v1/ops/tenants/<str:pk>/currency": Row("fleet", {"POST": STAFF}, thing="tenant", writes_on_get=True),
    "api/v1/ops/projects": fleet(audited=True),
    "api/v1/ops/projects/<str:pk>": fleet(thing="project", audited=True),
    "api/v1/ops/members": fleet(audited=True),
    "api/v1/ops/members/<str:pk>": fleet(thing="member", audited=True),
    "api/v1/ops/tenant-tokens": fleet(audited=True),
    "api/v1/ops/tenant-tokens/<str:pk>": fleet(thing="token", audited=True),
    "api/v1/ops/audit-events": fleet(audited=True),
    "api/v1/ops/audit-events/<str:pk>": fleet(thing="event", audited=True),
    # money, over the API
    "api/v1/leases/<str:pk>/charges": api("leases", thing="lease", GET=ALL, part=SAME),
    "api/v1/quotes/<str:pk>": api("offerings", thing="quote", GET=ALL, part=SAME),
    "api/v1/quotes": api(
        "offerings",
        GET=ALL,
        POST=ALL,
        stores=False,
        body=lambda w: {"project": w.root.pk, "offering": an_offering().pk, "max_duration_s": 3600},
        part=SAME,
    ),
    "api/v1/usage": api("usage", GET=ALL, part=SAME),
    "api/v1/usage-forecast": api("usage", GET=ALL, part=SAME),
    "api/v1/rated-charges": api("usage", GET=ALL, part=SAME),
    "api/v1/invoices": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>": api("billing", thing="invoice", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/lines": api("billing", thing="invoice", GET=PAYERS, part=NOBODY),
    "api/v1/account-statement": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/account-statement/pdf": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/pdf": api("billing", thing="invoice", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/xrechnung": api("billing", thing="e-invoice", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/focus": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/exports/<str:kind>": api("billing", thing="invoice export", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/cost-allocation": api("billing", thing="invoice", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/bundle": api("billing", thing="invoice", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/lines/<str:n>/explain": api("billing", thing="invoice line", GET=PAYERS, part=NOBODY),
    "api/v1/invoices/<str:pk>/pay": api("billing", thing="final invoice", POST=SETTLERS, part=NOBODY),
    "api/v1/credit-notes": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/credit-notes/<str:pk>": api("billing", thing="credit note", GET=PAYERS, part=NOBODY),
    "api/v1/disputes": api(
        "billing",
        GET=PAYERS,
        POST=SETTLERS,
        body=lambda w: {
            "invoice": in_its_tenant(an_undisputed_invoice)(w),
            "lines": [{"line": 1}],
            "reason": "it was down",
        },
        part=NOBODY,
    ),
    "api/v1/disputes/<str:pk>": api("billing", thing="dispute", GET=PAYERS, part=NOBODY),
    "api/v1/disputes/<str:pk>/withdraw": api("billing", thing="dispute", POST=SETTLERS, part=NOBODY),
    "api/v1/topups": api("billing", GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "api/v1/topups/<str:pk>": api("billing", thing="topup", GET=PAYERS, part=NOBODY),
    "api/v1/topup-rule": api("billing", GET=PAYERS, PUT=SETTLERS, DELETE=SETTLERS, part=NOBODY),
    "api/v1/wallet": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/discounts": api("billing", GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "api/v1/discounts/<str:pk>": api("billing", thing="discount", GET=PAYERS, part=NOBODY),
    "api/v1/commitments": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/commitments/<str:pk>": api("billing", thing="commitment", GET=PAYERS, part=NOBODY),
    "api/v1/minimum-spends": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/minimum-spends/<str:pk>": api("billing", thing="minimum-spend", GET=PAYERS, part=NOBODY),
    "api/v1/grants": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/grants/<str:pk>": api("billing", thing="grant", GET=PAYERS, part=NOBODY),
    "api/v1/credit-notes/<str:pk>/pdf": api("billing", thing="credit note", GET=PAYERS, part=NOBODY),
    "api/v1/credit-notes/<str:pk>/xrechnung": api("billing", thing="credit note", GET=PAYERS, part=NOBODY),
    "api/v1/budgets": api(
        "budgets",
        GET=ALL,
        POST=PAYERS,
        body=lambda w: {"project": w.create_project("b").pk, "limit": "5"},
        part=SAME,
    ),
    "api/v1/budgets/<str:pk>": api(
        "budgets",
        thing="budget",
        GET=ALL,
        PATCH=PAYERS,
        DELETE=PAYERS,
        body=lambda w: {"limit": "1.50"},
        part=SAME,
    ),
    "api/v1/budget-alerts": api("budgets", GET=ALL, part=SAME),
    "api/v1/budget-stops": api("budgets", GET=ALL, part=SAME),
    "api/v1/holds": api("budgets", GET=ALL, part=SAME),
    "api/v1/holds/<str:pk>": api("budgets", thing="hold", GET=ALL, part=SAME),
    "api/v1/balance": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/billing-details": api("billing", GET=PAYERS, PUT=SETTLERS, part=NOBODY),
    "api/v1/payments": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/payments/<str:pk>": api("billing", thing="payment", GET=PAYERS, part=NOBODY),
    "api/v1/payment-cards": api("billing", GET=PAYERS, part=NOBODY),
    "api/v1/payment-card-forms": api("billing", GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "api/v1/payment-card-forms/<str:pk>": api("billing", thing="card form", GET=PAYERS, part=NOBODY),
    "api/v1/price-versions": api("offerings", GET=ALL, part=SAME),
    "webhooks/stripe": anybody("POST"),
    # leases and money, in the portal
    "": page(GET=ALL, part=SAME),
    "catalogue/": page(GET=ALL, part=SAME),
    "launch/": page(GET=ALL, POST=WORKERS, part=SAME),
    "launch/quote/": page(GET=ALL, POST=ALL, part=SAME, stores=False),
    "leases/": page(GET=ALL, part=SAME),
    "leases/<str:pk>/": page(thing="lease", GET=ALL, part=SAME),
    "leases/<str:pk>/metrics/": page(thing="lease", GET=ALL, part=SAME),
    "leases/<str:pk>/logs/": page(thing="lease", GET=ALL, part=SAME),
    "leases/<str:pk>/logs/download/": page(thing="lease", GET=ALL, part=SAME),
    "leases/<str:pk>/terminal/": page(thing="lease", GET=WORKERS, part=SAME),
    "leases/<str:pk>/simulated-page/": page(thing="lease", GET=WORKERS, part=SAME),
    "leases/<str:pk>/row/": page(thing="lease", GET=ALL, part=SAME),
    "leases/<str:pk>/extend/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "leases/<str:pk>/allow-relocation/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "lease-arrays/<str:pk>/": page(thing="lease array", GET=ALL, part=SAME),
    "lease-arrays/<str:pk>/release/": page(thing="lease array", GET=WORKERS, POST=WORKERS, part=SAME),
    "approvals/": page(GET=ALL, part=SAME),
    "approvals/limits/": page(POST=OWNERS, part=NOBODY),
    "approvals/<str:pk>/": page(thing="approval request", GET=ALL, part=SAME),
    "approvals/<str:pk>/decide/": page(thing="approval request", POST=OWNERS, part=SAME),
    "approvals/<str:pk>/withdraw/": page(thing="approval request", POST=WORKERS, part=SAME),
    "ops/approvals/": ops(GET=STAFF),
    "ops/approvals/<str:pk>/": ops(thing="approval request", GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/approval-limits/": ops(thing="tenant", GET=STAFF, POST=STAFF),
    "schedules/": page(GET=ALL, part=SAME),
    "schedules/<str:pk>/": page(thing="lease schedule", GET=ALL, POST=WORKERS, part=SAME),
    "schedules/<str:pk>/delete/": page(thing="lease schedule", GET=WORKERS, POST=WORKERS, part=SAME),
    "leases/<str:pk>/end-terms/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "leases/<str:pk>/stop/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "leases/<str:pk>/start/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "volumes/": page(GET=ALL, POST=WORKERS, part=SAME),
    "volumes/<str:pk>/delete/": page(thing="volume", GET=WORKERS, POST=WORKERS, part=SAME),
    "secrets/": page(GET=ALL, POST=LEADERS, part=SAME),
    "secrets/<str:pk>/replace/": page(thing="secret", GET=LEADERS, POST=LEADERS, part=SAME),
    "secrets/<str:pk>/delete/": page(thing="secret", GET=LEADERS, POST=LEADERS, part=SAME),
    "templates/": page(GET=ALL, part=SAME),
    "templates/new/": page(GET=LEADERS, POST=LEADERS, part=SAME),
    "templates/<str:pk>/": page(thing="template", GET=LEADERS, POST=LEADERS, part=SAME),
    "templates/<str:pk>/delete/": page(thing="template", GET=LEADERS, POST=LEADERS, part=SAME),
    "leases/<str:pk>/release/": page(thing="lease", GET=WORKERS, POST=WORKERS, part=SAME),
    "queue/": page(GET=ALL, part=SAME),
    "spend/": page(GET=ALL, part=SAME),
    "budgets/": page(GET=ALL, POST=PAYERS, part=SAME),
    "budgets/<str:pk>/remove/": page(thing="budget to remove", GET=PAYERS, POST=PAYERS, part=SAME),
    "wallet/top-up/": page(POST=SETTLERS, part=NOBODY),
    "wallet/auto-top-up/": page(POST=SETTLERS, part=NOBODY),
    "wallet/": page(GET=PAYERS, part=NOBODY),
    "payment-method/": page(GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "invoices/": page(GET=PAYERS, part=NOBODY),
    "commitments/": page(GET=PAYERS, part=NOBODY),
    "discounts/": page(GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "billing-details/": page(GET=PAYERS, POST=SETTLERS, part=NOBODY),
    "statement/": page(GET=PAYERS, part=NOBODY),
    "statement/pdf/": page(GET=PAYERS, part=NOBODY),
    "invoices/verify.py": anybody(),
    "invoices/<str:pk>/": page(thing="invoice", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/bundle/": page(thing="invoice", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/verification/": page(thing="invoice", GET=PAYERS, part=NOBODY),
    "invoices/focus/": page(GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/exports/<str:kind>/": page(thing="invoice export", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/pdf/": page(thing="invoice", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/xrechnung/": page(thing="e-invoice", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/dispute/": page(thing="final invoice", POST=SETTLERS, part=NOBODY),
    "disputes/<str:pk>/withdraw/": page(thing="dispute", POST=SETTLERS, part=NOBODY),
    "credit-notes/<str:pk>/pdf/": page(thing="credit note", GET=PAYERS, part=NOBODY),
    "credit-notes/<str:pk>/xrechnung/": page(thing="credit note", GET=PAYERS, part=NOBODY),
    "invoices/<str:pk>/pay/": page(thing="final invoice", POST=SETTLERS, part=NOBODY),
    # tenants, in the portal
    "join/<str:secret>/": anybody("GET", "POST", thing="link", writes_on_get=True),
    "create-tenant/": account("GET", "POST"),
    "switch-project/": page(POST=ALL, part=SAME),
    "team/": page(GET=ALL, part=SAME),
    "team/invitations/": page(POST=LEADERS, part=SAME),
    "team/invitations/<str:pk>/revoke/": page(thing="invitation", GET=LEADERS, POST=LEADERS, part=SAME),
    "team/members/<str:pk>/": page(thing="member", GET=LEADERS, part=SAME),
    "team/members/<str:pk>/role/": page(thing="member", POST=LEADERS, part=SAME),
    "team/members/<str:pk>/remove/": page(thing="member", POST=LEADERS, part=SAME),
    "team/service-accounts/": page(POST=LEADERS, part=SAME),
    "team/service-accounts/<str:pk>/close/": page(thing="service account", GET=LEADERS, POST=LEADERS, part=SAME),
    "tokens/": page(GET=ALL, POST=ALL, part=SAME),
    "tokens/<str:pk>/revoke/": page(thing="token", GET=LEADERS, POST=LEADERS, part=NOBODY),
    "projects/": page(GET=ALL, part=SAME),
    "projects/new/": page(POST=LEADERS, part=SAME),
    "projects/tenant/": page(POST=OWNERS, part=NOBODY),
    "projects/<str:pk>/": page(thing="project", GET=LEADERS, part=SAME),
    "projects/<str:pk>/name/": page(thing="project", POST=LEADERS, part=SAME),
    "projects/<str:pk>/archive/": page(thing="project", POST=LEADERS, part=SAME),
    "projects/<str:pk>/unarchive/": page(thing="archived project", POST=LEADERS, part=SAME),
    "projects/<str:pk>/quota/": page(thing="project", POST=LEADERS, part=SAME),
    "audit/": page(GET=LEADERS, part=NOBODY),
    "audit.csv": page(GET=LEADERS, part=NOBODY),
    # the fleet, for operators
    "ops/": ops(GET=STAFF),
    "ops/fleet-map/": ops(GET=STAFF),
    "ops/attention/": ops(GET=STAFF),
    "ops/integrity-checks/": ops(GET=STAFF),
    "ops/ledger/": ops(GET=STAFF),
    "ops/month-close/": ops(GET=STAFF, POST=STAFF),
    "ops/accounting/": ops(GET=STAFF),
    "ops/accounting/settings/": ops(GET=STAFF, POST=STAFF),
    "ops/accounting/<str:month>/<str:kind>/": ops(thing="accounting export", GET=STAFF),
    "ops/tax-rates/": ops(GET=STAFF, POST=STAFF),
    "ops/stripe/": ops(GET=STAFF),
    "ops/stripe/differences/<int:pk>/acknowledge/": ops(thing="stripe difference", GET=STAFF, POST=STAFF),
    "ops/stripe/events/<str:pk>/retry/": ops(thing="stripe event", POST=STAFF),
    "ops/system/": ops(GET=STAFF),
    "ops/gpus/": ops(GET=STAFF),
    "ops/gpus/<str:pk>/": ops(thing="gpu", GET=STAFF),
    "ops/gpus/<str:pk>/panel/": ops(thing="gpu", GET=STAFF),
    "ops/gpus/<str:pk>/quarantine/": ops(thing="gpu", GET=STAFF, POST=STAFF),
    "ops/gpus/<str:pk>/return/": ops(thing="gpu", GET=STAFF, POST=STAFF),
    "ops/invoices/<str:pk>/exports/<str:kind>/": ops(thing="invoice export", GET=STAFF),
    "ops/statements/<str:pk>/<str:kind>/": ops(thing="statement", GET=STAFF),
    "ops/corrections/": ops(GET=STAFF, POST=STAFF),
    "ops/corrections/<str:pk>/": ops(thing="correction", GET=STAFF, POST=STAFF),
    "ops/disputes/": ops(GET=STAFF),
    "ops/disputes/<str:pk>/": ops(thing="dispute", GET=STAFF, POST=STAFF),
    "ops/commitments/": ops(GET=STAFF, POST=STAFF),
    "ops/commitments/<str:pk>/end/": ops(thing="commitment", GET=STAFF, POST=STAFF),
    "ops/discounts/": ops(GET=STAFF, POST=STAFF),
    "ops/discounts/<str:pk>/end/": ops(thing="discount", GET=STAFF, POST=STAFF),
    "ops/grants/": ops(GET=STAFF),
    "ops/grants/<str:pk>/revoke/": ops(thing="grant", GET=STAFF, POST=STAFF),
    "ops/price-versions/<int:pk>/withdraw/": ops(thing="price version", GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/grants/new/": ops(thing="tenant", GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/payment-terms/": ops(thing="tenant", GET=STAFF, POST=STAFF),
    "ops/invoices/": ops(GET=STAFF),
    "ops/invoices/<str:pk>/": ops(thing="final invoice", GET=STAFF, POST=STAFF),
    "ops/invoices/<str:pk>/write-off/": ops(thing="final invoice", GET=STAFF, POST=STAFF),
    "ops/invoices/<str:pk>/reinstate/": ops(thing="final invoice", GET=STAFF, POST=STAFF),
    "ops/invoices/<str:pk>/rebill/": ops(thing="final invoice", GET=STAFF, POST=STAFF),
    "ops/month-reviews/": ops(GET=STAFF),
    **{
        f"ops/month-reviews/<int:pk>/{verb}/": ops(thing="open month", GET=STAFF, POST=STAFF)
        for verb in ("hold", "approve", "release")
    },
    "ops/bank-receipts/": ops(GET=STAFF, POST=STAFF),
    "ops/bank-receipts/<str:pk>/": ops(thing="bank receipt", GET=STAFF, POST=STAFF),
    "ops/bank-receipts/<str:pk>/reverse/": ops(thing="bank receipt", GET=STAFF, POST=STAFF),
    "ops/bank-entries/": ops(GET=STAFF, POST=STAFF),
    "ops/bank-entries/<str:pk>/": ops(thing="bank entry", GET=STAFF, POST=STAFF),
    "ops/invoices/<str:pk>/pdf/": ops(thing="final invoice", GET=STAFF),
    "ops/invoices/<str:pk>/xrechnung/": ops(thing="e-invoice", GET=STAFF),
    "ops/credit-notes/": ops(GET=STAFF),
    "ops/credit-notes/<str:pk>/pdf/": ops(thing="credit note", GET=STAFF),
    "ops/credit-notes/<str:pk>/xrechnung/": ops(thing="credit note", GET=STAFF),
    "ops/invoices/<str:pk>/credit/": ops(thing="final invoice", GET=STAFF, POST=STAFF),
    "ops/payments/<str:pk>/refund/": ops(thing="payment", GET=STAFF, POST=STAFF),
    "ops/notifications/<str:pk>/resend/": ops(thing="letter", POST=STAFF),
    "ops/refunds/<str:pk>/retry/": ops(thing="refund", POST=STAFF),
    "ops/topups/<str:pk>/mark-failed/": ops(thing="topup", GET=STAFF, POST=STAFF),
    "ops/payments/<str:pk>/mark-failed/": ops(thing="payment", GET=STAFF, POST=STAFF),
    "ops/clusters/": ops(GET=STAFF),
    "ops/clusters/add/": ops(GET=STAFF, POST=STAFF),
    "ops/clusters/<str:pk>/checks/": ops(thing="cluster", GET=STAFF),
    **{
        f"ops/clusters/<str:pk>/{step}/": ops(thing="cluster", GET=STAFF, POST=STAFF)
        for step in (
            "checks/rerun",
            "credentials",
            "access",
            "accept-inventory",
            "unfreeze",
            "orphans/delete",
            "allow-sharing",
            "forbid-sharing",
        )
    },
    "ops/clusters/<str:pk>/images/": ops(thing="cluster", GET=STAFF, POST=STAFF),
    "ops/image-prepulls/<str:pk>/remove/": ops(thing="kept image", GET=STAFF, POST=STAFF),
    "ops/templates/": ops(GET=STAFF),
    "ops/templates/new/": ops(GET=STAFF, POST=STAFF),
    "ops/templates/<str:pk>/": ops(thing="operators' template", GET=STAFF, POST=STAFF),
    "ops/templates/<str:pk>/delete/": ops(thing="operators' template", GET=STAFF, POST=STAFF),
    "ops/clusters/<str:pk>/layouts/": ops(thing="cluster", GET=STAFF),
    **{
        f"ops/clusters/<str:pk>/layouts/{step}/": ops(thing="cluster", GET=STAFF, POST=STAFF)
        for step in ("plan", "enable-automatic", "disable-automatic")
    },
    "ops/layout-changes/<str:pk>/": ops(thing="layout change", GET=STAFF),
    **{
        f"ops/layout-changes/<str:pk>/{step}/": ops(thing="layout change", GET=STAFF, POST=STAFF)
        for step in ("approve", "cancel", "retry", "roll-back")
    },
    "ops/relocation-plans/": ops(GET=STAFF),
    "ops/relocation-plans/propose/": ops(GET=STAFF, POST=STAFF),
    "ops/relocation-plans/<str:pk>/": ops(thing="move plan", GET=STAFF),
    **{
        f"ops/relocation-plans/<str:pk>/{step}/": ops(thing="move plan", GET=STAFF, POST=STAFF)
        for step in ("accept", "decline", "cancel")
    },
    "ops/nodes/<str:pk>/": ops(thing="node", GET=STAFF),
    **{
        f"ops/nodes/<str:pk>/{step}/": ops(thing="node", GET=STAFF, POST=STAFF)
        for step in ("cordon", "drain", "return", "mark-lost", "release-leases")
    },
    "ops/queue/": ops(GET=STAFF),
    "ops/leases/": ops(GET=STAFF),
    "ops/search/": ops(GET=STAFF),
    "ops/leases/<str:pk>/": ops(thing="lease", GET=STAFF),
    "ops/leases/<str:pk>/release/": ops(thing="lease", GET=STAFF, POST=STAFF),
    "ops/offerings/": ops(GET=STAFF),
    "ops/offerings/derive/": ops(POST=STAFF),
    "ops/offerings/<str:pk>/": ops(thing="offering", GET=STAFF, POST=STAFF),
    "ops/offerings/<str:pk>/tenant-prices/": ops(thing="offering", GET=STAFF, POST=STAFF),
    "ops/tenant-prices/<str:pk>/end/": ops(thing="own price", GET=STAFF, POST=STAFF),
    "ops/offerings/<str:pk>/publish/": ops(thing="offering", GET=STAFF, POST=STAFF),
    "ops/offerings/<str:pk>/retire/": ops(thing="offering", GET=STAFF, POST=STAFF),
    "ops/tokens/": ops(GET=STAFF, POST=STAFF),
    "ops/tokens/<str:pk>/revoke/": ops(thing="operators' token", GET=STAFF, POST=STAFF),
    "ops/tenants/": ops(GET=STAFF),
    "ops/tenants/new/": ops(GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/release/": ops(thing="tenant", GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/currency/": ops(thing="tenant", GET=STAFF, POST=STAFF),
    "ops/tenants/<str:pk>/": ops(thing="tenant", GET=STAFF),
    "ops/tenants/<str:pk>/quota/": ops(thing="tenant", POST=STAFF),
    "ops/tenants/<str:pk>/suspend/": ops(thing="tenant", POST=STAFF),
    "ops/tenants/<str:pk>/resume/": ops(thing="tenant", POST=STAFF),
    # accounts of people: allauth's pages
    "sign-in/": anybody("GET", "POST", writes_on_get=True),
    "sign-up/": anybody("GET", "POST", writes_on_get=True),
    "sign-out/": anybody("GET", "POST", writes_on_get=True),
    "account/": account("GET", "POST"),
    "account/ssh-keys/": account("GET", "POST"),
    "account/ssh-keys/<str:pk>/delete/": account("GET", "POST", thing="ssh key"),
    "account/inactive/": anybody("GET"),
    "account/reauthenticate/": account("GET", "POST"),
    "account/email/": account("GET", "POST"),
    "account/confirm-email/": anybody("GET", "POST"),
    "account/password/change/": account("GET", "POST"),
    "account/password/set/": account("GET", "POST"),
    "account/password/reset/": anybody("GET", "POST"),
    "account/password/reset/done/": anybody("GET"),
    "account/password/reset/key/done/": anybody("GET"),
    "account/login/code/confirm/": anybody("GET", "POST"),
    r"account/^confirm-email/(?P<key>[-:\w]+)/$": anybody("GET", "POST", thing="key"),
    r"^account/password/reset/key/(?P<uidb36>\w+)-(?P<key>[\w-]+)/$": anybody(
        "GET", "POST", thing="keys", writes_on_get=True
    ),
    "account/security/": account("GET"),
    "account/security/authenticate/": anybody("GET", "POST"),
    "account/security/reauthenticate/": account("GET", "POST"),
    "account/security/totp/activate/": account("GET", "POST"),
    "account/security/totp/deactivate/": account("GET", "POST"),
    "account/security/recovery-codes/": account("GET"),
    "account/security/recovery-codes/generate/": account("GET", "POST"),
    "account/security/recovery-codes/download/": account("GET"),
    "account/security/webauthn/": account("GET"),
    "account/security/webauthn/add/": account("GET", "POST"),
    "account/security/webauthn/reauthenticate/": account("GET", "POST"),
    "account/security/webauthn/keys/<int:pk>/remove/": account("GET", "POST", thing="security key"),
    "account/security/webauthn/keys/<int:pk>/edit/": account("GET", "POST", thing="security key"),
    "account/security/webauthn/login/": anybody("GET", "POST", writes_on_get=True),
}
