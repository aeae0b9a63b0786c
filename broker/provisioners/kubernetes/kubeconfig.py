"""The way into a cluster as an operator hands it over: one context of a kubeconfig, with everything inside it."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from broker.provisioners.kubernetes.signing_in import Unusable, check_authority, check_user

__all__ = ["Unusable", "parse", "server"]
FILES = {  # what may lie in a file of its own, by the field that holds it itself
    "cluster": {"certificate-authority": "certificate-authority-data"},
    "user": {"client-certificate": "client-certificate-data", "client-key": "client-key-data"},
}
MOST = 2_000  # values in one context; a few lines of YAML may stand for millions
# What broken YAML and broken tags in it raise, and what is nested too deeply.
NOT_READ = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)


class Loader(yaml.SafeLoader):
    """Reads dates as the text they are, as kubectl does."""

    yaml_implicit_resolvers = {
        first: [(tag, like) for tag, like in tags if tag != "tag:yaml.org,2002:timestamp"]
        for first, tags in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def parse(text: str, *, context: str = "", beside: Path | None = None) -> dict[str, Any]:
    """Return one context alone, with the files it names read in from `beside`, or raise Unusable."""
    whole = _read(text)
    wanted = context or whole.get("current-context") or ""
    if not wanted or not isinstance(wanted, str):
        raise Unusable(
            "This kubeconfig has no `current-context`. Set one with `kubectl config use-context <name>`."
        )
    chosen = _named(whole, "contexts", wanted)
    cluster = _named(whole, "clusters", chosen.get("cluster", ""))
    user = _named(whole, "users", chosen.get("user", ""))
    _check_plain({"cluster": cluster, "user": user})
    _check_server(cluster)
    _read_in(cluster, FILES["cluster"], beside)
    _read_in(user, FILES["user"], beside)
    check_authority(cluster)
    name = "cluster"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": check_user(user)}],
    }


def server(kubeconfig: dict[str, Any]) -> str:
    """Return the address that a parsed kubeconfig leads to."""
    return str(kubeconfig["clusters"][0]["cluster"]["server"])


def _read(text: str) -> dict[str, Any]:
    try:
        whole = yaml.load(text, Loader)  # a SafeLoader, which makes plain values only
    except NOT_READ as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}" if place else ""
        raise Unusable(
            f"This is no YAML{where}. Paste the whole file, as `kubectl config view --raw` prints it."
        ) from None
    if not isinstance(whole, dict) or not isinstance(whole.get("clusters"), list):
        raise Unusable(
            "This is no kubeconfig: it has no list `clusters`. Paste what `kubectl config view --raw` prints."
        )
    return whole


def _named(whole: dict[str, Any], section: str, name: object) -> dict[str, Any]:
    """Return what is inside the entry of a section with this name."""
    entries = whole.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            inside = entry.get(section.removesuffix("s"))
            if inside is not None and not isinstance(inside, dict):
                raise Unusable(
                    f"`{section.removesuffix('s')}` of {name!r} under `{section}` must be a mapping of names to"
                    " values. Mind how its lines are indented."
                )
            return dict(inside or {})
    raise Unusable(f"This kubeconfig has no entry {name!r} under `{section}`, but its context names it.")


def _check_plain(section: dict[str, Any]) -> None:
    """Refuse what JSON cannot say, and what would become too much of it."""
    for left, each in enumerate(_values(section)):
        if left > MOST:
            raise Unusable(
                "This kubeconfig says more than any we know. Give one cluster and one user, written out."
            )
        if not isinstance(each, str | int | float | dict | list | None):
            raise Unusable(
                f"This kubeconfig has a value of a kind that none has: {type(each).__name__}."
                " Give it as text, in quotes."
            )


def _values(value: object) -> Iterator[object]:
    """Yield a value and all that is in it, names too; a thing within itself never ends."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each


def _check_server(cluster: dict[str, Any]) -> None:
    address = cluster.get("server", "")
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        is_one = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or not address.isascii() or not address.isprintable() or " " in address:
        raise Unusable(
            "The cluster's `server` must be an https:// address: the way in is never in the clear."
            " Write it like https://cluster.example.org:6443, an IPv6 address in [brackets]."
        )
    if cluster.get("insecure-skip-tls-verify"):
        raise Unusable(
            "`insecure-skip-tls-verify` would hand our credentials to anybody. Give `certificate-authority-data`."
        )


def _read_in(section: dict[str, Any], fields: dict[str, str], beside: Path | None) -> None:
    for path_field, own_field in fields.items():
        path = section.pop(path_field, None)
        if path is None or own_field in section:
            continue
        if beside is None:
            raise Unusable(
                f"`{path_field}` names a file that only you have. Use `kubectl config view --raw --flatten`."
            )
        try:
            section[own_field] = base64.b64encode((beside / str(path)).read_bytes()).decode()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no file has such a name"
            raise Unusable(f"`{path_field}` cannot be read: {why}: {path}.") from None
