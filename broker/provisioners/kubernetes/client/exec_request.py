"""Request of a WebSocket to `pods/exec`: its address, credentials and TLS settings."""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.kinds import POD, ObjectRef
from broker.provisioners.kubernetes.client.objects import ApiStatus, decode


def exec_url(
    api: ApiConnection, *, namespace: str, pod: str, container: str, command: Sequence[str], streams: Sequence[str]
) -> str:
    """Return the address that runs a command in a container."""
    asked = [("container", container), *((stream, "true") for stream in streams)]
    query = urlencode([*asked, *(("command", word) for word in command)])
    return f"ws{api.host.removeprefix('http').rstrip('/')}{ObjectRef(POD, pod, namespace).path}/exec?{query}"


def connection_options(api: ApiConnection, token: str) -> dict[str, Any]:
    """Return the options of a WebSocket client that connects as our HTTP client does."""
    proxy = api.pool.proxy
    return {
        "additional_headers": {"Authorization": token} if token else {},
        "user_agent_header": "gpubroker",
        "ssl": _tls_context(api.pool.connection_pool_kw) if api.host.startswith("https:") else None,
        "server_hostname": api.pool.connection_pool_kw.get("server_hostname"),
        "proxy": str(proxy) if proxy else None,  # not what the environment says: our HTTP client does not read it
        "compression": None,
    }


def refusal_message(body: bytes | bytearray | None) -> str:
    """Return the message of a server that did not open the connection; empty without one."""
    try:
        return decode(bytes(body or b""), ApiStatus).message
    except msgspec.DecodeError:
        return ""


def _tls_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS settings of the connection pool for a client that is not urllib3."""
    context = ssl.create_default_context(cafile=settings.get("ca_certs"), cadata=settings.get("ca_cert_data"))
    if settings.get("assert_hostname") is False or settings.get("cert_reqs") == ssl.CERT_NONE:
        context.check_hostname = False
    if settings.get("cert_reqs") == ssl.CERT_NONE:
        context.verify_mode = ssl.CERT_NONE
    if settings.get("cert_file"):
        context.load_cert_chain(settings["cert_file"], settings.get("key_file"))
    return context
