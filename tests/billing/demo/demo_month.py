"""October 2026 of the demo, over the product's own services and a settable clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from billing.gateways.simulated import GatewayFault
from billing.models import (
    AdjustmentKind,
    BillingPeriod,
    CreditNote,
    Invoice,
    InvoiceAdjustment,
    Payment,
    PriceVersion,
    RatedCharge,
)
from billing.services.agreements import commitments
from billing.services.funds.accounts import account_terms
from billing.services.funds.budgets import budget_settings
from billing.services.funds.grants import grant_expiry as lapsing
from billing.services.funds.grants import new_grants
from billing.services.funds.holds.budget_holds import BudgetExceeded
from billing.services.invoicing import credit_notes, metering
from billing.services.invoicing.disputes import dispute_answers, dispute_requests
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import ledger_seal, missing_postings
from billing.services.payments import payment_creation
from billing.services.payments.topups import topup_creation as topups
from billing.services.quotes import quote_answers
from broker.domain.lifecycle.states import EndReason
from broker.models import Allocation, Gpu, Lease, Offering
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import termination
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.demo.demo_tenants import SLICE, WHOLE, open_shop, publish
from tests.billing.gateways.faults import inject_faults
from tests.billing.histories import add_ended_lease, utc
from tests.simulation import OPERATOR, Simulation, TenantContext, offering, reload_lease
from web.ui.formatting import format_profile

HOUR = 3600
OPENS = utc("2026-09-30 09:00:00")
NOVEMBER_OVER = utc("2026-12-01 12:00:00")
BEAT = timedelta(hours=6)  # between looks while nothing happens; where money may run out they are five minutes apart
FIVE_MINUTES = timedelta(minutes=5)
BUDGET = 10_000
TOP_UP = 500
LATE = 5 * HOUR + 7
COMMITTED = 96 * HOUR  # one GPU, of which a lease of two uses half
COMMITTED_NANO = 1_990_000_000


def say(at: datetime, text: str) -> None:
    print(f"  {at:%d %b %H:%M}  {text}", flush=True)


@dataclass
class DemoMonth:
    """The month, and what of it is looked at in the end."""

    sim: Simulation
    tenants: dict[str, TenantContext] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    refused: str = ""
    declined: str = ""
    note: CreditNote | None = None

    def until_october_is_closed(self) -> None:
        self.tenants = open_shop(now=self.sim.now)
        say(self.sim.now, "five tenants, three currencies, three nodes of eight H100s")
        self.live(
            ("2026-10-01 06:00", self.grant_and_terms),
            ("2026-10-02 09:00", self.gpu_is_committed_to),
            ("2026-10-03 12:00", lambda: self.run("Reef Survey", "across-the-clock-change", WHOLE, 24)),
            ("2026-10-05 08:00", lambda: self.run("Kestrel Bio", "boltz-train", WHOLE, 48, quantity=2)),
            ("2026-10-06 01:00", lambda: self.run("Sakura Robotics", "grasp-policy", WHOLE, 30)),
            ("2026-10-07 04:00", self.wallet_runs_dry),
            ("2026-10-09 13:00", lambda: self.run("Northlight Rendering", "frame-01", WHOLE, 8)),
            ("2026-10-12 10:00", self.price_change_is_announced),
            ("2026-10-14 20:00", lambda: self.run("Kestrel Bio", "fold-batch", WHOLE, 36)),
            ("2026-10-15 07:20", self.quote_is_taken),
            ("2026-10-17 09:00", self.spot_is_taken_back),
            ("2026-10-19 08:00", self.budget_stops),
            ("2026-10-21 02:00", lambda: self.run("Sakura Robotics", "grasp-policy-2", SLICE, 11)),
            ("2026-10-24 20:00", lambda: self.run("Kestrel Bio", "summer-time-ends", SLICE, 10)),
            ("2026-10-31 18:00", lambda: self.run("Kestrel Bio", "across-the-month", SLICE, 12)),
            ("2026-11-01 12:00", self.october_closes),
        )

    def until_the_end(self) -> None:
        self.live(
            ("2026-11-02 12:30", self.card_is_charged_again),
            ("2026-11-03 09:00", self.late_seconds_come),
            ("2026-11-05 09:00", self.a_line_is_disputed),
            ("2026-11-10 09:00", lambda: self.run("Kestrel Bio", "refold", WHOLE, 2)),
            ("2026-12-01 12:00", self.november_closes),
        )

    def live(self, *plans: tuple[str, Callable[[], None]]) -> None:
        """Let each happen when its moment has come."""
        for moment, happens in plans:
            self.wait_until(utc(f"{moment}:00"))
            happens()

    def wait_until(self, moment: datetime, *, every: timedelta = BEAT) -> None:
        """Let time pass, with the looks that the beat would have had."""
        while self.sim.now < moment:
            step = min(self.sim.now + every, moment)
            self.sim.run((step - self.sim.now).total_seconds())
            lease_reconciler.check_active_leases(now=self.sim.now)
            metering.run_metering(now=self.sim.now)
            self.sim.run()

    def ask(self, who: str, name: str, what: Offering, seconds: int, **wanted: object) -> Lease:
        home = self.tenants[who]
        lease = self.sim.request_lease(home, what, name=name, max_duration_s=seconds, **wanted)
        self.leases[name] = lease
        return lease

    def run(self, who: str, name: str, profile: str, hours: int, **wanted: object) -> None:
        """Ask for a lease that ends by itself."""
        self.ask(who, name, offering(profile), hours * HOUR, **wanted)
        self.sim.run(60)
        say(self.sim.now, f"{who}: {name}, {hours} h of {format_profile(profile)}")

    def grant_and_terms(self) -> None:
        sakura, monsoon = self.tenants["Sakura Robotics"], self.tenants["Monsoon AI"]
        promised = new_grants.GrantTerms(5000, "welcome", expires_at=utc("2026-10-20 12:00:00"))
        new_grants.give_grant(sakura.tenant, promised, idem="welcome", actor=OPERATOR, now=self.sim.now)
        say(self.sim.now, "Sakura Robotics receives ¥5,000 of credit, valid until 20 October")
        with tenant_scope(monsoon.tenant.pk):
            account_terms.set_account_terms(
                monsoon.tenant,
                payment="prepaid",
                account_status="good",
                why="new here",
                actor=OPERATOR,
                now=self.sim.now,
            )
            topups.open_topup(monsoon.tenant, minor=TOP_UP, actor=monsoon.actor, now=self.sim.now)
        self.sim.run(60)
        say(self.sim.now, "Monsoon AI is prepaid and adds €5.00 to its wallet")

    def gpu_is_committed_to(self) -> None:
        """Four days of one GPU, of which a lease of two GPUs uses two."""
        since = utc("2026-10-05 00:00:00")
        commitments.create_commitment(
            self.tenants["Kestrel Bio"].tenant,
            offering(WHOLE),
            units=1,
            nano_per_hour=COMMITTED_NANO,
            since=since,
            until=since + timedelta(seconds=COMMITTED),
            actor=OPERATOR,
            now=self.sim.now,
        )
        say(self.sim.now, "Kestrel Bio commits to one GPU at €1.99 an hour, 5 to 8 October, whether used or not")

    def wallet_runs_dry(self) -> None:
        lease = self.ask("Monsoon AI", "notebook", offering(SLICE), 24 * HOUR)
        say(self.sim.now, "Monsoon AI: notebook, until the wallet is empty")
        while not reload_lease(lease).ended_at and self.sim.now < utc("2026-10-08 12:00:00"):
            self.wait_until(self.sim.now + FIVE_MINUTES, every=FIVE_MINUTES)
        ended = reload_lease(lease)
        say(self.sim.now, f"notebook was ended: {ended.end_reason}")

    def price_change_is_announced(self) -> None:
        since = utc("2026-10-15 07:30:00")
        publish(WHOLE, "on_demand", "EUR", 2490, since=since, now=self.sim.now)
        say(self.sim.now, f"the price of a GPU falls from €2.89 to €2.49 an hour on {since:%d %B %H:%M} UTC")

    def quote_is_taken(self) -> None:
        """Ten minutes before the price changes somebody has it promised, for what it is then."""
        home = self.tenants["Kestrel Bio"]
        wanted = {"offering_id": offering(WHOLE).pk, "name": "dock-screen", "max_duration_s": 6 * HOUR}
        with tenant_scope(home.tenant.pk):
            answer = quote_answers.answer_quote(
                LeaseRequest(**wanted), project=home.project, actor=home.actor, now=self.sim.now
            )
        assert answer.offer is not None
        self.ask("Kestrel Bio", "dock-screen", offering(WHOLE), 6 * HOUR, quote=answer.offer.sealed)
        self.sim.run(60)
        say(
            self.sim.now,
            "Kestrel Bio: dock-screen uses a quote of €2.89, which the new price does not change",
        )

    def spot_is_taken_back(self) -> None:
        spot = offering(WHOLE, price_class="spot")
        for name, seconds in (("frame-02", 90), ("frame-03", 2 * HOUR)):
            lease = self.ask("Northlight Rendering", name, spot, 6 * HOUR)
            self.sim.run(60)
            active = reload_lease(lease).active_at
            assert active is not None
            self.sim.run((active + timedelta(seconds=seconds) - self.sim.now).total_seconds())
            with tenant_scope(lease.tenant_id):
                termination.release_lease(reload_lease(lease), reason=EndReason.PREEMPTED, now=self.sim.now)
            self.sim.run(60)
            say(self.sim.now, f"Northlight Rendering: spot {name} is interrupted after {seconds:,} s")

    def budget_stops(self) -> None:
        home = self.tenants["Kestrel Bio"]
        docking = home.create_project("docking")
        with tenant_scope(home.tenant.pk):
            budget_settings.set_budget(project=docking, limit_minor=BUDGET, actor=home.actor, now=self.sim.now)
        self.ask("Kestrel Bio", "dock-1", offering(WHOLE), 24 * HOUR, project=docking)
        try:
            self.ask("Kestrel Bio", "dock-2", offering(WHOLE), 24 * HOUR, project=docking)
        except BudgetExceeded as refusal:
            self.refused = refusal.detail
        self.sim.run(60)
        say(
            self.sim.now,
            f"Kestrel Bio: docking has a budget of €100.00 a month; the second lease is rejected: {self.refused}",
        )

    def october_closes(self) -> None:
        inject_faults(self.tenants["Northlight Rendering"].tenant.pk, GatewayFault.DECLINED)
        closed = self.close()
        say(self.sim.now, f"October is closed: {closed} invoices are final")
        self.collect()
        self.declined = ", ".join(self.payments("Northlight Rendering"))
        say(self.sim.now, f"Northlight Rendering's payment card: {self.declined}")

    def card_is_charged_again(self) -> None:
        self.collect()
        self.declined = ", ".join(self.payments("Northlight Rendering"))
        say(self.sim.now, f"Northlight Rendering's payment card, a day later: {self.declined}")

    def late_seconds_come(self) -> None:
        """A reconnected node reports usage of an invoiced month."""
        home, begun = self.tenants["Reef Survey"], utc("2026-10-30 03:00:00")
        self.leases["told-late"] = lease = add_ended_lease(home.project, offering(WHOLE), begun, LATE)
        with staff_scope():
            gpu = Gpu.objects.exclude(pk__in=Allocation.objects.values("gpu")).latest("pk")
        with tenant_scope(lease.tenant_id):
            Allocation.objects.create(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=1,
                gpu=gpu,
                placement=(0, 8),
                profile=WHOLE,
                isolation="device",
                held_at=begun,
            )
            Allocation.objects.filter(lease=lease).update(released_at=begun + timedelta(seconds=LATE))
        say(self.sim.now, f"Reef Survey: a node reports {LATE:,} s of October late")

    def a_line_is_disputed(self) -> None:
        """A tenant disputes an hour; an operator accepts and credits it."""
        home, invoice = self.tenants["Kestrel Bio"], self.invoice("Kestrel Bio", "2026-10")
        with tenant_scope(invoice.tenant_id):
            line = max(credit_notes.creditable_lines(invoice), key=lambda each: each.minor)
        (disputed,) = dispute_requests.dispute_lines(
            invoice, lines={line.n: 500}, reason="two slow hours", actor=home.actor, now=self.sim.now
        )
        say(self.sim.now, f"Kestrel Bio disputes €5.00 of line {line.n}: two slow hours")
        self.wait_until(utc("2026-11-06 11:00:00"))
        answered = dispute_answers.accept_dispute(
            disputed, minor=None, answer="They were; here it is.", actor=OPERATOR, now=self.sim.now
        )
        self.note = answered.credit_note
        say(self.sim.now, f"the amount and its tax are credited: {self.note}")

    def november_closes(self) -> None:
        closed = self.close()
        say(self.sim.now, f"November is closed: {closed} more invoices are final")
        self.collect()

    def close(self) -> int:
        """Do what the beat does, and say what keeps a month open."""
        lease_reconciler.check_active_leases(now=self.sim.now)
        metering.run_metering(now=self.sim.now)
        before = self.final()
        closed = close_month.close_due_months(now=self.sim.now)
        if closed.gaps or closed.waiting:
            raise RuntimeError(f"a month could not be closed: {closed}")
        lapsing.expire_due_grants(now=self.sim.now)
        return self.final() - before

    def collect(self) -> None:
        payment_creation.open_due_payments(now=self.sim.now)
        self.sim.run(120)
        missing_postings.post_missing(now=self.sim.now)
        ledger_seal.seal_ledger(now=self.sim.now)

    def final(self) -> int:
        with staff_scope():
            return Invoice.objects.exclude(number=None).count()

    def payments(self, who: str) -> list[str]:
        """Return how each attempt to collect ended, first to last."""
        with tenant_scope(self.tenants[who].tenant.pk):
            return list(Payment.objects.order_by("opened_at").values_list("status", flat=True))

    def invoice(self, who: str, label: str) -> Invoice:
        tenant = self.tenants[who].tenant
        with tenant_scope(tenant.pk):
            return Invoice.objects.select_related("period", "tenant").get(period__label=label)

    def charged(self, name: str) -> list[tuple[int, int]]:
        """Return a lease's charged seconds per price, less credits."""
        lease = self.leases[name]
        with tenant_scope(lease.tenant_id):
            rows = list(RatedCharge.objects.filter(lease_id=lease.pk).order_by("s"))
        nano = dict(PriceVersion.objects.values_list("pk", "nano_per_hour"))
        found: dict[int, int] = {}
        for row in rows:
            found[nano[row.price_version_id]] = found.get(nano[row.price_version_id], 0) + row.unit_seconds
        return [(seconds, price) for price, seconds in found.items()]

    def late(self) -> int:
        """Return how many seconds of October are on November's invoice of whose node told late."""
        tenant = self.tenants["Reef Survey"].tenant
        with tenant_scope(tenant.pk):
            month = dict(BillingPeriod.objects.values_list("label", "pk"))
            rows = RatedCharge.objects.filter(
                period_id=month["2026-10"], billed_period_id=month["2026-11"]
            ).values_list("unit_seconds", flat=True)
            return sum(rows)

    def committed(self) -> dict[str, tuple[int, int]]:
        """Return the covered and unused parts of October's commitment."""
        invoice = self.invoice("Kestrel Bio", "2026-10")
        with tenant_scope(invoice.tenant_id):
            rows = InvoiceAdjustment.objects.filter(
                billed_period_id=invoice.period_id, kind__in=[AdjustmentKind.COMMIT, AdjustmentKind.SHORTFALL]
            )
            return {row.kind: (row.units, int(row.exact_num)) for row in rows}
