"""Lists of bank entries and of imported statements: their filters, sums and CSV columns."""

from django.db.models import Q
from django.utils.translation import gettext_lazy

from billing.models import BankEntry, BankEntryStatus, BankStatement
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time


def _entry_cells(each: BankEntry) -> tuple[object, ...]:
    return (
        *(each.pk, csv_time(each.booked_on), each.status, "in" if each.incoming else "out", each.counterparty),
        *(each.counterparty_account, each.remittance, each.end_to_end_id, each.currency),
        *(csv_money(each.minor, each.currency), each.receipt, csv_time(each.decided_at), each.decided_by, each.reason),
    )


def _statement_cells(each: BankStatement) -> tuple[object, ...]:
    return (
        *(each.pk, each.file_name, each.format, each.entries_found, each.entries_new, csv_time(each.imported_at)),
        *(each.imported_by, each.sha256),
    )


ENTRY_LIST = OperatorList(
    name="bank-entries",
    heads=(
        "entry booked_on status direction counterparty account remittance end_to_end_id currency amount "
        "receipt decided_at decided_by reason"
    ),
    cells=_entry_cells,
    at="booked_on",
    by_day=True,
    states=tuple(ListState(each.value, each.label, Q(status=each)) for each in BankEntryStatus),
    search=("counterparty", "counterparty_account", "remittance", "end_to_end_id", "pk"),
    sums=(ListSum(gettext_lazy("Amount"), "minor"),),
)
STATEMENT_LIST = OperatorList(
    name="bank-statements",
    heads="statement file format entries_found entries_new imported_at imported_by sha256",
    cells=_statement_cells,
    at="imported_at",
    search=("file_name", "pk"),
)
