"""From which namespaces of a cluster people come to leases: the walls of every project open for these alone."""

BY_INGRESS = "ingress-nginx"  # where its controller mostly runs; `ingress/<class>` does not tell
BY_BASTION = "gateway"


def entrances(door: str, bastion: str, told: str) -> tuple[str, ...]:
    """Return what an operator told, else what can be read off how people come in; nothing where they do not."""
    if told:
        return tuple(sorted(set(told.split())))
    kind, _, rest = door.partition("/")
    found = {"ingress": BY_INGRESS, "gateway": rest.partition("/")[0]}.get(kind, "")
    return tuple(sorted({found, BY_BASTION if bastion else ""} - {""}))
