"""October 2026, told in order over the product's own services, with the clock in hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from billing.gateways.simulated import Ill, suffer
from billing.models import (
    BillingPeriod,
    CreditNote,
    Invoice,
    MonthCharge,
    MonthKind,
    Payment,
    PriceVersion,
    RatedCharge,
)
from billing.services import closing, commitments, crediting, metering, quotes
from billing.services.disputes import answering, asking
from billing.services.funds import budgets
from billing.services.funds.holds import BudgetExceeded
from billing.services.grants import ending as lapsing
from billing.services.grants import giving
from billing.services.ledger import catching_up, sealing
from billing.services.payments import opening
from billing.services.topups import opening as topups
from billing.services.wallets import terms
from broker.domain.states import EndReason
from broker.models import Allocation, Gpu, Lease, Offering
from broker.services import reconcile
from broker.services.leases import ending
from broker.services.leases.request import Wanted
from tenants.services.walls import as_staff, as_tenant
from tests.billing.demo.cast import CARD, SLICE, open_shop, publish
from tests.billing.histories import at, ran
from tests.world import OPERATOR, Home, Life, fresh, offering

HOUR = 3600
OPENS = at("2026-09-30 09:00:00")
NOVEMBER_OVER = at("2026-12-01 12:00:00")
BEAT = timedelta(
    hours=6
)  # between looks while nothing happens; where money may run out they are five minutes apart
FIVE_MINUTES = timedelta(minutes=5)
BUDGET = 10_000
TOP_UP = 500
LATE = 5 * HOUR + 7
COMMITTED = 96 * HOUR  # one card, of which a lease of two uses half
COMMITTED_NANO = 1_990_000_000


def say(at: datetime, text: str) -> None:
    print(f"  {at:%d %b %H:%M}  {text}", flush=True)


@dataclass
class Story:
    """The month, and what of it is looked at in the end."""

    life: Life
    tenants: dict[str, Home] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    refused: str = ""
    declined: str = ""
    note: CreditNote | None = None

    def until_october_is_closed(self) -> None:
        self.tenants = open_shop(now=self.life.now)
        say(self.life.now, "five tenants, three currencies, three nodes of eight H100s")
        self.live(
            ("2026-10-01 06:00", self.grant_and_terms),
            ("2026-10-02 09:00", self.card_is_committed_to),
            ("2026-10-03 12:00", lambda: self.run("Reef Survey", "across-the-clock-change", CARD, 24)),
            ("2026-10-05 08:00", lambda: self.run("Kestrel Bio", "boltz-train", CARD, 48, quantity=2)),
            ("2026-10-06 01:00", lambda: self.run("Sakura Robotics", "grasp-policy", CARD, 30)),
            ("2026-10-07 04:00", self.wallet_runs_dry),
            ("2026-10-09 13:00", lambda: self.run("Northlight Rendering", "frame-01", CARD, 8)),
            ("2026-10-12 10:00", self.price_change_is_announced),
            ("2026-10-14 20:00", lambda: self.run("Kestrel Bio", "fold-batch", CARD, 36)),
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
            ("2026-11-10 09:00", lambda: self.run("Kestrel Bio", "refold", CARD, 2)),
            ("2026-12-01 12:00", self.november_closes),
        )

    def live(self, *plans: tuple[str, Callable[[], None]]) -> None:
        """Let each happen when its moment has come."""
        for moment, happens in plans:
            self.wait_until(at(f"{moment}:00"))
            happens()

    def wait_until(self, moment: datetime, *, every: timedelta = BEAT) -> None:
        """Let time pass, with the looks that the beat would have had."""
        while self.life.now < moment:
            step = min(self.life.now + every, moment)
            self.life.run((step - self.life.now).total_seconds())
            reconcile.look_at_active(now=self.life.now)
            metering.meter(now=self.life.now)
            self.life.run()

    def ask(self, who: str, name: str, what: Offering, seconds: int, **wanted: object) -> Lease:
        home = self.tenants[who]
        lease = self.life.ask(home, what, name=name, max_duration_s=seconds, **wanted)
        self.leases[name] = lease
        return lease

    def run(self, who: str, name: str, profile: str, hours: int, **wanted: object) -> None:
        """Ask for a lease that ends by itself."""
        self.ask(who, name, offering(profile), hours * HOUR, **wanted)
        self.life.run(60)
        say(self.life.now, f"{who}: {name}, {hours} h of {profile}")

    def grant_and_terms(self) -> None:
        sakura, monsoon = self.tenants["Sakura Robotics"], self.tenants["Monsoon AI"]
        promised = giving.Terms(5000, "welcome", expires_at=at("2026-10-20 12:00:00"))
        giving.give(sakura.tenant, promised, idem="welcome", actor=OPERATOR, now=self.life.now)
        say(self.life.now, "Sakura Robotics is given ¥5,000 of credit until 20 October")
        with as_tenant(monsoon.tenant.pk):
            terms.set_terms(
                monsoon.tenant,
                payment="prepaid",
                standing="good",
                why="new here",
                actor=OPERATOR,
                now=self.life.now,
            )
            topups.top_up(monsoon.tenant, minor=TOP_UP, actor=monsoon.actor, now=self.life.now)
        self.life.run(60)
        say(self.life.now, "Monsoon AI pays beforehand, and puts €5.00 into its wallet")

    def card_is_committed_to(self) -> None:
        """Four days of one card, of which a lease of two cards uses two."""
        since = at("2026-10-05 00:00:00")
        commitments.agree(
            self.tenants["Kestrel Bio"].tenant,
            offering(CARD),
            units=1,
            nano_per_hour=COMMITTED_NANO,
            since=since,
            until=since + timedelta(seconds=COMMITTED),
            actor=OPERATOR,
            now=self.life.now,
        )
        say(self.life.now, "Kestrel Bio commits to one card at €1.99 an hour, 5 to 8 October, used or not")

    def wallet_runs_dry(self) -> None:
        lease = self.ask("Monsoon AI", "notebook", offering(SLICE), 24 * HOUR)
        say(self.life.now, "Monsoon AI: notebook, as long as the wallet lasts")
        while not fresh(lease).ended_at and self.life.now < at("2026-10-08 12:00:00"):
            self.wait_until(self.life.now + FIVE_MINUTES, every=FIVE_MINUTES)
        ended = fresh(lease)
        say(self.life.now, f"notebook was ended: {ended.end_reason}")

    def price_change_is_announced(self) -> None:
        since = at("2026-10-15 07:30:00")
        publish(CARD, "on_demand", "EUR", 2490, since=since, now=self.life.now)
        say(self.life.now, f"the card falls from €2.89 to €2.49 an hour on {since:%d %B %H:%M} UTC")

    def quote_is_taken(self) -> None:
        """Ten minutes before the price changes somebody has it promised, for what it is then."""
        home = self.tenants["Kestrel Bio"]
        wanted = {"offering_id": offering(CARD).pk, "name": "dock-screen", "max_duration_s": 6 * HOUR}
        with as_tenant(home.tenant.pk):
            answer = quotes.quote(Wanted(**wanted), project=home.project, actor=home.actor, now=self.life.now)
        assert answer.offer is not None
        self.ask("Kestrel Bio", "dock-screen", offering(CARD), 6 * HOUR, quote=answer.offer.sealed)
        self.life.run(60)
        say(
            self.life.now,
            "Kestrel Bio: dock-screen cites a quote of €2.89 that the new price does not change",
        )

    def spot_is_taken_back(self) -> None:
        spot = offering(CARD, price_class="spot")
        for name, seconds in (("frame-02", 90), ("frame-03", 2 * HOUR)):
            lease = self.ask("Northlight Rendering", name, spot, 6 * HOUR)
            self.life.run(60)
            active = fresh(lease).active_at
            assert active is not None
            self.life.run((active + timedelta(seconds=seconds) - self.life.now).total_seconds())
            with as_tenant(lease.tenant_id):
                ending.release(fresh(lease), reason=EndReason.PREEMPTED, now=self.life.now)
            self.life.run(60)
            say(self.life.now, f"Northlight Rendering: spot {name} is taken back after {seconds:,} s")

    def budget_stops(self) -> None:
        home = self.tenants["Kestrel Bio"]
        docking = home.child("docking")
        with as_tenant(home.tenant.pk):
            budgets.set_limit(project=docking, limit_minor=BUDGET, actor=home.actor, now=self.life.now)
        self.ask("Kestrel Bio", "dock-1", offering(CARD), 24 * HOUR, project=docking)
        try:
            self.ask("Kestrel Bio", "dock-2", offering(CARD), 24 * HOUR, project=docking)
        except BudgetExceeded as refusal:
            self.refused = refusal.detail
        self.life.run(60)
        say(
            self.life.now,
            f"Kestrel Bio: docking has €100.00 a month; the second lease is refused: {self.refused}",
        )

    def october_closes(self) -> None:
        suffer(self.tenants["Northlight Rendering"].tenant.pk, Ill.DECLINED)
        closed = self.close()
        say(self.life.now, f"October is closed: {closed} invoices are final")
        self.collect()
        self.declined = ", ".join(self.payments("Northlight Rendering"))
        say(self.life.now, f"Northlight Rendering's card: {self.declined}")

    def card_is_charged_again(self) -> None:
        self.collect()
        self.declined = ", ".join(self.payments("Northlight Rendering"))
        say(self.life.now, f"Northlight Rendering's card, a day later: {self.declined}")

    def late_seconds_come(self) -> None:
        """A node that was cut off tells of a lease that ran on the last day of October, which is invoiced already."""
        home, begun = self.tenants["Reef Survey"], at("2026-10-30 03:00:00")
        self.leases["told-late"] = lease = ran(home.project, offering(CARD), begun, LATE)
        with as_staff():
            card = Gpu.objects.exclude(pk__in=Allocation.objects.values("gpu")).latest("pk")
        with as_tenant(lease.tenant_id):
            Allocation.objects.create(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=1,
                gpu=card,
                placement=(0, 8),
                profile=CARD,
                isolation="device",
                held_at=begun,
            )
            Allocation.objects.filter(lease=lease).update(released_at=begun + timedelta(seconds=LATE))
        say(self.life.now, f"Reef Survey: a node tells of {LATE:,} s of October")

    def a_line_is_disputed(self) -> None:
        """A tenant says that an hour was slow; an operator agrees, and a credit note gives it back with its tax."""
        home, invoice = self.tenants["Kestrel Bio"], self.invoice("Kestrel Bio", "2026-10")
        with as_tenant(invoice.tenant_id):
            line = max(crediting.left(invoice), key=lambda each: each.minor)
        (disputed,) = asking.dispute(
            invoice, lines={line.n: 500}, reason="two slow hours", actor=home.actor, now=self.life.now
        )
        say(self.life.now, f"Kestrel Bio disputes €5.00 of line {line.n}: two slow hours")
        self.wait_until(at("2026-11-06 11:00:00"))
        answered = answering.accept(
            disputed, minor=None, answer="They were; here it is.", actor=OPERATOR, now=self.life.now
        )
        self.note = answered.credit_note
        say(self.life.now, f"it is given back, and the tax on it: {self.note}")

    def november_closes(self) -> None:
        closed = self.close()
        say(self.life.now, f"November is closed: {closed} more invoices are final")
        self.collect()

    def close(self) -> int:
        """Do what the beat does, and say what keeps a month open."""
        reconcile.look_at_active(now=self.life.now)
        metering.meter(now=self.life.now)
        before = self.final()
        closed = closing.close_due(now=self.life.now)
        if closed.gaps or closed.waiting:
            raise RuntimeError(f"a month could not be closed: {closed}")
        lapsing.lapse_due(now=self.life.now)
        return self.final() - before

    def collect(self) -> None:
        opening.open_due(now=self.life.now)
        self.life.run(120)
        catching_up.post_missing(now=self.life.now)
        sealing.seal(now=self.life.now)

    def final(self) -> int:
        with as_staff():
            return Invoice.objects.exclude(number=None).count()

    def payments(self, who: str) -> list[str]:
        """Return how each attempt to collect ended, first to last."""
        with as_tenant(self.tenants[who].tenant.pk):
            return list(Payment.objects.order_by("opened_at").values_list("status", flat=True))

    def invoice(self, who: str, label: str) -> Invoice:
        tenant = self.tenants[who].tenant
        with as_tenant(tenant.pk):
            return Invoice.objects.select_related("period", "tenant").get(period__label=label)

    def charged(self, name: str) -> list[tuple[int, int]]:
        """Return how many seconds of a lease were charged at which price, the earlier price first, less given back."""
        lease = self.leases[name]
        with as_tenant(lease.tenant_id):
            rows = list(RatedCharge.objects.filter(lease_id=lease.pk).order_by("s"))
        nano = dict(PriceVersion.objects.values_list("pk", "nano_per_hour"))
        found: dict[int, int] = {}
        for row in rows:
            found[nano[row.price_version_id]] = found.get(nano[row.price_version_id], 0) + row.unit_seconds
        return [(seconds, price) for price, seconds in found.items()]

    def late(self) -> int:
        """Return how many seconds of October are on November's invoice of whose node told late."""
        tenant = self.tenants["Reef Survey"].tenant
        with as_tenant(tenant.pk):
            month = dict(BillingPeriod.objects.values_list("label", "pk"))
            rows = RatedCharge.objects.filter(
                period_id=month["2026-10"], billed_period_id=month["2026-11"]
            ).values_list("unit_seconds", flat=True)
            return sum(rows)

    def committed(self) -> dict[str, tuple[int, int]]:
        """Return what October's invoice says of the commitment: unit-seconds and exact amount, covered and not used."""
        invoice = self.invoice("Kestrel Bio", "2026-10")
        with as_tenant(invoice.tenant_id):
            rows = MonthCharge.objects.filter(
                billed_period_id=invoice.period_id, kind__in=[MonthKind.COMMIT, MonthKind.SHORTFALL]
            )
            return {row.kind: (row.units, int(row.exact_num)) for row in rows}
