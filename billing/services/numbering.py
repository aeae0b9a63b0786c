"""Numbers of documents: one after the other in each series, without a gap and without a double."""

from django.db.models import F

from billing.models import InvoiceSeries


def next_of(series: str, *, count: int = 1) -> int:
    """Take the next number of a series, or the first of so many; whoever else wants one waits.

    A transaction that is rolled back gives them back.
    """
    InvoiceSeries.objects.get_or_create(series=series)
    number = InvoiceSeries.objects.select_for_update().get(series=series).next_number
    InvoiceSeries.objects.filter(series=series).update(next_number=F("next_number") + count)
    return number
