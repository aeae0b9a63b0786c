"""References of container images: their syntax, and internal hosts never pulled from."""

import ipaddress
import re

LONGEST = 255
PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
REFERENCE = re.compile(
    rf"(?:(?P<host>{HOST}|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{{1,5}}))?/)?"
    rf"(?P<path>{PATH_PART}(?:/{PATH_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
DOCKER_HUB_HOSTS = ("docker.io", "index.docker.io", "registry-1.docker.io")
# Names of the cluster or its nodes, not of a public registry.
INTERNAL_NAMES = ("localhost", "local", "internal", "svc", "cluster", "localdomain", "home.arpa")


def image_reference_fault(image: str) -> str:
    """Return what is wrong with an image reference; empty if it looks valid."""
    if len(image) > LONGEST:
        return f"An image reference can have at most {LONGEST} characters."
    found = REFERENCE.fullmatch(image)
    if found is None:
        return _explain_fault(image)
    host, first = found["host"] or "", image.partition("/")[0]
    if not host or not _is_host(first):  # the first word belongs to the path, as in Docker Hub names
        return "" if host == host.lower() else _explain_fault(image)
    if found["port"] and not 0 < int(found["port"]) < 65536:
        return f"{found['port']} is not a valid port."
    if is_internal_host(host.strip("[]").lower()):
        return f"{host} is inside the cluster or an IP address; use a registry with a public host name."
    return ""


def _explain_fault(image: str) -> str:
    if image != image.strip() or any(character.isspace() for character in image):
        return "An image reference cannot contain spaces."
    if "://" in image:
        return "An image reference has no scheme. Remove everything up to ://."
    if "@" in image and not re.search(r"@sha256:[0-9a-f]{64}$", image):
        return "The digest after @ must be sha256: and 64 hexadecimal digits."
    if REFERENCE.fullmatch(image.lower()):
        return "The path of an image must be lowercase; only the tag can have capitals."
    return "This is not an image reference. Use name:tag, registry.example/team/name:tag or name@sha256:…"


def _is_host(word: str) -> bool:
    """Tell whether a first word is a host, by the registries' rule.

    It is one if it has a dot or a colon, or is `localhost`.
    """
    return "." in word or ":" in word or word == "localhost"


def image_host(image: str) -> str:
    """Return the registry of an image reference with its port; empty for Docker Hub."""
    first = image.partition("/")[0]
    host = first.lower() if "/" in image and _is_host(first) else ""
    return "" if host in DOCKER_HUB_HOSTS else host


def is_internal_host(host: str) -> bool:
    """Return whether a host is inside the cluster or an IP address."""
    labels = host.split(".")
    if any(host == name or host.endswith(f".{name}") for name in INTERNAL_NAMES) or "svc" in labels:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # Some resolvers read a whole number, or a last label of digits, as an address.
        return bool(re.fullmatch(r"\d+|0x[0-9a-f]+", labels[-1], re.ASCII))
    return True
