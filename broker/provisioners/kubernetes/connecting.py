"""The official client's reading of a kubeconfig: authentication, TLS and a pool, and plain words where it fails.

The client is imported on first use: it takes seconds that a process which asks no cluster need not spend.
"""

import copy
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from broker.provisioners.kubernetes.refusals import Denied

POOL, LONGEST_WHY = 32, 300
# A program that signs in and hangs would hold up whoever waits for it, and that is everybody of this process.
SIGNS_IN_WITHIN_S, KILLED_AFTER_S = 6.0, 1
CUT_SHORT = "process returned 124"  # what `timeout` says for it
# What the client raises for a kubeconfig that is not as it expects.
BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RuntimeError,
    HTTPError,
)


@dataclass(frozen=True)
class Connection:
    """What the official client made of a kubeconfig: a pool with its TLS, and who we say we are."""

    pool: urllib3.PoolManager
    host: str
    authorization: Callable[[], str]


def connect(kubeconfig: Mapping[str, Any]) -> Connection:
    """Connect by a kubeconfig with everything inside; exec plugins and token files are the client's business."""
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_kube_config_from_dict

    settings = Configuration()
    try:
        with _overheard() as said:
            load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                config_dict=_bounded(kubeconfig), client_configuration=settings, persist_config=False
            )
        settings.retries = False
        settings.connection_pool_maxsize = POOL
        pool = ApiClient(settings).rest_client.pool_manager
    except (ConfigException, *BROKEN) as error:
        raise _unusable(f"{type(error).__name__}: {error}") from error

    def authorization() -> str:
        token = str(settings.auth_settings().get("BearerToken", {}).get("value") or "").strip()
        if not (token.isascii() and token.isprintable()):
            raise _unusable("its token has characters that no token has")
        return token

    if not authorization() and not settings.cert_file:
        raise _unusable("; ".join(said) or "it gives neither a token nor a certificate")
    return Connection(pool, settings.host, authorization)


def _bounded(kubeconfig: Mapping[str, Any]) -> dict[str, Any]:
    """Give the programs that sign in so much time and no more: the official client waits for them for ever."""
    found = copy.deepcopy(dict(kubeconfig))
    for each in found.get("users", ()):
        program = each.get("user", {}).get("exec")
        if program and "command" in program and shutil.which("timeout"):
            patience = ["-k", str(KILLED_AFTER_S), str(SIGNS_IN_WITHIN_S)]
            program["args"] = [*patience, program["command"], *(program.get("args") or ())]
            program["command"] = "timeout"
    return found


def _unusable(why: str) -> Denied:
    if CUT_SHORT in why:
        why = f"the program that signs in did not end within {SIGNS_IN_WITHIN_S:g} s"
    return Denied(
        f"the kubeconfig cannot be used: {why[:LONGEST_WHY]}. Register the cluster's credentials anew."
    )


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Take down what the client only logs: that a program which signs in is not there, or failed."""
    said: list[str] = []

    def hear(record: logging.LogRecord) -> bool:
        if mine := record.module == "kube_config":
            said.append(record.getMessage())
        return not mine

    logging.getLogger().addFilter(hear)
    try:
        yield said
    finally:
        logging.getLogger().removeFilter(hear)
