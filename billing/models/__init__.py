from billing.models.charges import BillingRun, RatedCharge, RatingMark
from billing.models.invoices import Invoice, InvoiceLine, InvoiceSeries, InvoiceStatus
from billing.models.payments import Payment, PaymentStatus
from billing.models.periods import BillingPeriod
from billing.models.prices import PriceVersion, RateCard
from billing.models.simulated import SimulatedCharge, SimulatedPayer

__all__ = [
    "BillingPeriod",
    "BillingRun",
    "Invoice",
    "InvoiceLine",
    "InvoiceSeries",
    "InvoiceStatus",
    "Payment",
    "PaymentStatus",
    "PriceVersion",
    "RateCard",
    "RatedCharge",
    "RatingMark",
    "SimulatedCharge",
    "SimulatedPayer",
]
