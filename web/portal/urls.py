"""URLs of the tenant's pages."""

from django.urls import path

from web.portal.approvals import approval_pages
from web.portal.billing_details import billing_details_page
from web.portal.budgets import budget_pages
from web.portal.commitments import commitment_page
from web.portal.discounts import discount_page
from web.portal.disputes import dispute_actions
from web.portal.documents import document_downloads
from web.portal.help import help_pages
from web.portal.home import home_page
from web.portal.invoices import invoice_pages, verification_pages
from web.portal.launch import launch_page
from web.portal.launch_templates import template_pages
from web.portal.lease_arrays import array_pages
from web.portal.leases import lease_actions, lease_list_page, lease_pages, log_page, metrics_page, terminal_page
from web.portal.offerings import catalogue_page
from web.portal.payments import payment_page
from web.portal.problems import problem_pages
from web.portal.queue import queue_page
from web.portal.schedules import schedule_pages
from web.portal.secrets import secret_pages
from web.portal.spend import spend_page
from web.portal.statements import statement_pages
from web.portal.tokens import capped_token_pages
from web.portal.volumes import volume_pages
from web.portal.wallet import topup_actions, wallet_page

urlpatterns = [
    path("", home_page.show_home, name="home"),
    path("catalogue/", catalogue_page.show_catalogue, name="catalogue"),
    path("launch/", launch_page.show_launch, name="launch"),
    path("launch/quote/", launch_page.show_quote, name="launch-quote"),
    path("leases/", lease_list_page.list_leases, name="leases"),
    path("leases/<str:pk>/", lease_pages.show_lease, name="lease"),
    path("leases/<str:pk>/logs/", log_page.show_log, name="lease-log"),
    path("leases/<str:pk>/logs/download/", log_page.download_log, name="lease-log-download"),
    path("leases/<str:pk>/metrics/", metrics_page.show_lease_metrics, name="lease-metrics"),
    path("leases/<str:pk>/terminal/", terminal_page.show_terminal, name="lease-terminal"),
    path("leases/<str:pk>/simulated-page/", terminal_page.show_simulated_page, name="lease-simulated-page"),
    path("leases/<str:pk>/row/", lease_pages.show_lease_row, name="lease-row"),
    *(
        path(
            f"leases/<str:pk>/{action.replace('_', '-')}/",
            lease_actions.change_lease,
            {"action": action},
            name=f"lease-{action.replace('_', '-')}",
        )
        for action in lease_actions.ACTIONS
    ),
    path("lease-arrays/<str:pk>/", array_pages.show_array, name="lease-array"),
    path("lease-arrays/<str:pk>/release/", array_pages.release_array, name="lease-array-release"),
    path("approvals/", approval_pages.list_approvals, name="approvals"),
    path("approvals/limits/", approval_pages.set_approval_limits, name="approval-limits"),
    path("approvals/<str:pk>/", approval_pages.show_approval, name="approval"),
    path("approvals/<str:pk>/decide/", approval_pages.decide_approval, name="approval-decide"),
    path("approvals/<str:pk>/withdraw/", approval_pages.withdraw_approval, name="approval-withdraw"),
    path("schedules/", schedule_pages.list_schedules, name="schedules"),
    path("schedules/<str:pk>/", schedule_pages.show_schedule, name="schedule"),
    path("schedules/<str:pk>/delete/", schedule_pages.delete_schedule, name="schedule-delete"),
    path("volumes/", volume_pages.list_volumes, name="volumes"),
    path("volumes/<str:pk>/delete/", volume_pages.delete_volume, name="volume-delete"),
    path("secrets/", secret_pages.list_secrets, name="secrets"),
    path("secrets/<str:pk>/replace/", secret_pages.replace_secret, name="secret-replace"),
    path("secrets/<str:pk>/delete/", secret_pages.delete_secret, name="secret-delete"),
    path("templates/", template_pages.list_templates, name="templates"),
    path("templates/new/", template_pages.create_template, name="template-create"),
    path("templates/<str:pk>/", template_pages.edit_template, name="template-edit"),
    path("templates/<str:pk>/delete/", template_pages.delete_template, name="template-delete"),
    path("help/", help_pages.show_help, name="help"),
    path("api-reference/", help_pages.show_api_reference, name="api-reference"),
    path("problems/", problem_pages.list_problem_types, name="problem-types"),
    path("problems/<slug:code>", problem_pages.show_problem_type, name="problem-type"),
    path("queue/", queue_page.show_queue, name="queue"),
    path("spend/", spend_page.show_spend, name="spend"),
    path("budgets/", budget_pages.list_budgets, name="budgets"),
    path("tokens/", capped_token_pages.show_tokens, name="tokens"),
    path("budgets/<str:pk>/remove/", budget_pages.remove_budget, name="budget-remove"),
    path("wallet/", wallet_page.show_wallet, name="wallet"),
    path("payment-method/", payment_page.show_payment, name="payment-method"),
    path("wallet/top-up/", topup_actions.start_top_up, name="wallet-top-up"),
    path("wallet/auto-top-up/", topup_actions.set_top_up_rule, name="wallet-auto-top-up"),
    path("invoices/", invoice_pages.list_invoices, name="invoices"),
    path("billing-details/", billing_details_page.edit_billing_details, name="billing-details"),
    path("commitments/", commitment_page.list_commitments, name="commitments"),
    path("discounts/", discount_page.list_discounts, name="discounts"),
    path("statement/", statement_pages.show_statement, name="statement"),
    path("statement/pdf/", statement_pages.download_statement_pdf, name="statement-pdf"),
    path("invoices/verify.py", verification_pages.download_program, name="invoice-verify-program"),
    path("invoices/focus/", document_downloads.download_focus_month, name="focus-month"),
    path("invoices/<str:pk>/", invoice_pages.show_invoice, name="invoice"),
    path("invoices/<str:pk>/bundle/", verification_pages.download_bundle, name="invoice-bundle"),
    path("invoices/<str:pk>/verification/", verification_pages.show_verification, name="invoice-verification"),
    path("invoices/<str:pk>/pay/", invoice_pages.pay_invoice, name="invoice-pay"),
    path("invoices/<str:pk>/pdf/", document_downloads.download_invoice_pdf, name="invoice-pdf"),
    path("invoices/<str:pk>/xrechnung/", document_downloads.download_invoice_xrechnung, name="invoice-xrechnung"),
    path("invoices/<str:pk>/exports/<str:kind>/", document_downloads.download_export, name="invoice-export"),
    path("invoices/<str:pk>/dispute/", dispute_actions.open_dispute, name="invoice-dispute"),
    path("disputes/<str:pk>/withdraw/", dispute_actions.withdraw_dispute, name="dispute-withdraw"),
    path("credit-notes/<str:pk>/pdf/", document_downloads.download_credit_note_pdf, name="credit-note-pdf"),
    path(
        "credit-notes/<str:pk>/xrechnung/",
        document_downloads.download_credit_note_xrechnung,
        name="credit-note-xrechnung",
    ),
]
