"""Taking the money of a top-up, as of any move: with it the wallet has more."""

from datetime import datetime

from django.db.models import QuerySet

from billing.models import AutoTopUp, TopUp
from billing.services.ledger import posting
from billing.services.moves.moving import Moving
from billing.services.topups.trail import record
from ports.payments import Charge, Gateway, Outcome
from tenants.services.actors import Actor


class _TopUps(Moving[TopUp]):
    name, title, task = "topup", "top-up", "billing.top_up"

    def rows(self) -> QuerySet[TopUp]:
        return TopUp.objects.all()

    def ask(self, gateway: Gateway, row: TopUp, *, now: datetime) -> Outcome:
        charge = Charge(
            key=row.pk, minor=row.minor, currency=row.currency, payer=row.tenant_id, text="Wallet"
        )
        return gateway.withdraw(charge, now=now) if row.untaken else gateway.charge(charge, now=now)

    def lock(self, row: TopUp) -> None:
        TopUp.objects.select_for_update().get(pk=row.pk)

    def record(self, what: str, row: TopUp, *, actor: Actor, now: datetime, **detail: object) -> None:
        action = "settle" if what == "succeed" else what
        record(f"topup.{action}", row, actor=actor, now=now, **detail)

    def declined(self, row: TopUp, reason: str, *, now: datetime) -> None:
        self.stopped(row, reason, now=now)

    def stopped(self, row: TopUp, reason: str, *, now: datetime) -> None:
        """Top up no more by itself: what was declined is not asked for again unasked. The wallet's page says so."""
        if row.automatic:
            AutoTopUp.objects.filter(tenant=row.tenant_id, stopped_at=None).update(stopped_at=now, why=reason)

    def book(self, row: TopUp, *, now: datetime) -> None:
        posting.topped_up([row.pk], now=now)


TOPUPS = _TopUps()
collect, fall, due = TOPUPS.collect, TOPUPS.fall, TOPUPS.due
