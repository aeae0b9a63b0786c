from billing.models.accounting import ExchangeRate, JournalAccount, JournalSettings
from billing.models.adjustments import AdjustmentKind, InvoiceAdjustment
from billing.models.approvals import ApprovalKind, ApprovalLimit, ApprovalRequest, ApprovalState
from billing.models.bank_receipts import BankReceipt, BankReceiptPart
from billing.models.bank_statements import BankEntry, BankEntryStatus, BankStatement
from billing.models.billing_details import BillingDetails
from billing.models.budgets import Budget, BudgetAlert, BudgetMonth, BudgetStop, Hold, HoldPart
from billing.models.charges import BillingRun, RatedCharge, RatingWatermark
from billing.models.commitments import Commitment
from billing.models.corrections import CorrectedInterval, Correction, TenantCorrection
from billing.models.credit_notes import BalanceDraw, CreditNote, CreditNoteLine
from billing.models.discounts import Campaign, Discount
from billing.models.disputes import Dispute, DisputeStatus, DisputeStep
from billing.models.documents import StoredBundle, StoredDocument
from billing.models.dunning import DunningStep
from billing.models.emails import QueuedEmail, UndeliveredReason
from billing.models.grants import Grant, GrantDraw, GrantExpiry, GrantReturn, GrantSource
from billing.models.invariant_runs import InvariantRun
from billing.models.invoices import Invoice, InvoiceLine, InvoiceSeries, InvoiceStatus
from billing.models.ledger import AccountBalance, LedgerAccount, LedgerSeal, LedgerTransfer, TransferKind
from billing.models.minimums import Minimum
from billing.models.payments import AutoTopUp, GatewayTransaction, Payment, PaymentStatus, Refund, TopUp
from billing.models.periods import BillingPeriod
from billing.models.prices import PriceVersion, RateCard
from billing.models.quotes import Quote
from billing.models.simulated_gateway import SimulatedCharge, SimulatedPayer, SimulatedRefund
from billing.models.stripe import (
    PaymentCardForm,
    PaymentCardFormState,
    PaymentDispute,
    PaymentRefund,
    ReconciledCharge,
    ReconciliationPhase,
    StripeCharge,
    StripeCommand,
    StripeCommandState,
    StripeCustomer,
    StripeDifference,
    StripeEvent,
    StripeEventState,
    StripeOutcome,
    StripeRateLimit,
    StripeReconciliationDay,
)
from billing.models.taxes import InvoiceTax, OfferingTaxCategory, TaxCategory, TaxRate
from billing.models.token_caps import TokenCap, TokenCapDay, TokenCapLease, TokenCapPart
from billing.models.trial_credits import TrialCredit
from billing.models.wallets import AccountStatus, AccountTerms, PaymentTerms, Wallet, WalletPart
from billing.models.write_offs import WriteOff

__all__ = [
    "AccountBalance",
    "AccountStatus",
    "AccountTerms",
    "AdjustmentKind",
    "ApprovalKind",
    "ApprovalLimit",
    "ApprovalRequest",
    "ApprovalState",
    "AutoTopUp",
    "BalanceDraw",
    "BankEntry",
    "BankEntryStatus",
    "BankReceipt",
    "BankReceiptPart",
    "BankStatement",
    "BillingDetails",
    "BillingPeriod",
    "BillingRun",
    "Budget",
    "BudgetAlert",
    "BudgetMonth",
    "BudgetStop",
    "Campaign",
    "Commitment",
    "CorrectedInterval",
    "Correction",
    "CreditNote",
    "CreditNoteLine",
    "Discount",
    "Dispute",
    "DisputeStatus",
    "DisputeStep",
    "DunningStep",
    "ExchangeRate",
    "GatewayTransaction",
    "Grant",
    "GrantDraw",
    "GrantExpiry",
    "GrantReturn",
    "GrantSource",
    "Hold",
    "HoldPart",
    "InvariantRun",
    "Invoice",
    "InvoiceAdjustment",
    "InvoiceLine",
    "InvoiceSeries",
    "InvoiceStatus",
    "InvoiceTax",
    "JournalAccount",
    "JournalSettings",
    "LedgerAccount",
    "LedgerSeal",
    "LedgerTransfer",
    "Minimum",
    "OfferingTaxCategory",
    "Payment",
    "PaymentCardForm",
    "PaymentCardFormState",
    "PaymentDispute",
    "PaymentRefund",
    "PaymentStatus",
    "PaymentTerms",
    "PriceVersion",
    "QueuedEmail",
    "Quote",
    "RateCard",
    "RatedCharge",
    "RatingWatermark",
    "ReconciledCharge",
    "ReconciliationPhase",
    "Refund",
    "SimulatedCharge",
    "SimulatedPayer",
    "SimulatedRefund",
    "StoredBundle",
    "StoredDocument",
    "StripeCharge",
    "StripeCommand",
    "StripeCommandState",
    "StripeCustomer",
    "StripeDifference",
    "StripeEvent",
    "StripeEventState",
    "StripeOutcome",
    "StripeRateLimit",
    "StripeReconciliationDay",
    "TaxCategory",
    "TaxRate",
    "TenantCorrection",
    "TokenCap",
    "TokenCapDay",
    "TokenCapLease",
    "TokenCapPart",
    "TopUp",
    "TransferKind",
    "TrialCredit",
    "UndeliveredReason",
    "Wallet",
    "WalletPart",
    "WriteOff",
]
