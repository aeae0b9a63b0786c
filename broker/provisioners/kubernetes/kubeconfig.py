"""The way into a cluster as an operator hands it over: one context of a kubeconfig, with everything inside it."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

FILES = {  # what may lie in a file of its own, by the field that holds it itself
    "cluster": {"certificate-authority": "certificate-authority-data"},
    "user": {"client-certificate": "client-certificate-data", "client-key": "client-key-data"},
}


class Unusable(ValueError):
    """This kubeconfig leads nowhere; the text says what to change in it."""


def parse(text: str, *, context: str = "", beside: Path | None = None) -> dict[str, Any]:
    """Return one context alone, with the files it names read in from `beside`, or raise Unusable."""
    try:
        whole = yaml.safe_load(text)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}" if place else ""
        raise Unusable(
            f"This is no YAML{where}. Paste the whole file, as `kubectl config view --raw` prints it."
        ) from None
    if not isinstance(whole, dict) or not isinstance(whole.get("clusters"), list):
        raise Unusable(
            "This is no kubeconfig: it has no list `clusters`. Paste what `kubectl config view --raw` prints."
        )
    wanted = context or whole.get("current-context") or ""
    if not wanted:
        raise Unusable(
            "This kubeconfig has no `current-context`. Set one with `kubectl config use-context <name>`."
        )
    chosen = _named(whole, "contexts", wanted).get("context") or {}
    cluster = dict(_named(whole, "clusters", chosen.get("cluster", "")).get("cluster") or {})
    user = dict(_named(whole, "users", chosen.get("user", "")).get("user") or {})
    _check_server(cluster)
    _read_in(cluster, FILES["cluster"], beside)
    _read_in(user, FILES["user"], beside)
    if not user.keys() & {
        "token",
        "tokenFile",
        "client-certificate-data",
        "exec",
        "auth-provider",
        "username",
    }:
        raise Unusable(
            "The user of this kubeconfig has no token, certificate or exec plugin: it could not sign in."
        )
    name = "cluster"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def server(kubeconfig: dict[str, Any]) -> str:
    """Return the address that a parsed kubeconfig leads to."""
    return str(kubeconfig["clusters"][0]["cluster"]["server"])


def _named(whole: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    entries = whole.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry
    raise Unusable(f"This kubeconfig has no entry {name!r} under `{section}`, but its context names it.")


def _check_server(cluster: dict[str, Any]) -> None:
    parts = urlsplit(str(cluster.get("server", "")))
    if parts.scheme != "https" or not parts.hostname:
        raise Unusable(
            "The cluster's `server` must be an https:// address: the way in is never in the clear."
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
        except OSError as error:
            raise Unusable(f"`{path_field}` cannot be read: {error.strerror}: {path}.") from None
