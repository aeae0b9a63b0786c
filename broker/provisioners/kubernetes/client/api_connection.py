"""Connect by a kubeconfig with the official client: authentication, TLS, connection pool.

Failures become plain sentences. The client is imported on first use: its import takes seconds that a
process which calls no cluster need not spend.
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

from broker.provisioners.kubernetes.client.api_errors import AccessDenied

POOL_SIZE, MAX_ERROR_LENGTH = 32, 300
# A sign-in program that hangs would block every thread of this process.
SIGN_IN_TIMEOUT_S, KILLED_AFTER_S = 6.0, 1
TIMED_OUT = "process returned 124"  # what `timeout` reports for it
# What the client raises for a kubeconfig it does not expect.
CLIENT_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RuntimeError, HTTPError)


@dataclass(frozen=True)
class ApiConnection:
    """HTTP pool, host and authorization taken from a kubeconfig."""

    pool: urllib3.PoolManager
    host: str
    authorization: Callable[[], str]


def connect_api(kubeconfig: Mapping[str, Any]) -> ApiConnection:
    """Connect by a self-contained kubeconfig.

    Exec plugins and token files are handled by the official client.
    """
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_kube_config_from_dict

    settings = Configuration()
    try:
        with _captured_logs() as messages:
            load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                config_dict=_with_timeout(kubeconfig), client_configuration=settings, persist_config=False
            )
        settings.retries = False
        settings.connection_pool_maxsize = POOL_SIZE
        pool = ApiClient(settings).rest_client.pool_manager
    except (ConfigException, *CLIENT_ERRORS) as error:
        raise _unusable_error(f"{type(error).__name__}: {error}") from error

    def authorization() -> str:
        token = str(settings.auth_settings().get("BearerToken", {}).get("value") or "").strip()
        if not (token.isascii() and token.isprintable()):
            raise _unusable_error("its token contains invalid characters")
        return token

    if not authorization() and not settings.cert_file:
        raise _unusable_error("; ".join(messages) or "its exec plugin returned neither a token nor a certificate")
    return ApiConnection(pool, settings.host, authorization)


def _with_timeout(kubeconfig: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kubeconfig with a time limit on programs that sign in.

    The official client waits for them without limit.
    """
    found = copy.deepcopy(dict(kubeconfig))
    for each in found.get("users", ()):
        program = each.get("user", {}).get("exec")
        if program and "command" in program and shutil.which("timeout"):
            patience = ["-k", str(KILLED_AFTER_S), str(SIGN_IN_TIMEOUT_S)]
            program["args"] = [*patience, program["command"], *(program.get("args") or ())]
            program["command"] = "timeout"
    return found


def _unusable_error(why: str) -> AccessDenied:
    if TIMED_OUT in why:
        why = f"its exec plugin did not finish within {SIGN_IN_TIMEOUT_S:g} s"
    return AccessDenied(f"the kubeconfig cannot be used: {why[:MAX_ERROR_LENGTH]}. Renew the cluster's credentials.")


@contextmanager
def _captured_logs() -> Iterator[list[str]]:
    """Collect what the client only logs, such as a missing or failed exec plugin."""
    messages: list[str] = []

    def hear(record: logging.LogRecord) -> bool:
        if mine := record.module == "kube_config":
            messages.append(record.getMessage())
        return not mine

    logging.getLogger().addFilter(hear)
    try:
        yield messages
    finally:
        logging.getLogger().removeFilter(hear)
