"""Where the tenant's pages live."""

from django.urls import path

from billing.portal import catalogue, home, invoices, launch, lease, leases, queue, spend

urlpatterns = [
    path("", home.home, name="home"),
    path("catalogue/", catalogue.catalogue, name="catalogue"),
    path("launch/", launch.launch, name="launch"),
    path("leases/", leases.leases, name="leases"),
    path("leases/<str:lease_id>/", lease.lease, name="lease"),
    path("leases/<str:lease_id>/row/", lease.row, name="lease-row"),
    path("leases/<str:lease_id>/extend/", lease.extend, name="lease-extend"),
    path("leases/<str:lease_id>/release/", lease.release, name="lease-release"),
    path("queue/", queue.queue, name="queue"),
    path("spend/", spend.spend, name="spend"),
    path("invoices/", invoices.invoices, name="invoices"),
    path("invoices/<str:invoice_id>/", invoices.invoice, name="invoice"),
]
