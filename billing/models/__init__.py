from billing.models.budgets import Budget, BudgetAlert, BudgetMonth, BudgetStop, Hold, HoldPart
from billing.models.caps import TokenCap, TokenDay, TokenLease, TokenPart
from billing.models.charges import BillingRun, RatedCharge, RatingMark
from billing.models.commitments import Commitment
from billing.models.corrections import Correction, CorrectionPart, CorrectionShare
from billing.models.credits import BalanceDraw, CreditNote, CreditNoteLine
from billing.models.details import BillingDetails
from billing.models.discounts import Campaign, Discount
from billing.models.disputes import Dispute, DisputeStatus, DisputeStep
from billing.models.dunning import DunningStep
from billing.models.grants import Grant, GrantDraw, GrantLapse, GrantReturn, GrantSource
from billing.models.invoices import Invoice, InvoiceLine, InvoiceSeries, InvoiceStatus
from billing.models.ledger import AccountBalance, LedgerAccount, LedgerSeal, LedgerTransfer, TransferKind
from billing.models.letters import Letter, Unsent
from billing.models.minimums import Minimum
from billing.models.month_charges import MonthCharge, MonthKind
from billing.models.moves import Move, PaymentStatus
from billing.models.papers import KeptPaper
from billing.models.payments import Payment
from billing.models.periods import BillingPeriod
from billing.models.prices import PriceVersion, RateCard
from billing.models.quotes import Quote
from billing.models.refunds import Refund
from billing.models.simulated import SimulatedCharge, SimulatedPayer, SimulatedRefund
from billing.models.stripe import (
    CardForm,
    CardFormState,
    CommandState,
    DayPhase,
    EventState,
    PaymentDispute,
    PaymentRefund,
    StripeCharge,
    StripeCommand,
    StripeCustomer,
    StripeDay,
    StripeDifference,
    StripeEvent,
    StripeOutcome,
    StripePace,
    StripeSeen,
)
from billing.models.taxes import InvoiceTax, TaxCategory, TaxedAs, TaxRate
from billing.models.topups import AutoTopUp, TopUp
from billing.models.wallets import PaymentTerms, TenantStanding, TenantTerms, Wallet, WalletPart

__all__ = [
    "AccountBalance",
    "AutoTopUp",
    "BalanceDraw",
    "BillingDetails",
    "BillingPeriod",
    "BillingRun",
    "Budget",
    "BudgetAlert",
    "BudgetMonth",
    "BudgetStop",
    "Campaign",
    "CardForm",
    "CardFormState",
    "CommandState",
    "Commitment",
    "Correction",
    "CorrectionPart",
    "CorrectionShare",
    "CreditNote",
    "CreditNoteLine",
    "DayPhase",
    "Discount",
    "Dispute",
    "DisputeStatus",
    "DisputeStep",
    "DunningStep",
    "EventState",
    "Grant",
    "GrantDraw",
    "GrantLapse",
    "GrantReturn",
    "GrantSource",
    "Hold",
    "HoldPart",
    "Invoice",
    "InvoiceLine",
    "InvoiceSeries",
    "InvoiceStatus",
    "InvoiceTax",
    "KeptPaper",
    "LedgerAccount",
    "LedgerSeal",
    "LedgerTransfer",
    "Letter",
    "Minimum",
    "MonthCharge",
    "MonthKind",
    "Move",
    "Payment",
    "PaymentDispute",
    "PaymentRefund",
    "PaymentStatus",
    "PaymentTerms",
    "PriceVersion",
    "Quote",
    "RateCard",
    "RatedCharge",
    "RatingMark",
    "Refund",
    "SimulatedCharge",
    "SimulatedPayer",
    "SimulatedRefund",
    "StripeCharge",
    "StripeCommand",
    "StripeCustomer",
    "StripeDay",
    "StripeDifference",
    "StripeEvent",
    "StripeOutcome",
    "StripePace",
    "StripeSeen",
    "TaxCategory",
    "TaxRate",
    "TaxedAs",
    "TenantStanding",
    "TenantTerms",
    "TokenCap",
    "TokenDay",
    "TokenLease",
    "TokenPart",
    "TopUp",
    "TransferKind",
    "Unsent",
    "Wallet",
    "WalletPart",
]
