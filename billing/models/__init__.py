from billing.models.charges import BillingRun, RatedCharge, RatingMark
from billing.models.invoices import Invoice, InvoiceLine, InvoiceSeries, InvoiceStatus
from billing.models.periods import BillingPeriod
from billing.models.prices import PriceVersion, RateCard

__all__ = [
    "BillingPeriod",
    "BillingRun",
    "Invoice",
    "InvoiceLine",
    "InvoiceSeries",
    "InvoiceStatus",
    "PriceVersion",
    "RateCard",
    "RatedCharge",
    "RatingMark",
]
