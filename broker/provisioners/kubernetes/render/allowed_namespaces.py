"""Namespaces from which people reach leases; network policies admit only these."""

INGRESS_NAMESPACE = "ingress-nginx"  # usual namespace of the controller; `ingress/<class>` does not name it
BASTION_NAMESPACE = "gateway"


def resolve_allowed_namespaces(ingress: str, bastion: str, configured: str) -> tuple[str, ...]:
    """Return the configured namespaces, else those implied by ingress and bastion.

    Empty where people cannot reach leases.
    """
    if configured:
        return tuple(sorted(set(configured.split())))
    kind, _, rest = ingress.partition("/")
    found = {"ingress": INGRESS_NAMESPACE, "gateway": rest.partition("/")[0]}.get(kind, "")
    return tuple(sorted({found, BASTION_NAMESPACE if bastion else ""} - {""}))
