"""All billing rows without ids and times.

Ids and sequences continue after an interrupted run; they are replaced by a description of their rows. All other columns
of every billing table are compared, future columns included.
"""

import hashlib
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import Model

from billing.models import (
    BillingPeriod,
    BillingRun,
    BudgetMonth,
    Grant,
    Invoice,
    InvoiceLine,
    LedgerAccount,
    RatingWatermark,
)
from broker.models import Transition
from tenants.models import AuditEvent

# What a run is, and where it stopped looking: another after a crash.
OF_THE_RUN = (BillingRun, RatingWatermark)
BESIDE_BILLING = (Transition, AuditEvent)
OF_THE_TRY = {"recorded_at", "run_id", "xid", "position"}  # by PostgreSQL
ID = re.compile(r"\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b")
RowLines = list[str]


class Names:
    """What rows are called by what they stand for."""

    def __init__(self) -> None:
        self.numbered: dict[type[Model], dict[Any, str]] = {
            BillingPeriod: {row.pk: f"{row.tenant_id} {row.label}" for row in BillingPeriod.objects.all()},
            LedgerAccount: {
                row.pk: f"{row.tenant_id} {row.type} {row.currency} {row.ref}" for row in LedgerAccount.objects.all()
            },
        }
        self.by_id = {
            row.pk: f"invoice of {self.numbered[BillingPeriod][row.period_id]}"
            for row in Invoice.objects.exclude(status="void")
        } | {row.pk: f"grant {row.tenant_id} {row.minor} {row.reason}" for row in Grant.objects.all()}
        self.numbered[BudgetMonth] = {
            row.pk: f"{row.budget_id} {self.numbered[BillingPeriod][row.period_id]}"
            for row in BudgetMonth.objects.all()
        }
        self.numbered[InvoiceLine] = {row.pk: f"{row.invoice_id} line {row.n}" for row in InvoiceLine.objects.all()}

    def plain_value(self, field: "models.Field[Any, Any]", value: object) -> object:
        """Return a value; a reference by what it points to."""
        target = field.related_model if field.is_relation else None
        if field.name in ("period_id", "billed_period_id"):
            target = BillingPeriod
        return self.numbered.get(target, {}).get(value, value) if target else value

    def plain(self, text: str, kept: AbstractSet[str]) -> str:
        """Replace ids by what they stand for; earlier rows keep theirs."""

        def name(found: re.Match[str]) -> str:
            return found[0] if found[0] in kept else self.by_id.get(found[0], found[0][:3])

        return ID.sub(name, text)


def every_id() -> frozenset[str]:
    """Return all existing ids, before or after the run."""
    return frozenset(ID.findall("\n".join(_row_lines(Names()))))


def read_rows(kept: AbstractSet[str]) -> RowLines:
    """Return all rows as sorted lines. Must run as staff."""
    names = Names()
    return sorted(names.plain(line, kept) for line in _row_lines(names))


def _row_lines(names: Names) -> Iterator[str]:
    tables = [each for each in apps.get_app_config("billing").get_models() if each not in OF_THE_RUN]
    for table in (*tables, *BESIDE_BILLING):
        fields = [each for each in table._meta.concrete_fields if _counts(each)]
        columns = [each.attname for each in fields]
        for row in table._default_manager.values_list(*columns):
            values = (
                f"{column}={names.plain_value(field, value)}"
                for column, field, value in zip(columns, fields, row, strict=True)
            )
            yield f"{table.__name__}: {'; '.join(values)}"


def _counts(field: "models.Field[Any, Any]") -> bool:
    """Leave out recording times and keys that only number rows."""
    is_number = isinstance(field, models.AutoField | models.BigAutoField)
    own_id = field.primary_key and field.max_length is not None and not field.is_relation
    return field.name not in OF_THE_TRY and not is_number and not own_id


def digest(lines: RowLines) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
