"""The rights that requests to a cluster used."""

import re
from threading import current_thread, main_thread
from typing import Any
from urllib.parse import urlsplit

from broker.provisioners.kubernetes.client import transport
from broker.provisioners.kubernetes.render.rbac import AccessRight

PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v\w+(?:/namespaces/(?P<home>[^/]+))?/(?P<kinds>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>log|exec))?)?$"
)
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


class AccessRecord:
    """Every right that requests made use of."""

    def __init__(self) -> None:
        self.used: set[AccessRight] = set()
        self.denied: list[str] = []
        self.calls: list[str] = []  # in order, but for the agent's

    def note(self, method: str, path: str, query: Any, content_type: str) -> None:
        found = PATH.fullmatch(urlsplit(path).path) or _of_namespace(path)
        if found is None:
            return  # /version and other things that everybody may read
        group, kinds, name = found["group"] or "", found["kinds"], found["name"]
        verb = VERBS.get(method) or ("get" if name else "watch" if (query or {}).get("watch") else "list")
        self.used.add(AccessRight(verb, group, kinds, found["part"] or ""))
        if current_thread() is main_thread() and kinds not in ("nodes", "namespaces"):
            self.calls.append(f"{verb} {kinds}")
        if content_type == transport.APPLY_CONTENT_TYPE:  # it makes what is not there
            self.used.add(AccessRight("create", group, kinds))


def _of_namespace(path: str) -> re.Match[str] | None:
    return re.fullmatch(r"/api/v1/(?P<kinds>namespaces)(?:/(?P<name>[^/]+))?(?P<group>)(?P<part>)", path)
