"""Logins of private image registries, as a container runtime reads them."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

from broker.domain.workloads.image_references import HOST, image_host, is_internal_host

DOCKER_HUB = "docker.io"
DOCKER_HUB_KEY = "https://index.docker.io/v1/"  # the name that container runtimes know Docker Hub by
SERVER = re.compile(rf"(?P<host>{HOST})(?::(?P<port>[0-9]{{1,5}}))?", re.ASCII)
# Websites where people look for images, and the registries that serve them.
REGISTRIES_OF_WEBSITES = {
    "hub.docker.com": DOCKER_HUB,
    "docker.com": DOCKER_HUB,
    "github.com": "ghcr.io",
    "gitlab.com": "registry.gitlab.com",
    "ngc.nvidia.com": "nvcr.io",
    "catalog.ngc.nvidia.com": "nvcr.io",
}
# User names of Google's registries, whose password is the key file of a service account.
JSON_KEY_USER, JSON_KEY_BASE64_USER = "_json_key", "_json_key_base64"
ENTER_HOST = "Enter a host such as ghcr.io or registry.example:5000."
ENTER_LOGIN = "Enter what docker login accepts."
MAX_SERVER_LENGTH, MAX_USERNAME_LENGTH, MAX_PASSWORD_LENGTH = 255, 255, 16_384


@dataclass(frozen=True, slots=True)
class LoginFault:
    """What is wrong with a registry's login, in which field, and what to do."""

    field: str
    text: str
    fix: str


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
    server = re.sub(r"^https?://", "", text.strip().lower()).rstrip("/")
    return DOCKER_HUB if re.fullmatch(r"(?:index\.docker\.io|registry-1\.docker\.io)(?:/v[12])?", server) else server


def server_fault(server: str) -> LoginFault | None:
    """Return what is wrong with a registry's host, or None."""
    host, has_path, _ = server.partition("/")
    if registry := REGISTRIES_OF_WEBSITES.get(host.removeprefix("www.")):
        return LoginFault(
            "registry", f"{host} is a website; its images are pulled from {registry}.", f"Use {registry}."
        )
    if has_path and len(server) <= MAX_SERVER_LENGTH and not server_fault(host):
        text = f"A registry is a host name without a path, and {server} has one."
        return LoginFault("registry", text, f"Use {host}. The login holds for all images of that host.")
    found = SERVER.fullmatch(server)
    if found is None or len(server) > MAX_SERVER_LENGTH:
        text = "A registry is a host name with an optional port, without a path."
    elif found["port"] and not 0 < int(found["port"]) < 65536:
        text = f"{found['port']} is not a valid port."
    elif is_internal_host(found["host"]):
        text = f"{found['host']} is inside the cluster or an IP address; use a registry with a public host name."
    elif "." not in found["host"]:
        text = "The host name of a registry contains a dot."
    else:
        return None
    return LoginFault("registry", text, ENTER_HOST)


def normalize_password(username: str, password: str) -> str:
    """Return a password without the line breaks that base64 programs print."""
    return "".join(password.split()) if username == JSON_KEY_BASE64_USER else password


def login_fault(username: str, password: str) -> LoginFault | None:
    """Return what is wrong with a user name or password, or None."""
    if not username or len(username) > MAX_USERNAME_LENGTH or ":" in username or not username.isprintable():
        text = f"A user name must have 1 to {MAX_USERNAME_LENGTH} printable characters and no colon."
        return LoginFault("username", text, ENTER_LOGIN)
    if username in (JSON_KEY_USER, JSON_KEY_BASE64_USER):
        return _key_file_fault(username, password)
    if not password or len(password) > MAX_PASSWORD_LENGTH or not password.isprintable():
        text = f"A password must have 1 to {MAX_PASSWORD_LENGTH:,} printable characters."
        fix = f"For the JSON key of a Google service account, the user name is {JSON_KEY_USER}."
        return LoginFault("password", text, fix if password.lstrip().startswith("{") else ENTER_LOGIN)
    return None


def _key_file_fault(username: str, password: str) -> LoginFault | None:
    """Return what is wrong with a key file as a password; it has several lines."""
    if len(password) > MAX_PASSWORD_LENGTH:
        text = f"A password must have 1 to {MAX_PASSWORD_LENGTH:,} characters."
        return LoginFault("password", text, "Paste the key file of a service account.")
    try:
        text = password if username == JSON_KEY_USER else b64decode(password, validate=True).decode()
        is_key = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_key = False
    if is_key:
        return None
    if username == JSON_KEY_USER:
        fix = (
            f"Paste the whole key file, with its braces. For a file in base64, the user name is {JSON_KEY_BASE64_USER}."
        )
        return LoginFault("password", f"The password of {username} is the JSON key of a service account.", fix)
    fix = f"Paste what `base64 key.json` prints. For the file itself, the user name is {JSON_KEY_USER}."
    return LoginFault("password", f"The password of {username} is a JSON key in base64.", fix)


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
