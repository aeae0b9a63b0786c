"""Where the tenant's pages live."""

from django.urls import path

from billing.portal import (
    budgets,
    catalogue,
    checking,
    home,
    invoices,
    launch,
    lease,
    leases,
    papers,
    queue,
    spend,
    volumes,
    wallet,
)

urlpatterns = [
    path("", home.home, name="home"),
    path("catalogue/", catalogue.catalogue, name="catalogue"),
    path("launch/", launch.launch, name="launch"),
    path("launch/quote/", launch.quoted, name="launch-quote"),
    path("leases/", leases.leases, name="leases"),
    path("leases/<str:pk>/", lease.lease, name="lease"),
    path("leases/<str:pk>/row/", lease.row, name="lease-row"),
    path("leases/<str:pk>/extend/", lease.extend, name="lease-extend"),
    path("leases/<str:pk>/release/", lease.release, name="lease-release"),
    path("leases/<str:pk>/move/", lease.move, name="lease-move"),
    path("leases/<str:pk>/stop/", lease.stop, name="lease-stop"),
    path("leases/<str:pk>/start/", lease.start, name="lease-start"),
    path("volumes/", volumes.volumes, name="volumes"),
    path("volumes/<str:pk>/delete/", volumes.delete, name="volume-delete"),
    path("queue/", queue.queue, name="queue"),
    path("spend/", spend.spend, name="spend"),
    path("budgets/", budgets.budgets, name="budgets"),
    path("budgets/<str:pk>/remove/", budgets.remove, name="budget-remove"),
    path("wallet/", wallet.wallet, name="wallet"),
    path("invoices/", invoices.invoices, name="invoices"),
    path("invoices/verify.py", checking.program, name="invoice-program"),
    path("invoices/<str:pk>/", invoices.invoice, name="invoice"),
    path("invoices/<str:pk>/bundle/", checking.bundle, name="invoice-bundle"),
    path("invoices/<str:pk>/check/", checking.check, name="invoice-check"),
    path("invoices/<str:pk>/pay/", invoices.pay, name="invoice-pay"),
    path("invoices/<str:pk>/pdf/", papers.invoice, name="invoice-pdf"),
    path("credit-notes/<str:pk>/pdf/", papers.credit_note, name="credit-note-pdf"),
]
