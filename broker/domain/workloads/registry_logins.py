"""Logins of private image registries, as a container runtime reads them."""

import json
import re
from base64 import b64encode
from dataclasses import dataclass, field

from broker.domain.workloads.image_references import HOST, image_host, is_internal_host

DOCKER_HUB = "docker.io"
DOCKER_HUB_KEY = "https://index.docker.io/v1/"  # the name that container runtimes know Docker Hub by
SERVER = re.compile(rf"(?P<host>{HOST})(?::(?P<port>[0-9]{{1,5}}))?", re.ASCII)
MAX_SERVER_LENGTH, MAX_USERNAME_LENGTH, MAX_PASSWORD_LENGTH = 255, 255, 16_384


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """Login of a registry from a saved secret; without a password it was not read."""

    secret_id: str
    version: int
    server: str = ""
    username: str = ""
    password: str | None = field(default=None, repr=False)

    @property
    def readable(self) -> bool:
        return self.password is not None


def normalize_server(text: str) -> str:
    """Return a registry's host as image references name it."""
    server = text.strip().removeprefix("https://").rstrip("/").lower()
    return DOCKER_HUB if server in ("index.docker.io", "index.docker.io/v1", "registry-1.docker.io") else server


def server_fault(server: str) -> str:
    """Return what is wrong with a registry's host; empty if nothing."""
    found = SERVER.fullmatch(server)
    if found is None or len(server) > MAX_SERVER_LENGTH:
        return "A registry is a host name with an optional port, without a path."
    if found["port"] and not 0 < int(found["port"]) < 65536:
        return f"{found['port']} is not a valid port."
    if is_internal_host(found["host"]):
        return f"{found['host']} is inside the cluster or an IP address; use a registry with a public host name."
    if "." not in found["host"]:
        return "The host name of a registry contains a dot."
    return ""


def login_fault(username: str, password: str) -> str:
    """Return what is wrong with a user name and password; empty if nothing."""
    if not username or len(username) > MAX_USERNAME_LENGTH or ":" in username or not username.isprintable():
        return f"A user name must have 1 to {MAX_USERNAME_LENGTH} printable characters and no colon."
    if not password or len(password) > MAX_PASSWORD_LENGTH or not password.isprintable():
        return f"A password must have 1 to {MAX_PASSWORD_LENGTH:,} printable characters."
    return ""


def image_login_fault(image: str, server: str) -> str:
    """Return why a registry login does not suit an image; empty if it does."""
    host = image_host(image) or DOCKER_HUB
    return "" if host == server else f"The image is pulled from {host}, but the login is for {server}."


def docker_config(login: RegistryLogin) -> str:
    """Return the `.dockerconfigjson` of a login."""
    token = b64encode(f"{login.username}:{login.password or ''}".encode()).decode()
    entry = {"auth": token, "password": login.password or "", "username": login.username}
    key = DOCKER_HUB_KEY if login.server == DOCKER_HUB else login.server
    return json.dumps({"auths": {key: entry}}, sort_keys=True)
