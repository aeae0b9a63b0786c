"""Scopes of operators' tokens: reading or changing an area of the operators' API."""

READ, WRITE = "read", "write"
OPERATOR_AREAS = {
    "fleet": "clusters, nodes, GPUs, layouts, relocations and images",
    "leases": "leases and allocations of all tenants",
    "offerings": "offerings, prices and launch templates",
    "tenants": "tenants, their quotas, suspension and payment terms",
    "billing": "invoices, payments, credit, discounts, commitments, corrections, disputes, taxes and the ledger",
    "system": "the audit log, e-mails and integrity checks",
}
OPERATOR_SCOPES = frozenset(f"{area}:{verb}" for area in OPERATOR_AREAS for verb in (READ, WRITE))


def operator_scope(area: str, *, changes: bool) -> str:
    """Return the scope that a request to an area needs."""
    return f"{area}:{WRITE if changes else READ}"


def operator_scope_allows(scopes: frozenset[str], needed: str) -> bool:
    """Return whether scopes include a needed one; `x:write` includes `x:read`."""
    area, _, verb = needed.partition(":")
    return needed in scopes or (verb == READ and f"{area}:{WRITE}" in scopes)
