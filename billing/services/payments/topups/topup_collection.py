"""Top-up collection: a successful top-up is posted to the wallet."""

from datetime import datetime

from django.db.models import QuerySet

from billing.domain.money import Money
from billing.models import AutoTopUp, TopUp
from billing.services.ledger import posting
from billing.services.payments.gateway_transactions import GatewayTransactions
from ports.payments import GatewayCharge, GatewayOutcome, PaymentGateway
from tenants.services import audit
from tenants.services.actors import Actor


class _TopUpTransactions(GatewayTransactions[TopUp]):
    name, title, task = "topup", "top-up", "billing.top_up"

    def rows(self) -> QuerySet[TopUp]:
        return TopUp.objects.all()

    def send_request(self, gateway: PaymentGateway, row: TopUp, *, now: datetime) -> GatewayOutcome:
        charge = GatewayCharge(key=row.pk, minor=row.minor, currency=row.currency, payer=row.tenant_id, text="Wallet")
        return gateway.withdraw(charge, now=now) if row.mark_failed_reason else gateway.charge(charge, now=now)

    def lock(self, row: TopUp) -> None:
        TopUp.objects.select_for_update().get(pk=row.pk)

    def record(self, event: str, row: TopUp, *, actor: Actor, now: datetime, **detail: object) -> None:
        audit.record(
            "topup.settle" if event == "succeed" else f"topup.{event}",
            row,
            f"top-up of {Money(row.minor, row.currency)}",
            actor=actor,
            now=now,
            **({"automatic": True} if row.automatic else {}),
            **detail,
        )

    def on_decline(self, row: TopUp, reason: str, *, now: datetime) -> None:
        self.on_stuck(row, reason, now=now)

    def on_stuck(self, row: TopUp, reason: str, *, now: datetime) -> None:
        """Stop automatic top-ups after a failed one; the wallet page says so."""
        if row.automatic:
            AutoTopUp.objects.filter(tenant=row.tenant_id, stopped_at=None).update(stopped_at=now, why=reason)

    def book(self, row: TopUp, *, now: datetime) -> None:
        posting.post_topups([row.pk], now=now)


TOPUPS = _TopUpTransactions()
