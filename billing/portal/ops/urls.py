"""Addresses of the operators' pages that show money, below /ops/."""

from django.urls import path

from billing.portal.ops import (
    cards,
    control,
    grant,
    grants,
    invoices,
    ledger,
    offerings,
    own_prices,
    panel,
    papers,
    payments,
    system,
    taxes,
)

urlpatterns = [
    path("", control.control_room, name="control-room"),
    path("map/", control.fleet_map, name="ops-map"),
    path("cards/", cards.table, name="ops-cards"),
    path("cards/<str:pk>/", cards.card, name="ops-card"),
    path("cards/<str:pk>/panel/", panel.panel, name="ops-card-panel"),
    path("cards/<str:pk>/quarantine/", cards.quarantine, name="ops-card-quarantine"),
    path("cards/<str:pk>/return/", cards.give_back, name="ops-card-return"),
    path("offerings/", offerings.table, name="ops-offerings"),
    path("offerings/derive/", offerings.derive, name="ops-offerings-derive"),
    path("offerings/<str:pk>/", offerings.edit, name="ops-offering"),
    path("offerings/<str:pk>/tenants/", own_prices.edit, name="ops-offering-own"),
    path("prices/<str:pk>/end/", own_prices.end, name="ops-own-price-end"),
    path("offerings/<str:pk>/publish/", offerings.publish, name="ops-offering-publish"),
    path("offerings/<str:pk>/retire/", offerings.retire, name="ops-offering-retire"),
    path("payments/<str:pk>/untaken/", payments.untaken, name="ops-payment-untaken"),
    path("invoices/", invoices.table, name="ops-invoices"),
    path("invoices/<str:pk>/", invoices.invoice, name="ops-invoice"),
    path("invoices/<str:pk>/give-back/", invoices.give_back, name="ops-invoice-give-back"),
    path("grants/", grants.table, name="ops-grants"),
    path("grants/<str:pk>/give/", grant.give, name="ops-grant"),
    path("invoices/<str:pk>/pdf/", papers.invoice, name="ops-invoice-pdf"),
    path("credit-notes/<str:pk>/pdf/", papers.credit_note, name="ops-credit-note-pdf"),
    path("ledger/", ledger.ledger, name="ops-ledger"),
    path("taxes/", taxes.taxes, name="ops-taxes"),
    path("system/", system.system, name="ops-system"),
    path("proofs/", system.strip, name="ops-proofs"),
]
