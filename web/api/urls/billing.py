"""URLs of billing under /api/v1/."""

from typing import Any

from django.urls import path
from rest_framework.viewsets import ViewSetMixin

from web.api import documents
from web.api.approvals import ApprovalLimitsViewSet, ApprovalRequestViewSet
from web.api.billing_details import BillingDetailsViewSet
from web.api.budgets import BudgetAlertViewSet, BudgetStopViewSet, BudgetViewSet, HoldViewSet
from web.api.capped_tokens import CappedTokenViewSet
from web.api.commitments import CommitmentViewSet
from web.api.credit_notes import CreditNoteViewSet
from web.api.current_token import CurrentTokenViewSet
from web.api.discounts import DiscountViewSet, MinimumViewSet
from web.api.disputes import DisputeViewSet
from web.api.grants import GrantViewSet
from web.api.invoices import InvoiceViewSet
from web.api.operators.accounting import OperatorAccountingViewSet
from web.api.operators.approvals import OperatorApprovalLimitsViewSet, OperatorApprovalRequestViewSet
from web.api.operators.bank_receipts import OperatorBankReceiptViewSet
from web.api.operators.bank_statements import OperatorBankEntryViewSet, OperatorBankStatementViewSet
from web.api.operators.commitments import OperatorCommitmentViewSet
from web.api.operators.corrections import OperatorCorrectionViewSet
from web.api.operators.credit_notes import OperatorCreditNoteViewSet
from web.api.operators.discounts import OperatorCampaignViewSet, OperatorDiscountViewSet, OperatorMinimumViewSet
from web.api.operators.disputes import OperatorDisputeViewSet
from web.api.operators.exchange_rates import OperatorExchangeRateViewSet
from web.api.operators.gateway_transactions import OperatorPaymentViewSet, OperatorRefundViewSet, OperatorTopUpViewSet
from web.api.operators.gpus import OperatorGpuViewSet
from web.api.operators.grants import OperatorGrantViewSet
from web.api.operators.invariant_checks import OperatorInvariantCheckViewSet
from web.api.operators.invoices import OperatorInvoiceViewSet
from web.api.operators.journal_settings import OperatorJournalSettingsViewSet
from web.api.operators.ledger import OperatorLedgerTransferViewSet, OperatorTrialBalanceViewSet
from web.api.operators.month_closes import OperatorMonthCloseViewSet
from web.api.operators.month_reviews import OperatorMonthReviewViewSet
from web.api.operators.notifications import OperatorEmailViewSet
from web.api.operators.offerings import OperatorOfferingViewSet
from web.api.operators.payment_terms import OperatorPaymentTermsViewSet
from web.api.operators.price_versions import OperatorPriceGapViewSet, OperatorPriceVersionViewSet
from web.api.operators.statements import OperatorStatementViewSet
from web.api.operators.stripe_reconciliation import (
    OperatorStripeDayViewSet,
    OperatorStripeDifferenceViewSet,
    OperatorStripeEventViewSet,
)
from web.api.operators.tax_rates import OperatorTaxRateViewSet
from web.api.payment_cards import PaymentCardFormViewSet, PaymentCardViewSet
from web.api.payments import PaymentViewSet
from web.api.price_versions import PriceVersionViewSet
from web.api.quotes import QuoteViewSet
from web.api.statements import StatementViewSet
from web.api.topups import TopUpRuleViewSet, TopUpViewSet
from web.api.usage import LeaseChargeViewSet, RatedChargeViewSet, UsageViewSet
from web.api.usage_forecast import UsageForecastViewSet
from web.api.wallet import BalanceViewSet, WalletViewSet
from web.http.routers import ApiRouter

router = ApiRouter()
router.register("quotes", QuoteViewSet, "api-quote")
router.register("approval-requests", ApprovalRequestViewSet, "api-approval-request")
router.register("ops/approval-requests", OperatorApprovalRequestViewSet, "api-ops-approval-request")
router.register("ops/approval-limits", OperatorApprovalLimitsViewSet, "api-ops-approval-limit")
router.register("usage", UsageViewSet, "api-usage")
router.register("usage-forecast", UsageForecastViewSet, "api-usage-forecast")
router.register("rated-charges", RatedChargeViewSet, "api-rated-charge")
router.register("invoices", InvoiceViewSet, "api-invoice")
router.register("credit-notes", CreditNoteViewSet, "api-credit-note")
router.register("disputes", DisputeViewSet, "api-dispute")
router.register("budgets", BudgetViewSet, "api-budget")
router.register("budget-alerts", BudgetAlertViewSet, "api-budget-alert")
router.register("budget-stops", BudgetStopViewSet, "api-budget-stop")
router.register("tokens", CappedTokenViewSet, "api-token")
router.register("holds", HoldViewSet, "api-hold")
router.register("topups", TopUpViewSet, "api-topup")
router.register("wallet", WalletViewSet, "api-wallet")
router.register("discounts", DiscountViewSet, "api-discount")
router.register("commitments", CommitmentViewSet, "api-commitment")
router.register("minimum-spends", MinimumViewSet, "api-minimum-spend")
router.register("grants", GrantViewSet, "api-grant")
router.register("balance", BalanceViewSet, "api-balance")
router.register("payment-cards", PaymentCardViewSet, "api-payment-card")
router.register("payment-card-forms", PaymentCardFormViewSet, "api-payment-card-form")
router.register("payments", PaymentViewSet, "api-payment")
router.register("price-versions", PriceVersionViewSet, "api-price-version")
router.register("ops/gpus", OperatorGpuViewSet, "api-ops-gpu")
router.register("ops/offerings", OperatorOfferingViewSet, "api-ops-offering")
router.register("ops/price-versions", OperatorPriceVersionViewSet, "api-ops-price-version")
router.register("ops/invoices", OperatorInvoiceViewSet, "api-ops-invoice")
router.register("ops/credit-notes", OperatorCreditNoteViewSet, "api-ops-credit-note")
router.register("ops/payment-terms", OperatorPaymentTermsViewSet, "api-ops-payment-terms")
router.register("ops/grants", OperatorGrantViewSet, "api-ops-grant")
router.register("ops/payments", OperatorPaymentViewSet, "api-ops-payment")
router.register("ops/topups", OperatorTopUpViewSet, "api-ops-topup")
router.register("ops/notifications", OperatorEmailViewSet, "api-ops-notification")
router.register("ops/refunds", OperatorRefundViewSet, "api-ops-refund")
router.register("ops/stripe-differences", OperatorStripeDifferenceViewSet, "api-ops-stripe-difference")
router.register("ops/stripe-events", OperatorStripeEventViewSet, "api-ops-stripe-event")
router.register("ops/ledger-transfers", OperatorLedgerTransferViewSet, "api-ops-ledger-transfer")
router.register("ops/month-reviews", OperatorMonthReviewViewSet, "api-ops-month-review")
router.register("ops/bank-receipts", OperatorBankReceiptViewSet, "api-ops-bank-receipt")
router.register("ops/bank-statements", OperatorBankStatementViewSet, "api-ops-bank-statement")
router.register("ops/bank-entries", OperatorBankEntryViewSet, "api-ops-bank-entry")
router.register("ops/corrections", OperatorCorrectionViewSet, "api-ops-correction")
router.register("ops/disputes", OperatorDisputeViewSet, "api-ops-dispute")
router.register("ops/tax-rates", OperatorTaxRateViewSet, "api-ops-tax-rate")
router.register("ops/exchange-rates", OperatorExchangeRateViewSet, "api-ops-exchange-rate")
router.register("ops/campaigns", OperatorCampaignViewSet, "api-ops-campaign")
router.register("ops/commitments", OperatorCommitmentViewSet, "api-ops-commitment")
router.register("ops/discounts", OperatorDiscountViewSet, "api-ops-discount")
router.register("ops/minimum-spends", OperatorMinimumViewSet, "api-ops-minimum-spend")


def document(view: type[ViewSetMixin]) -> Any:
    """Return the view of a PDF."""
    return view.as_view({"get": "pdf"}, renderer_classes=documents.RENDERERS)


# Collections with one row, one for each row of another, or without addresses of single rows.
urlpatterns = [
    path(route, view, name=f"api-{name}")
    for route, view, name in (
        ("leases/<str:pk>/charges", LeaseChargeViewSet.as_view({"get": "retrieve"}), "lease-charges"),
        ("tokens/current", CurrentTokenViewSet.as_view({"get": "retrieve"}), "current-token"),
        ("approval-limits", ApprovalLimitsViewSet.as_view({"get": "list", "put": "replace"}), "approval-limits"),
        ("topup-rule", TopUpRuleViewSet.as_view({"get": "list", "put": "replace", "delete": "unset"}), "topup-rule"),
        ("billing-details", BillingDetailsViewSet.as_view({"get": "list", "put": "replace"}), "billing-details"),
        ("account-statement", StatementViewSet.as_view({"get": "list"}), "account-statement"),
        ("account-statement/pdf", document(StatementViewSet), "account-statement-pdf"),
        (
            "ops/tenants/<str:pk>/statement",
            OperatorStatementViewSet.as_view({"get": "retrieve"}),
            "ops-tenant-statement",
        ),
        ("ops/tenants/<str:pk>/statement/pdf", document(OperatorStatementViewSet), "ops-tenant-statement-pdf"),
        (
            "ops/month-closes/<str:pk>",
            OperatorMonthCloseViewSet.as_view({"get": "retrieve", "patch": "partial_update"}),
            "ops-month-close",
        ),
        ("ops/stripe-days", OperatorStripeDayViewSet.as_view({"get": "list"}), "ops-stripe-day-list"),
        ("ops/price-gaps", OperatorPriceGapViewSet.as_view({"get": "list"}), "ops-price-gap-list"),
        ("ops/integrity-checks", OperatorInvariantCheckViewSet.as_view({"get": "list"}), "ops-integrity-check-list"),
        ("ops/accounting/<str:pk>", OperatorAccountingViewSet.as_view({"get": "retrieve"}), "ops-accounting"),
        (
            "ops/accounting/<str:pk>/exports/<str:kind>",
            OperatorAccountingViewSet.as_view({"get": "export"}, renderer_classes=documents.RENDERERS),
            "ops-accounting-export",
        ),
        (
            "ops/journal-settings",
            OperatorJournalSettingsViewSet.as_view({"get": "list", "patch": "change"}),
            "ops-journal-settings",
        ),
        ("ops/trial-balance", OperatorTrialBalanceViewSet.as_view({"get": "list"}), "ops-trial-balance-list"),
    )
] + router.urls
