"""References to container images: what registries understand, and from where nothing is ever pulled."""

import ipaddress
import re

LONGEST = 255
PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
REFERENCE = re.compile(
    rf"(?:(?P<host>{HOST}|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{{1,5}}))?/)?"
    rf"(?P<path>{PART}(?:/{PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
# Names that mean the cluster or its machines, not a registry that people use.
INSIDE = ("localhost", "local", "internal", "svc", "cluster", "localdomain", "home.arpa")


def image_fault(image: str) -> str:
    """Say what is wrong with a reference; empty when it can be pulled as far as its words go."""
    if len(image) > LONGEST:
        return f"An image's reference has at most {LONGEST} characters."
    found = REFERENCE.fullmatch(image)
    if found is None:
        return _why_not(image)
    host, first = found["host"] or "", image.partition("/")[0]
    if not host or not _is_host(first):  # the first word is part of a path: a public library's
        return "" if host == host.lower() else _why_not(image)
    if found["port"] and not 0 < int(found["port"]) < 65536:
        return f"{found['port']} is no port."
    if _is_inside(host.strip("[]").lower()):
        return (
            f"{host} lies inside the cluster or is an address; images are pulled from named registries only."
        )
    return ""


def _why_not(image: str) -> str:
    if image != image.strip() or any(letter.isspace() for letter in image):
        return "An image's reference has no spaces."
    if "://" in image:
        return "An image's reference has no scheme: leave out what stands before ://."
    if "@" in image and not re.search(r"@sha256:[0-9a-f]{64}$", image):
        return "What follows @ is sha256: and 64 digits of 0-9 and a-f."
    if REFERENCE.fullmatch(image.lower()):
        return "The path of an image is written in small letters; only its tag may have capitals."
    return "This is no image reference. Write it as name:tag, registry.example/team/name:tag or name@sha256:…"


def _is_host(word: str) -> bool:
    """Registries tell a host from a path by a dot, a colon, or the word localhost."""
    return "." in word or ":" in word or word == "localhost"


def _is_inside(host: str) -> bool:
    labels = host.split(".")
    if any(host == name or host.endswith(f".{name}") for name in INSIDE) or "svc" in labels:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # A whole number, or a last label of digits, is an address to some resolvers.
        return bool(re.fullmatch(r"\d+|0x[0-9a-f]+", labels[-1], re.ASCII))
    return True
