"""Parse a kubeconfig as operators provide it: one context, all files inlined."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from broker.provisioners.kubernetes.client.kubeconfig_checks import (
    UnusableKubeconfig,
    check_authority,
    check_user,
    refuse_local_credentials,
)

__all__ = ["UnusableKubeconfig", "parse_kubeconfig", "parse_pasted_kubeconfig", "server_address"]
FILE_FIELDS = {  # fields that name a file, with the field for inline data
    "cluster": {"certificate-authority": "certificate-authority-data"},
    "user": {"client-certificate": "client-certificate-data", "client-key": "client-key-data"},
}
MAX_VALUES = 2_000  # values in one context; YAML aliases can expand to millions
# Raised by broken YAML, broken tags and too deep nesting.
YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)


class KubeconfigLoader(yaml.SafeLoader):
    """YAML loader that reads dates as text, as kubectl does."""

    yaml_implicit_resolvers = {
        first: [(tag, like) for tag, like in tags if tag != "tag:yaml.org,2002:timestamp"]
        for first, tags in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse merge keys, which may expand to millions of values."""
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise UnusableKubeconfig(
                    f"`<<` in line {key.start_mark.line + 1} is not supported. Write its values out."
                )


def parse_kubeconfig(text: str, *, context: str = "", beside: Path | None = None) -> dict[str, Any]:
    """Return one context with its files inlined, or raise UnusableKubeconfig.

    Files are read relative to `beside`.
    """
    whole = _load_yaml(text)
    wanted = context or whole.get("current-context") or ""
    if not wanted or not isinstance(wanted, str):
        raise UnusableKubeconfig(
            "This kubeconfig has no `current-context`. Set one with `kubectl config use-context <name>`."
        )
    chosen = _named_entry(whole, "contexts", wanted)
    cluster = _named_entry(whole, "clusters", chosen.get("cluster", ""))
    user = _named_entry(whole, "users", chosen.get("user", ""))
    _check_plain_values({"cluster": cluster, "user": user})
    _check_server(cluster)
    _inline_files(cluster, FILE_FIELDS["cluster"], beside)
    _inline_files(user, FILE_FIELDS["user"], beside)
    check_authority(cluster)
    return kubeconfig_of(cluster, check_user(user))


def parse_pasted_kubeconfig(text: str) -> dict[str, Any]:
    """Return the current context of a kubeconfig that somebody sent, or raise UnusableKubeconfig.

    Using it reads no file of this server and runs no program.
    """
    kubeconfig = parse_kubeconfig(text)
    refuse_local_credentials(kubeconfig["users"][0]["user"])
    return kubeconfig


def kubeconfig_of(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig with one cluster and one user."""
    name = "cluster"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def server_address(kubeconfig: dict[str, Any]) -> str:
    """Return the server address of a parsed kubeconfig."""
    return str(kubeconfig["clusters"][0]["cluster"]["server"])


def _load_yaml(text: str) -> dict[str, Any]:
    try:
        whole = yaml.load(text, KubeconfigLoader)  # a SafeLoader, which creates plain values only
    except UnusableKubeconfig:
        raise
    except YAML_ERRORS as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}" if place else ""
        raise UnusableKubeconfig(
            f"This is not valid YAML{where}. Paste the whole output of `kubectl config view --raw`."
        ) from None
    if not isinstance(whole, dict) or not isinstance(whole.get("clusters"), list):
        raise UnusableKubeconfig(
            "This is not a kubeconfig: the list `clusters` is missing. Paste the output of `kubectl config view --raw`."
        )
    return whole


def _named_entry(whole: dict[str, Any], section: str, name: object) -> dict[str, Any]:
    """Return the content of a section's entry with this name."""
    entries = whole.get(section)
    if not isinstance(name, str):  # comparing or quoting it may never end: it may contain itself
        raise UnusableKubeconfig(f"The name of the context's entry in `{section}` must be a text. Put it in quotes.")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            inside = entry.get(section.removesuffix("s"))
            if inside is not None and not isinstance(inside, dict):
                raise UnusableKubeconfig(
                    f"`{section.removesuffix('s')}` of {name!r} under `{section}` must be a mapping of names to"
                    " values. Check the indentation."
                )
            return dict(inside or {})
    raise UnusableKubeconfig(f"The context refers to {name!r}, which `{section}` does not contain. Add it.")


def _check_plain_values(section: dict[str, Any]) -> None:
    """Refuse values that JSON cannot express, and too many values."""
    for left, each in enumerate(_values(section)):
        if left > MAX_VALUES:
            raise UnusableKubeconfig("This kubeconfig is too long or too deeply nested. Give one cluster and one user.")
        if not isinstance(each, str | int | float | dict | list | None):
            raise UnusableKubeconfig(
                f"This kubeconfig has a value of the unsupported type {type(each).__name__}. Put it in quotes."
            )


def _values(value: object) -> Iterator[object]:
    """Yield a value and everything inside it, keys too.

    A value that contains itself never ends.
    """
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
        raise UnusableKubeconfig(
            "The cluster's `server` must be an https:// address."
            " Enter it like https://cluster.example.org:6443, an IPv6 address in [brackets]."
        )
    if cluster.get("insecure-skip-tls-verify"):
        raise UnusableKubeconfig(
            "`insecure-skip-tls-verify` is not allowed, as it exposes credentials. Use `certificate-authority-data`."
        )


def _inline_files(section: dict[str, Any], fields: dict[str, str], beside: Path | None) -> None:
    for path_field, own_field in fields.items():
        path = section.pop(path_field, None)
        if path is None or own_field in section:
            continue
        if beside is None:
            raise UnusableKubeconfig(
                f"`{path_field}` refers to a file on your machine. Use `kubectl config view --raw --flatten`."
            )
        try:
            section[own_field] = base64.b64encode((beside / str(path)).read_bytes()).decode()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "the file name is not valid"
            raise UnusableKubeconfig(f"`{path_field}` cannot be read: {why}: {path}.") from None
