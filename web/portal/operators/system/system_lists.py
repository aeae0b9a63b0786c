"""Lists of the system page: their filters, sums and CSV columns."""

import json

from django.utils.translation import gettext_lazy

from billing.models import Payment, QueuedEmail, Refund, TopUp
from tenants.models import AuditEvent
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time

TRANSACTION_HEADS = "tenant tenant_name invoice currency amount gateway code reason attempts opened_at stuck_at"
AMOUNT = ListSum(gettext_lazy("Amount"), "minor")


def _transaction_cells(each: Payment | Refund | TopUp, invoice: object = "") -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, str(invoice), each.currency),
        *(csv_money(each.minor, each.currency), each.gateway, each.code, each.reason or each.last_error),
        *(each.attempts, csv_time(each.opened_at), csv_time(each.stuck_at)),
    )


def _payment_cells(each: Payment) -> tuple[object, ...]:
    return _transaction_cells(each, each.invoice)


def _refund_cells(each: Refund) -> tuple[object, ...]:
    return _transaction_cells(each, each.payment.invoice)


def _topup_cells(each: TopUp) -> tuple[object, ...]:
    return _transaction_cells(each)


def _email_cells(each: QueuedEmail) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, each.kind, each.subject_id, each.undelivered_reason),
        *(each.last_error, each.attempts, csv_time(each.made_at)),
    )


def _event_cells(each: AuditEvent) -> tuple[object, ...]:
    return (
        *(each.pk, csv_time(each.at), each.action, each.tenant_id, each.subject_id, each.subject_label),
        *(each.actor_id, each.actor_label, json.dumps(each.detail, sort_keys=True), each.request_id),
    )


PAYMENT_LIST = OperatorList(
    name="payments",
    heads=f"payment {TRANSACTION_HEADS}",
    cells=_payment_cells,
    tenant="tenant_id",
    at="opened_at",
    search=("reason", "last_error", "code", "pk"),
    sums=(AMOUNT,),
)
TOPUP_LIST = OperatorList(
    name="top-ups",
    heads=f"top_up {TRANSACTION_HEADS}",
    cells=_topup_cells,
    tenant="tenant_id",
    at="opened_at",
    search=("reason", "last_error", "code", "pk"),
    sums=(AMOUNT,),
)
REFUND_LIST = OperatorList(
    name="refunds",
    heads=f"refund {TRANSACTION_HEADS}",
    cells=_refund_cells,
    tenant="tenant_id",
    at="opened_at",
    search=("reason", "last_error", "code", "pk"),
    sums=(AMOUNT,),
)
EMAIL_LIST = OperatorList(
    name="e-mails",
    heads="notification tenant tenant_name kind subject reason error attempts made_at",
    cells=_email_cells,
    tenant="tenant_id",
    at="made_at",
    search=("kind", "last_error", "subject_id", "pk"),
)
AUDIT_HEADS = "event at action tenant subject subject_label actor actor_label detail request"
AUDIT_LIST = OperatorList(
    name="audit",
    heads=AUDIT_HEADS,
    cells=_event_cells,
    tenant="tenant_id",
    at="at",
    search=("action", "subject_label", "actor_label", "subject_id"),
)
TENANT_AUDIT_LIST = OperatorList(
    name="audit-of-tenant",
    heads=AUDIT_HEADS,
    cells=_event_cells,
    at="at",
    search=("action", "subject_label", "actor_label", "subject_id"),
)
