"""URLs of the operators' pages that show money, below /ops/."""

from django.urls import path

from web.portal.operators.accounting import accounting_page, journal_settings_page
from web.portal.operators.approvals import approval_pages
from web.portal.operators.bank_receipts import entry_pages, receipt_page, receipt_pages
from web.portal.operators.commitments import commitment_pages
from web.portal.operators.corrections import correction_pages
from web.portal.operators.credit_notes import credit_note_list_page
from web.portal.operators.discounts import discount_pages
from web.portal.operators.disputes import dispute_pages
from web.portal.operators.fleet import attention, control_room_page, gpu_pages, gpu_panel
from web.portal.operators.grants import grant_list_page, grant_page, grant_revocation_page
from web.portal.operators.invoicing import (
    document_downloads,
    invoice_pages,
    month_close_page,
    rebill_page,
    review_pages,
    write_off_pages,
)
from web.portal.operators.ledger import ledger_page
from web.portal.operators.notifications import notification_actions
from web.portal.operators.payments import payment_actions, refund_pages, stripe_pages
from web.portal.operators.pricing import offering_pages, price_withdrawal_page, tenant_price_pages
from web.portal.operators.system import system_page
from web.portal.operators.taxes import tax_rate_page
from web.portal.operators.tenants import payment_terms_page
from web.portal.operators.tokens import token_pages

urlpatterns = [
    path("", control_room_page.show_control_room, name="control-room"),
    path("attention/", attention.show_attention, name="ops-attention"),
    path("fleet-map/", control_room_page.show_fleet_map, name="ops-fleet-map"),
    path("gpus/", gpu_pages.list_gpus, name="ops-gpus"),
    path("gpus/<str:pk>/", gpu_pages.show_gpu, name="ops-gpu"),
    path("gpus/<str:pk>/panel/", gpu_panel.show_gpu_panel, name="ops-gpu-panel"),
    path("gpus/<str:pk>/quarantine/", gpu_pages.quarantine_gpu, name="ops-gpu-quarantine"),
    path("gpus/<str:pk>/return/", gpu_pages.return_gpu, name="ops-gpu-return"),
    path("offerings/", offering_pages.list_offerings, name="ops-offerings"),
    path("offerings/derive/", offering_pages.derive_offerings, name="ops-offerings-derive"),
    path("offerings/<str:pk>/", offering_pages.edit_offering, name="ops-offering"),
    path("offerings/<str:pk>/tenant-prices/", tenant_price_pages.edit_tenant_prices, name="ops-tenant-prices"),
    path("tenant-prices/<str:pk>/end/", tenant_price_pages.end_tenant_price, name="ops-tenant-price-end"),
    path("offerings/<str:pk>/publish/", offering_pages.publish_offering, name="ops-offering-publish"),
    path("offerings/<str:pk>/retire/", offering_pages.retire_offering, name="ops-offering-retire"),
    path("payments/<str:pk>/refund/", refund_pages.refund_payment, name="ops-payment-refund"),
    path("notifications/<str:pk>/resend/", notification_actions.resend_notification, name="ops-notification-resend"),
    path("refunds/<str:pk>/retry/", refund_pages.retry_refund, name="ops-refund-retry"),
    path("topups/<str:pk>/mark-failed/", payment_actions.mark_topup_failed, name="ops-topup-mark-failed"),
    path("payments/<str:pk>/mark-failed/", payment_actions.mark_payment_failed, name="ops-payment-mark-failed"),
    path("invoices/", invoice_pages.list_invoices, name="ops-invoices"),
    path("invoices/<str:pk>/", invoice_pages.credit_invoice, name="ops-invoice"),
    path("invoices/<str:pk>/credit/", invoice_pages.credit_whole_invoice, name="ops-invoice-credit"),
    path("invoices/<str:pk>/exports/<str:kind>/", document_downloads.download_export, name="ops-invoice-export"),
    path("statements/<str:pk>/<str:kind>/", document_downloads.download_statement, name="ops-statement"),
    path("invoices/<str:pk>/write-off/", write_off_pages.write_off, name="ops-invoice-write-off"),
    path("invoices/<str:pk>/reinstate/", write_off_pages.reinstate, name="ops-invoice-reinstate"),
    path("bank-receipts/", receipt_pages.list_receipts, name="ops-bank-receipts"),
    path("bank-receipts/<str:pk>/", receipt_page.show_receipt, name="ops-bank-receipt"),
    path("bank-receipts/<str:pk>/reverse/", receipt_page.reverse_bank_receipt, name="ops-bank-receipt-reverse"),
    path("bank-entries/", entry_pages.list_entries, name="ops-bank-entries"),
    path("bank-entries/<str:pk>/", entry_pages.show_entry, name="ops-bank-entry"),
    path("corrections/", correction_pages.list_corrections, name="ops-corrections"),
    path("corrections/<str:pk>/", correction_pages.show_correction, name="ops-correction"),
    path("disputes/", dispute_pages.list_disputes, name="ops-disputes"),
    path("disputes/<str:pk>/", dispute_pages.show_dispute, name="ops-dispute"),
    path("approvals/", approval_pages.list_approvals, name="ops-approvals"),
    path("approvals/<str:pk>/", approval_pages.show_approval, name="ops-approval"),
    path("tenants/<str:pk>/approval-limits/", approval_pages.edit_approval_limits, name="ops-approval-limits"),
    path("grants/", grant_list_page.list_grants, name="ops-grants"),
    path("grants/<str:pk>/revoke/", grant_revocation_page.revoke_grant, name="ops-grant-revoke"),
    path("price-versions/<int:pk>/withdraw/", price_withdrawal_page.withdraw_price, name="ops-price-withdraw"),
    path("tenants/<str:pk>/grants/new/", grant_page.grant_credit, name="ops-grant-create"),
    path("commitments/", commitment_pages.list_commitments, name="ops-commitments"),
    path("commitments/<str:pk>/end/", commitment_pages.end_commitment, name="ops-commitment-end"),
    path("discounts/", discount_pages.list_discounts, name="ops-discounts"),
    path("discounts/<str:pk>/end/", discount_pages.end_agreement, name="ops-discount-end"),
    path("invoices/<str:pk>/pdf/", document_downloads.download_invoice_pdf, name="ops-invoice-pdf"),
    path("invoices/<str:pk>/xrechnung/", document_downloads.download_invoice_xrechnung, name="ops-invoice-xrechnung"),
    path("credit-notes/", credit_note_list_page.list_credit_notes, name="ops-credit-notes"),
    path("credit-notes/<str:pk>/pdf/", document_downloads.download_credit_note_pdf, name="ops-credit-note-pdf"),
    path(
        "credit-notes/<str:pk>/xrechnung/",
        document_downloads.download_credit_note_xrechnung,
        name="ops-credit-note-xrechnung",
    ),
    path("tenants/<str:pk>/payment-terms/", payment_terms_page.edit_payment_terms, name="ops-payment-terms"),
    path("stripe/", stripe_pages.show_stripe, name="ops-stripe"),
    path(
        "stripe/differences/<int:pk>/acknowledge/", stripe_pages.acknowledge_difference, name="ops-stripe-acknowledge"
    ),
    path("stripe/events/<str:pk>/retry/", stripe_pages.reprocess_event, name="ops-stripe-event-retry"),
    path("ledger/", ledger_page.show_ledger, name="ops-ledger"),
    path("accounting/", accounting_page.show_accounting, name="ops-accounting"),
    path("accounting/settings/", journal_settings_page.edit_journal_settings, name="ops-journal-settings"),
    path("accounting/<str:month>/<str:kind>/", accounting_page.download_export, name="ops-accounting-export"),
    path("invoices/<str:pk>/rebill/", rebill_page.rebill_invoice, name="ops-invoice-rebill"),
    path("month-reviews/", review_pages.list_reviews, name="ops-month-reviews"),
    path("month-reviews/<int:pk>/hold/", review_pages.hold_month, name="ops-month-hold"),
    path("month-reviews/<int:pk>/approve/", review_pages.approve_month, name="ops-month-approve"),
    path("month-reviews/<int:pk>/release/", review_pages.release_month, name="ops-month-release"),
    path("month-close/", month_close_page.show_month_close, name="ops-month-close"),
    path("tax-rates/", tax_rate_page.list_tax_rates, name="ops-tax-rates"),
    path("tokens/", token_pages.show_tokens, name="ops-tokens"),
    path("tokens/<str:pk>/revoke/", token_pages.revoke_token, name="ops-token-revoke"),
    path("system/", system_page.show_system, name="ops-system"),
    path("integrity-checks/", system_page.show_integrity_checks, name="ops-integrity-checks"),
]
