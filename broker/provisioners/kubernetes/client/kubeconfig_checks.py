"""Check the credentials of a kubeconfig before they are stored.

Checked are certificates, keys, tokens and programs. The official client accepts most broken ones
silently and then calls without credentials.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)
LOCAL_CREDENTIALS = {"exec": "runs a program on this server", "tokenFile": "reads a file of this server"}
TOKEN_FIX = "Use a service account's token; `manage.py kube_setup` creates one without expiry."
RAW_FIX = "Copy it from the output of `kubectl config view --raw`."


class UnusableKubeconfig(ValueError):
    """This kubeconfig cannot be used; the message says what to change in it."""


def check_authority(cluster: dict[str, Any]) -> None:
    """Raise UnusableKubeconfig for a certificate authority that cannot be read."""
    if cluster.get("certificate-authority-data") is not None:
        _load_pem(cluster, "certificate-authority-data", x509.load_pem_x509_certificates)


def check_user(user: dict[str, Any]) -> dict[str, Any]:
    """Return the user without empty fields; raise UnusableKubeconfig if it could not sign in."""
    user = {name: value for name, value in user.items() if value not in (None, "", {}, [])}
    if "auth-provider" in user:
        raise UnusableKubeconfig(f"`auth-provider` was removed in Kubernetes 1.26 and is not supported. {TOKEN_FIX}")
    for name in ("token", "tokenFile"):
        if name in user:
            user[name] = _text_value(user, name)
    if "token" in user and not TOKEN.fullmatch(user["token"]):
        raise UnusableKubeconfig(f"`token` contains blanks or invalid characters. {RAW_FIX}")
    if user.keys() & {"client-certificate-data", "client-key-data"}:
        _check_certificate(user)
    if "exec" in user:
        _check_program(user["exec"])
    if not user.keys() & {"token", "tokenFile", "client-certificate-data", "exec"} and not (
        user.get("username") and user.get("password")
    ):
        raise UnusableKubeconfig(
            f"The user of this kubeconfig has no token, certificate or exec plugin and could not sign in. {TOKEN_FIX}"
        )
    for name in user.keys() & {"username", "password"}:
        _text_value(user, name)
    return user


def refuse_local_credentials(user: dict[str, Any]) -> None:
    """Raise UnusableKubeconfig if signing in would run a program or read a file here."""
    for name, why in LOCAL_CREDENTIALS.items():
        if name in user:
            raise UnusableKubeconfig(f"`{name}` {why}, which a pasted kubeconfig may not do. {TOKEN_FIX}")


def _text_value(section: dict[str, Any], name: str) -> str:
    value = section[name]
    if not isinstance(value, str):
        raise UnusableKubeconfig(f"`{name}` must be a text. Put it in quotes.")
    return value.strip()


def _check_certificate(user: dict[str, Any]) -> None:
    """Raise UnusableKubeconfig for a certificate without its key, or with another's."""
    for name, other in (("client-certificate-data", "client-key-data"), ("client-key-data", "client-certificate-data")):
        if name not in user:
            raise UnusableKubeconfig(f"`{other}` is set without `{name}`. Set both or neither.")
    certificate = _load_pem(user, "client-certificate-data", x509.load_pem_x509_certificate)
    key = _load_pem(user, "client-key-data", lambda pem: load_pem_private_key(pem, None))
    if certificate.public_key() != key.public_key():
        raise UnusableKubeconfig(f"`client-key-data` does not match `client-certificate-data`. {RAW_FIX}")


def _load_pem(section: dict[str, Any], name: str, load: Callable[[bytes], Any]) -> Any:
    """Load PEM from a base64 field."""
    text = "".join(_text_value(section, name).split())
    try:
        pem = base64.b64decode(text, validate=True)
    except ValueError:
        raise UnusableKubeconfig(f"`{name}` is not valid base64. {RAW_FIX}") from None
    try:
        return load(pem)
    except TypeError:
        raise UnusableKubeconfig(f"`{name}` is protected by a password, which is not supported. {TOKEN_FIX}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKubeconfig(f"`{name}` contains no readable PEM data. {RAW_FIX}") from None


def _check_program(program: object) -> None:
    given = program if isinstance(program, dict) else {}
    env = [each if isinstance(each, dict) else {} for each in _as_list(given.get("env"))]
    texts = [
        given.get("command") or None,
        given.get("apiVersion") or None,
        *_as_list(given.get("args")),
        *(each.get(part) for each in env for part in ("name", "value")),
    ]
    if not all(isinstance(each, str) and "\0" not in each for each in texts):
        raise UnusableKubeconfig(
            "`exec` must have `command` and `apiVersion`, `args` as a list of texts, and `env` as a list of"
            f" `name` and `value`. {TOKEN_FIX}"
        )


def _as_list(value: object) -> list[Any]:
    """Return a list; any other value becomes a list with an invalid element."""
    return value if isinstance(value, list) else [] if value is None else [None]
