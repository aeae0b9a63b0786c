"""A test's own raw client of a cluster, without retries."""

import json
import ssl
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Object = dict[str, Any]
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Refused(Exception):
    """Refusal of a request by the cluster."""

    def __init__(self, status: int, body: Object) -> None:
        self.status, self.body = status, body
        self.reason, self.words = str(body.get("reason", "")), str(body.get("message", ""))
        super().__init__(f"{status} {self.reason}: {self.words}")


def _context(cluster: Mapping[str, str], user: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:  # the module ssl reads a client's key from files only
            for name in ("certificate", "key"):
                Path(folder, name).write_bytes(b64decode(user[f"client-{name}-data"]))
            context.load_cert_chain(Path(folder, "certificate"), Path(folder, "key"))
    return context


class Api:
    """Client of one user for one cluster."""

    def __init__(self, kubeconfig: Object) -> None:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        self.server = cluster["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._pool = urllib3.PoolManager(ssl_context=_context(cluster, user), maxsize=16, block=False, retries=False)
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    def say(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json", **query: object
    ) -> Object:
        """Send one request and return the answer, or raise Refused."""
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": kind, "Accept": "application/json"}
        answer = self._pool.request(method, url, body=data, headers=headers, timeout=30)
        try:
            said = json.loads(answer.data) if answer.data else {}
        except ValueError:
            said = {"message": answer.data.decode(errors="replace")}
        if answer.status >= 400:
            raise Refused(answer.status, said if isinstance(said, dict) else {"message": str(said)})
        return said if isinstance(said, dict) else {"message": said}

    def get(self, path: str, **query: object) -> Object:
        return self.say("GET", path, **query)

    def items(self, path: str, **query: object) -> list[Object]:
        return list(self.get(path, **query)["items"])

    def find(self, path: str) -> Object | None:
        """Return an object, or None when there is none of that name."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def patch(self, path: str, body: object, *, how: str = "merge", **query: object) -> Object:
        return self.say("PATCH", path, body, kind=PATCHES[how], **query)

    def delete(self, path: str, body: object = None, **query: object) -> Object:
        return self.say("DELETE", path, body, **query)

    def create(self, manifest: Object) -> Object:
        """Create an object of any kind that the cluster knows."""
        return self.say("POST", self.path(manifest, named=False), manifest)

    def apply(self, manifest: Object, *, manager: str = "tests", force: bool = True) -> Object:
        """Apply an object of any kind on the server's side."""
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self.patch(self.path(manifest), manifest, how="apply", **query)

    def path(self, manifest: Object, *, named: bool = True) -> str:
        """Return the path of an object."""
        version = manifest["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if manifest["kind"] not in self._plurals.get(version, {}):
            self._plurals[version] = {
                found["kind"]: (found["name"], found["namespaced"])
                for found in self.get(root)["resources"]
                if "/" not in found["name"]
            }
        plural, namespaced = self._plurals[version][manifest["kind"]]
        if namespaced:
            root += f"/namespaces/{manifest['metadata'].get('namespace', 'default')}"
        return f"{root}/{plural}/{manifest['metadata']['name']}" if named else f"{root}/{plural}"

    def watch(self, path: str, *, seconds: int = 30, **query: object) -> Iterator[Object]:
        """Yield the events below a path until the server ends the stream."""
        options = urlencode({"watch": "true", "timeoutSeconds": seconds, **query})
        answer = self._pool.request(
            "GET",
            f"{self.server}{path}?{options}",
            headers=self._headers,
            preload_content=False,
            timeout=seconds + 5,
        )
        try:
            rest = b""
            for piece in answer.stream(2**16):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        finally:
            answer.close()

    def until(self, path: str, right: Callable[[Object], bool], *, within: float = 90) -> Object:
        """Read an object until a condition holds, or report its state."""
        end, seen = time.monotonic() + within, None
        while time.monotonic() < end:
            seen = self.find(path)
            if seen is not None and right(seen):
                return seen
            time.sleep(0.03)
        raise AssertionError(f"{path} is not right after {within} s: {json.dumps(seen, indent=1)[:4000]}")

    def until_gone(self, path: str, *, within: float = 90) -> None:
        """Wait until nothing of that name is left."""
        end, seen = time.monotonic() + within, None
        while time.monotonic() < end:
            seen = self.find(path)
            if seen is None:
                return
            time.sleep(0.03)
        raise AssertionError(f"{path} is still there after {within} s: {json.dumps(seen, indent=1)[:4000]}")
