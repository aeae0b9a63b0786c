"""What operators do on pages, and the API operation that does the same."""

OPS = "api/v1/ops"
CLUSTER, NODE = "api/v1/clusters/<str:pk>", "api/v1/nodes/<str:pk>"

# Route of a page that takes a POST -> the operations that do what its forms do.
OPERATOR_ACTS: dict[str, tuple[tuple[str, str], ...]] = {
    "ops/month-close/": (("PATCH", f"{OPS}/month-closes/<str:pk>"),),
    "ops/tax-rates/": (("POST", f"{OPS}/tax-rates"),),
    "ops/stripe/differences/<int:pk>/acknowledge/": (("PATCH", f"{OPS}/stripe-differences/<str:pk>"),),
    "ops/stripe/events/<str:pk>/retry/": (("POST", f"{OPS}/stripe-events/<str:pk>/retry"),),
    "ops/gpus/<str:pk>/quarantine/": (("PATCH", f"{OPS}/gpus/<str:pk>"),),
    "ops/gpus/<str:pk>/return/": (("PATCH", f"{OPS}/gpus/<str:pk>"),),
    "ops/corrections/": (
        ("POST", f"{OPS}/leases/<str:pk>/correction"),
        ("POST", f"{OPS}/price-versions/<str:pk>/correction"),
    ),
    "ops/corrections/<str:pk>/": (("PATCH", f"{OPS}/corrections/<str:pk>"),),
    "ops/disputes/<str:pk>/": (("PATCH", f"{OPS}/disputes/<str:pk>"),),
    "ops/commitments/": (("POST", f"{OPS}/commitments"),),
    "ops/commitments/<str:pk>/end/": (("PATCH", f"{OPS}/commitments/<str:pk>"),),
    "ops/discounts/": (
        ("POST", f"{OPS}/campaigns"),
        ("POST", f"{OPS}/discounts"),
        ("POST", f"{OPS}/minimum-spends"),
    ),
    "ops/discounts/<str:pk>/end/": (
        ("PATCH", f"{OPS}/campaigns/<str:pk>"),
        ("PATCH", f"{OPS}/discounts/<str:pk>"),
        ("PATCH", f"{OPS}/minimum-spends/<str:pk>"),
    ),
    "ops/tenants/<str:pk>/grants/new/": (("POST", f"{OPS}/grants"),),
    "ops/tenants/<str:pk>/payment-terms/": (("PATCH", f"{OPS}/tenants/<str:pk>/payment-terms"),),
    "ops/tenants/<str:pk>/quota/": (("PATCH", f"{OPS}/tenants/<str:pk>"),),
    "ops/tenants/<str:pk>/suspend/": (("PATCH", f"{OPS}/tenants/<str:pk>"),),
    "ops/tenants/<str:pk>/resume/": (("PATCH", f"{OPS}/tenants/<str:pk>"),),
    "ops/invoices/<str:pk>/": (("POST", f"{OPS}/invoices/<str:pk>/credit-note"),),
    "ops/invoices/<str:pk>/credit/": (("POST", f"{OPS}/invoices/<str:pk>/credit-note"),),
    "ops/payments/<str:pk>/refund/": (("POST", f"{OPS}/payments/<str:pk>/refund"),),
    "ops/payments/<str:pk>/mark-failed/": (("PATCH", f"{OPS}/payments/<str:pk>"),),
    "ops/topups/<str:pk>/mark-failed/": (("PATCH", f"{OPS}/topups/<str:pk>"),),
    "ops/refunds/<str:pk>/retry/": (("PATCH", f"{OPS}/refunds/<str:pk>"),),
    "ops/notifications/<str:pk>/resend/": (("PATCH", f"{OPS}/notifications/<str:pk>"),),
    "ops/clusters/add/": (("POST", "api/v1/clusters"),),
    "ops/clusters/<str:pk>/checks/rerun/": (("POST", f"{CLUSTER}/examination"),),
    "ops/clusters/<str:pk>/credentials/": (("POST", f"{CLUSTER}/credentials"),),
    "ops/clusters/<str:pk>/access/": (("PATCH", CLUSTER),),
    "ops/clusters/<str:pk>/accept-inventory/": (("POST", f"{CLUSTER}/accept-inventory"),),
    "ops/clusters/<str:pk>/unfreeze/": (("POST", f"{CLUSTER}/unfreeze"),),
    "ops/clusters/<str:pk>/orphans/delete/": (("POST", f"{CLUSTER}/orphans"),),
    "ops/clusters/<str:pk>/allow-sharing/": (("PATCH", CLUSTER),),
    "ops/clusters/<str:pk>/forbid-sharing/": (("PATCH", CLUSTER),),
    "ops/clusters/<str:pk>/images/": (("POST", f"{OPS}/image-prepulls"),),
    "ops/image-prepulls/<str:pk>/remove/": (("DELETE", f"{OPS}/image-prepulls/<str:pk>"),),
    "ops/templates/new/": (("POST", f"{OPS}/templates"),),
    "ops/templates/<str:pk>/": (("PATCH", f"{OPS}/templates/<str:pk>"),),
    "ops/templates/<str:pk>/delete/": (("DELETE", f"{OPS}/templates/<str:pk>"),),
    "ops/clusters/<str:pk>/layouts/plan/": (("POST", f"{CLUSTER}/layouts"),),
    "ops/clusters/<str:pk>/layouts/enable-automatic/": (("PATCH", CLUSTER),),
    "ops/clusters/<str:pk>/layouts/disable-automatic/": (("PATCH", CLUSTER),),
    **{
        f"ops/layout-changes/<str:pk>/{step}/": (("PATCH", f"{OPS}/layout-changes/<str:pk>"),)
        for step in ("approve", "cancel", "retry", "roll-back")
    },
    "ops/relocation-plans/propose/": (("POST", f"{OPS}/relocation-plans"),),
    **{
        f"ops/relocation-plans/<str:pk>/{step}/": (("PATCH", f"{OPS}/relocation-plans/<str:pk>"),)
        for step in ("accept", "decline", "cancel")
    },
    **{f"ops/nodes/<str:pk>/{step}/": (("PATCH", NODE),) for step in ("cordon", "drain", "return", "mark-lost")},
    "ops/nodes/<str:pk>/release-leases/": (("POST", f"{NODE}/release-leases"),),
    "ops/leases/<str:pk>/release/": (("POST", f"{OPS}/leases/<str:pk>/release"),),
    "ops/offerings/derive/": (("POST", f"{OPS}/offerings/derive"),),
    "ops/offerings/<str:pk>/": (
        ("PATCH", f"{OPS}/offerings/<str:pk>"),
        ("POST", f"{OPS}/offerings/<str:pk>/price"),
    ),
    "ops/offerings/<str:pk>/tenant-prices/": (("POST", f"{OPS}/offerings/<str:pk>/price"),),
    "ops/tenant-prices/<str:pk>/end/": (("PATCH", f"{OPS}/price-versions/<str:pk>"),),
    "ops/offerings/<str:pk>/publish/": (("PATCH", f"{OPS}/offerings/<str:pk>"),),
    "ops/offerings/<str:pk>/retire/": (("PATCH", f"{OPS}/offerings/<str:pk>"),),
    "ops/tokens/": (("POST", f"{OPS}/tokens"),),
    "ops/tokens/<str:pk>/revoke/": (("DELETE", f"{OPS}/tokens/<str:pk>"),),
    "ops/tenants/new/": (("POST", f"{OPS}/tenants"),),
    "ops/tenants/<str:pk>/release/": (("POST", f"{OPS}/tenants/<str:pk>/release"),),
    "ops/tenants/<str:pk>/currency/": (("POST", f"{OPS}/tenants/<str:pk>/currency"),),
    "ops/tenants/<str:pk>/approval-limits/": (("POST", f"{OPS}/tenants/<str:pk>/approval-limits"),),
    "ops/approvals/<str:pk>/": (
        ("POST", f"{OPS}/approval-requests/<str:pk>/approve"),
        ("POST", f"{OPS}/approval-requests/<str:pk>/decline"),
    ),
    "ops/accounting/settings/": (("PATCH", f"{OPS}/journal-settings"),),
    "ops/bank-receipts/": (("POST", f"{OPS}/bank-receipts"),),
    "ops/bank-receipts/<str:pk>/": (("PATCH", f"{OPS}/bank-receipts/<str:pk>"),),
    "ops/bank-receipts/<str:pk>/reverse/": (("PATCH", f"{OPS}/bank-receipts/<str:pk>"),),
    "ops/bank-entries/": (("POST", f"{OPS}/bank-statements"),),
    "ops/bank-entries/<str:pk>/": (("PATCH", f"{OPS}/bank-entries/<str:pk>"),),
    "ops/grants/<str:pk>/revoke/": (("PATCH", f"{OPS}/grants/<str:pk>"),),
    "ops/price-versions/<int:pk>/withdraw/": (("PATCH", f"{OPS}/price-versions/<str:pk>"),),
    **{
        f"ops/invoices/<str:pk>/{step}/": (("PATCH", f"{OPS}/invoices/<str:pk>"),)
        for step in ("rebill", "reinstate", "write-off")
    },
    **{
        f"ops/month-reviews/<int:pk>/{step}/": (("PATCH", f"{OPS}/month-reviews/<str:pk>"),)
        for step in ("hold", "approve", "release")
    },
}
