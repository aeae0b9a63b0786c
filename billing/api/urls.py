"""Addresses of everything about money under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from billing.api import papers
from billing.api.all_cards import OpsGpus
from billing.api.all_commitments import OpsCommitments
from billing.api.all_corrections import OpsCorrections, OpsLeaseCorrections, OpsPriceCorrections
from billing.api.all_credits import OpsCredits
from billing.api.all_discounts import OpsCampaigns, OpsDiscounts, OpsMinimums
from billing.api.all_disputes import OpsDisputes
from billing.api.all_grants import OpsGrants
from billing.api.all_invoices import OpsCreditNotes, OpsInvoices
from billing.api.all_ledger import OpsLedgerTransfers, OpsTrialBalance
from billing.api.all_letters import OpsLetters, OpsLettersAgain
from billing.api.all_money import OpsOfferings, OpsPayments, OpsPriceVersions, OpsProofs
from billing.api.all_months import OpsMonthCloses
from billing.api.all_moves import OpsTopUps, OpsUntakenPayments, OpsUntakenTopUps
from billing.api.all_prices import OpsEnds, OpsGaps, OpsNextPrices, OpsPreviews
from billing.api.all_refunds import OpsRefunds, OpsRefundsAgain, OpsRefundsOfPayments
from billing.api.all_statements import OpsStatements
from billing.api.all_stripe import OpsStripeDays, OpsStripeDifferences, OpsStripeEvents
from billing.api.all_taxes import OpsTaxedAs, OpsTaxRates
from billing.api.all_terms import OpsTerms
from billing.api.balance import Balances
from billing.api.budgets import BudgetAlerts, Budgets, BudgetStops, Holds
from billing.api.cards import CardForms, Cards
from billing.api.commitments import Commitments
from billing.api.credit_notes import CreditNotes
from billing.api.details import Details
from billing.api.discounts import Discounts, Minimums
from billing.api.disputes import Disputes
from billing.api.grants import Grants
from billing.api.invoices import Invoices
from billing.api.outlook import UsageOutlook
from billing.api.payments import Payments
from billing.api.prices import PriceVersions
from billing.api.quotes import Quotes
from billing.api.statement import Statements
from billing.api.tokens import CappedTokens
from billing.api.topups import TopUpRule, TopUps
from billing.api.usage import LeaseCharges, RatedCharges, Usage
from billing.api.wallet import WalletView

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("quotes", Quotes, "api-quote")
router.register("usage", Usage, "api-usage")
router.register("usage-outlook", UsageOutlook, "api-usage-outlook")
router.register("rated-charges", RatedCharges, "api-rated-charge")
router.register("invoices", Invoices, "api-invoice")
router.register("credit-notes", CreditNotes, "api-credit-note")
router.register("disputes", Disputes, "api-dispute")
router.register("budgets", Budgets, "api-budget")
router.register("budget-alerts", BudgetAlerts, "api-budget-alert")
router.register("budget-stops", BudgetStops, "api-budget-stop")
router.register("tokens", CappedTokens, "api-token")
router.register("holds", Holds, "api-hold")
router.register("topups", TopUps, "api-topup")
router.register("wallet", WalletView, "api-wallet")
router.register("discounts", Discounts, "api-discount")
router.register("commitments", Commitments, "api-commitment")
router.register("minimums", Minimums, "api-minimum")
router.register("grants", Grants, "api-grant")
router.register("balance", Balances, "api-balance")
router.register("cards", Cards, "api-card")
router.register("card-forms", CardForms, "api-card-form")
router.register("payments", Payments, "api-payment")
router.register("price-versions", PriceVersions, "api-price-version")
router.register("ops/gpus", OpsGpus, "api-ops-gpu")
router.register("ops/offerings", OpsOfferings, "api-ops-offering")
router.register("ops/price-versions", OpsPriceVersions, "api-ops-price-version")
router.register("ops/invoices", OpsInvoices, "api-ops-invoice")
router.register("ops/credit-notes", OpsCreditNotes, "api-ops-credit-note")
router.register("ops/terms", OpsTerms, "api-ops-terms")
router.register("ops/grants", OpsGrants, "api-ops-grant")
router.register("ops/payments", OpsPayments, "api-ops-payment")
router.register("ops/topups", OpsTopUps, "api-ops-topup")
router.register("ops/letters", OpsLetters, "api-ops-letter")
router.register("ops/refunds", OpsRefunds, "api-ops-refund")
router.register("ops/stripe-differences", OpsStripeDifferences, "api-ops-stripe-difference")
router.register("ops/stripe-events", OpsStripeEvents, "api-ops-stripe-event")
router.register("ops/ledger-transfers", OpsLedgerTransfers, "api-ops-ledger-transfer")

urlpatterns = [
    path("ops/corrections", OpsCorrections.as_view({"get": "list"}), name="api-ops-correction-list"),
    path(
        "ops/corrections/<str:pk>",
        OpsCorrections.as_view({"get": "retrieve", "put": "update"}),
        name="api-ops-correction-detail",
    ),
    path(
        "ops/leases/<str:pk>/correction",
        OpsLeaseCorrections.as_view({"put": "update"}),
        name="api-ops-lease-correction",
    ),
    path(
        "ops/price-versions/<str:pk>/correction",
        OpsPriceCorrections.as_view({"put": "update"}),
        name="api-ops-price-correction",
    ),
    path(
        "ops/tenants/<str:pk>/statement",
        OpsStatements.as_view({"get": "retrieve"}),
        name="api-ops-tenant-statement",
    ),
    path(
        "ops/tenants/<str:pk>/statement/pdf",
        OpsStatements.as_view({"get": "pdf"}, renderer_classes=papers.RENDERERS),
        name="api-ops-tenant-statement-pdf",
    ),
    path(
        "ops/invoices/<str:pk>/credit-note",
        OpsCredits.as_view({"put": "update"}),
        name="api-ops-invoice-credit-note",
    ),
    path("ops/disputes", OpsDisputes.as_view({"get": "list"}), name="api-ops-dispute-list"),
    path(
        "ops/disputes/<str:pk>",
        OpsDisputes.as_view({"get": "retrieve", "put": "update"}),
        name="api-ops-dispute-detail",
    ),
    path(
        "leases/<str:pk>/charges",
        LeaseCharges.as_view({"get": "retrieve"}),
        name="api-lease-charges",
    ),
    path(
        "ops/offerings/<str:pk>/price",
        OpsNextPrices.as_view({"put": "update"}),
        name="api-ops-offering-price",
    ),
    path(
        "ops/offerings/<str:pk>/preview",
        OpsPreviews.as_view({"get": "retrieve"}),
        name="api-ops-offering-preview",
    ),
    path(
        "ops/price-versions/<str:pk>/end",
        OpsEnds.as_view({"put": "update"}),
        name="api-ops-price-version-end",
    ),
    path(
        "topup-rule",
        TopUpRule.as_view({"get": "list", "put": "replace", "delete": "unset"}),
        name="api-topup-rule",
    ),
    path(
        "billing-details",
        Details.as_view({"get": "list", "put": "replace"}),
        name="api-billing-details",
    ),
    path(
        "ops/offerings/<str:pk>/tax-category",
        OpsTaxedAs.as_view({"put": "update"}),
        name="api-ops-offering-tax-category",
    ),
    path(
        "ops/tax-rates", OpsTaxRates.as_view({"get": "list", "put": "publish"}), name="api-ops-tax-rate-list"
    ),
    path("ops/tax-rates/<str:pk>", OpsTaxRates.as_view({"get": "retrieve"}), name="api-ops-tax-rate-detail"),
    path(
        "ops/payments/<str:pk>/untaken",
        OpsUntakenPayments.as_view({"put": "update"}),
        name="api-ops-payment-untaken",
    ),
    path(
        "ops/payments/<str:pk>/refund",
        OpsRefundsOfPayments.as_view({"put": "update"}),
        name="api-ops-payment-refund",
    ),
    path(
        "ops/letters/<str:pk>/again",
        OpsLettersAgain.as_view({"put": "update"}),
        name="api-ops-letter-again",
    ),
    path(
        "ops/refunds/<str:pk>/ask-again",
        OpsRefundsAgain.as_view({"put": "update"}),
        name="api-ops-refund-ask-again",
    ),
    path(
        "ops/topups/<str:pk>/untaken",
        OpsUntakenTopUps.as_view({"put": "update"}),
        name="api-ops-topup-untaken",
    ),
    *(
        path(*each)
        for name, view in (
            ("campaign", OpsCampaigns),
            ("commitment", OpsCommitments),
            ("discount", OpsDiscounts),
            ("minimum", OpsMinimums),
        )
        for each in (
            (f"ops/{name}s", view.as_view({"get": "list", "put": "publish"}), None, f"api-ops-{name}-list"),
            (f"ops/{name}s/<str:pk>", view.as_view({"get": "retrieve"}), None, f"api-ops-{name}-detail"),
            (f"ops/{name}s/<str:pk>/end", view.as_view({"put": "end"}), None, f"api-ops-{name}-end"),
        )
    ),
    path("ops/stripe-days", OpsStripeDays.as_view({"get": "list"}), name="api-ops-stripe-day-list"),
    path(
        "ops/month-closes/<str:pk>",
        OpsMonthCloses.as_view({"get": "retrieve", "put": "update"}),
        name="api-ops-month-close",
    ),
    path("statement", Statements.as_view({"get": "list"}), name="api-statement"),
    path(
        "statement/pdf",
        Statements.as_view({"get": "pdf"}, renderer_classes=papers.RENDERERS),
        name="api-statement-pdf",
    ),
    path("ops/price-gaps", OpsGaps.as_view({"get": "list"}), name="api-ops-price-gap-list"),
    path("ops/proofs", OpsProofs.as_view({"get": "list"}), name="api-ops-proof-list"),
    path("ops/trial-balance", OpsTrialBalance.as_view({"get": "list"}), name="api-ops-trial-balance-list"),
    *router.urls,
]
