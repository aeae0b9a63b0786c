"""What a kubeconfig signs in with: certificates, keys, tokens and programs, held to their shapes before they are kept.

The official client takes most broken ones without a word and then calls as nobody.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)
LASTING = "Give a service account's token: `manage.py kube_setup` makes a lasting one."
RAW = "Copy it as `kubectl config view --raw` prints it."


class Unusable(ValueError):
    """This kubeconfig leads nowhere; the text says what to change in it."""


def check_authority(cluster: dict[str, Any]) -> None:
    """Refuse an authority that no server could be held to."""
    if cluster.get("certificate-authority-data") is not None:
        _decoded(cluster, "certificate-authority-data", x509.load_pem_x509_certificates)


def check_user(user: dict[str, Any]) -> dict[str, Any]:
    """Return the user without what is empty, or raise Unusable where it could not sign in."""
    user = {name: value for name, value in user.items() if value not in (None, "", {}, [])}
    if "auth-provider" in user:
        raise Unusable(
            f"`auth-provider` went out of Kubernetes in 1.26, and runs on no worker of ours. {LASTING}"
        )
    for name in ("token", "tokenFile"):
        if name in user:
            user[name] = _word(user, name)
    if "token" in user and not TOKEN.fullmatch(user["token"]):
        raise Unusable(f"`token` has blanks or letters in it that no token has. {RAW}")
    if user.keys() & {"client-certificate-data", "client-key-data"}:
        _check_certificate(user)
    if "exec" in user:
        _check_program(user["exec"])
    if not user.keys() & {"token", "tokenFile", "client-certificate-data", "exec"} and not (
        user.get("username") and user.get("password")
    ):
        raise Unusable(
            "The user of this kubeconfig has no token, certificate or exec plugin: it could not sign in."
            f" {LASTING}"
        )
    for name in user.keys() & {"username", "password"}:
        _word(user, name)
    return user


def _word(section: dict[str, Any], name: str) -> str:
    value = section[name]
    if not isinstance(value, str):
        raise Unusable(f"`{name}` must be text. Put it in quotes.")
    return value.strip()


def _check_certificate(user: dict[str, Any]) -> None:
    """Refuse a certificate without its key, or with another's."""
    for name, other in (
        ("client-certificate-data", "client-key-data"),
        ("client-key-data", "client-certificate-data"),
    ):
        if name not in user:
            raise Unusable(f"`{other}` is given without `{name}`: give both, or neither.")
    certificate = _decoded(user, "client-certificate-data", x509.load_pem_x509_certificate)
    key = _decoded(user, "client-key-data", lambda pem: load_pem_private_key(pem, None))
    if certificate.public_key() != key.public_key():
        raise Unusable(f"`client-key-data` is not the key of `client-certificate-data`. {RAW}")


def _decoded(section: dict[str, Any], name: str, load: Callable[[bytes], Any]) -> Any:
    """Read PEM out of base64."""
    text = "".join(_word(section, name).split())
    try:
        pem = base64.b64decode(text, validate=True)
    except ValueError:
        raise Unusable(
            f"`{name}` is no whole base64: something of it is missing or too much. {RAW}"
        ) from None
    try:
        return load(pem)
    except TypeError:
        raise Unusable(
            f"`{name}` is locked with a password, which nobody is there to type. {LASTING}"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise Unusable(f"`{name}` holds no PEM that can be read. {RAW}") from None


def _check_program(program: object) -> None:
    given = program if isinstance(program, dict) else {}
    env = [each if isinstance(each, dict) else {} for each in _list(given.get("env"))]
    texts = [
        given.get("command") or None,
        given.get("apiVersion") or None,
        *_list(given.get("args")),
        *(each.get(part) for each in env for part in ("name", "value")),
    ]
    if not all(isinstance(each, str) and "\0" not in each for each in texts):
        raise Unusable(
            "`exec` must name its program: `command` and `apiVersion`, `args` as a list of texts, `env` as a list of"
            f" `name` and `value`. {LASTING}"
        )


def _list(value: object) -> list[Any]:
    """Return a list; what is there and is none counts as one that holds nothing we take."""
    return value if isinstance(value, list) else [] if value is None else [None]
