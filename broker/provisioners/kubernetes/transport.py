"""Raw bytes to and from one cluster: the official client's authentication, TLS and pool, our own patience.

The client is imported and connected on first use, so that it is never shared across a fork, and its typed models
are never touched: they cost two hundred times what decoding costs.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import objects
from broker.provisioners.kubernetes.connecting import Connection, connect
from broker.provisioners.kubernetes.kinds import Kind, Manifest, Ref, ref_of
from broker.provisioners.kubernetes.pace import Pace
from broker.provisioners.kubernetes.refusals import Conflict, Invalid, Missing, Throttled, refusal
from ports import chance, clock

CONNECT_S, ANSWER_S = 3.0, 6.0  # one call ends well within a worker's claim on its lease
SILENCE_S = 90.0  # a watch without a byte for this long is dead: bookmarks come every minute
PAGE = 500
BACK_OFF_S, LONGEST_S = 0.1, 2.0
AGAIN = frozenset({429, 500, 502, 503, 504})
STRANGE = "it does not answer like Kubernetes"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_jitter = chance.Chance()
_one_at_a_time = Lock()  # two threads that import the client at once each get half of it


class Transport:
    """One cluster's API. Cheap to make; connects when first used, and again in every forked process."""

    def __init__(
        self,
        kubeconfig: Callable[[], Mapping[str, Any]],
        *,
        connecting: Callable[[Mapping[str, Any]], Connection] = connect,
    ) -> None:
        self._kubeconfig, self._connecting = kubeconfig, connecting
        self._connection: Connection | None = None
        self._pid = 0
        self.pace = Pace()

    def within(self, seconds: float = ANSWER_S) -> "Api":
        """Return the API for a few calls that together take at most this long."""
        return Api(self, clock.monotonic() + seconds)

    def connection(self) -> Connection:
        with _one_at_a_time:
            if self._connection is None or self._pid != os.getpid():
                self._connection, self._pid = self._connecting(self._kubeconfig()), os.getpid()
            return self._connection

    def forget(self) -> None:
        """Authenticate anew before the next call: a token was rotated, or a certificate ran out."""
        self._connection = None


@dataclass(frozen=True)
class Answer:
    """A successful answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Api:
    """The verbs, all of which end at one moment."""

    transport: Transport
    ends: float

    def until(self, seconds: float) -> "Api":
        """Return the same with a nearer end."""
        return replace(self, ends=min(self.ends, clock.monotonic() + seconds))

    def apply(self, manifest: Manifest, *, manager: str, force: bool = False, uid: str = "") -> objects.Thing:
        """Have an object be as we want it. With `uid`, only if it is still that very object."""
        body = dict(manifest)
        if uid:
            body["metadata"] = {**manifest["metadata"], "uid": uid}
        query = {"fieldManager": manager, "force": str(force).lower()}
        answer = self.send("PATCH", ref_of(manifest).path, query=query, body=body, content_type=APPLY)
        return _decoded(answer, objects.Thing)

    def create(self, manifest: Manifest, *, manager: str) -> objects.Thing:
        """Make an object that is not there; Conflict when it is."""
        ref = ref_of(manifest)
        path = ref.kind.path(ref.namespace)
        answer = self.send("POST", path, query={"fieldManager": manager}, body=manifest)
        return _decoded(answer, objects.Thing)

    def merge(self, ref: Ref, patch: Manifest, *, manager: str, subresource: str = "") -> objects.Thing:
        """Change the fields in `patch` alone; put metadata.resourceVersion in it to change only what was read."""
        path = f"{ref.path}/{subresource}" if subresource else ref.path
        kind = "application/merge-patch+json"
        answer = self.send("PATCH", path, query={"fieldManager": manager}, body=patch, content_type=kind)
        return _decoded(answer, objects.Thing)

    def let_go(self, ref: Ref, *, finalizer: str, uid: str) -> None:
        """Take one finalizer off exactly the object with this uid and leave all others; what is gone is well."""
        patch = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer]}}
        try:
            self.send("PATCH", ref.path, body=patch, content_type=STRATEGIC)
        except (Missing, Conflict):
            return
        except Invalid as error:
            if "metadata.uid" not in str(error):  # else it is a successor of the same name
                raise

    def get(self, ref: Ref) -> bytes | None:
        """Return an object, or None when it is not there."""
        try:
            return self.send("GET", ref.path).body
        except Missing:
            return None

    def list_all(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> tuple[list[msgspec.Raw], str]:
        """Return every object of a kind and the version at which that was so."""
        pages = list(
            self.pages(kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only)
        )
        return [item for items, _ in pages for item in items], pages[-1][1]

    def pages(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Iterator[tuple[list[msgspec.Raw], str]]:
        """Yield the same page by page, for whoever need not have all of it at once."""
        query = {"limit": str(PAGE), "labelSelector": labels, "fieldSelector": fields}
        accept = METADATA_ONLY if metadata_only else "application/json"
        going_on = True
        while going_on:
            answer = self.send("GET", kind.path(namespace), query=query, accept=accept)
            page = _decoded(answer, objects.Page)
            if (
                not page.metadata.resource_version
            ):  # an empty list of nobody's is no proof that nothing is there
                raise Unanswered(f"{STRANGE}: it sent no list")
            yield page.items or [], page.metadata.resource_version
            query["continue"] = page.metadata.continue_
            going_on = bool(page.metadata.continue_)

    def delete(self, ref: Ref, *, uid: str, propagation: str = "Foreground") -> None:
        """Delete exactly the object with this uid, never a successor of its name; what is gone is well."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation,
        }
        try:
            self.send("DELETE", ref.path, body=options)
        except Missing:
            return

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Ask, again and again while the server is only busy, and raise what it answers instead of a success.

        Every call we make may be repeated: an apply says how it shall be, a delete names the uid, and a second
        create is told that the first one worked.
        """
        pause, renewed = BACK_OFF_S, False
        error: Exception = Throttled("no time was left to ask")
        while True:
            left = self.ends - clock.monotonic()
            if left <= 0:  # at once, or because the rest before asking again took longer than it should
                raise error
            self.transport.pace.take(self.ends)
            try:
                with self._open(method, path, query, body, content_type, accept, left) as response:
                    answer = Answer(response.status, response.read(), response.headers)
            except Unanswered as silence:
                error = silence
                self._rest(_backed_off(pause), error)
                pause *= 2
                continue
            if answer.status < 300:
                return _from_kubernetes(answer)
            if answer.status < 400:  # none is followed: a token is for the server that it was given to
                raise Unanswered(
                    f"{STRANGE}: HTTP {answer.status} to {answer.headers.get('Location', 'nowhere')}"[:200]
                )
            error = refusal(answer.status, _status(answer.body))
            if answer.status == 401 and not renewed:
                self.transport.forget()
                renewed = True
            elif answer.status in AGAIN:
                asked = _retry_after(answer.headers)
                if isinstance(error, Throttled):
                    self.transport.pace.slow_down(asked)
                if asked:
                    error = Throttled(str(error), again_in_s=asked)
                # Never before it said; a little after, so that not all come back at once.
                self._rest(asked * _jitter.uniform(1.0, 1.1) if asked else _backed_off(pause), error)
                pause *= 2
            else:
                raise error

    def watch(
        self,
        kind: Kind,
        *,
        version: str,
        labels: str = "",
        seconds: float,
        opened: Callable[[], None] = lambda: None,
    ) -> Iterator[bytes]:
        """Yield the lines of a watch until the server ends it; Unanswered when it goes silent or breaks.

        `opened` is called as soon as the server has agreed: lines may be long in coming.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(seconds)),
            "labelSelector": labels,
            "resourceVersion": version,
        }
        with self._open("GET", kind.path(), query, None, "", "application/json", SILENCE_S) as response:
            if response.status >= 400:
                raise refusal(response.status, _status(response.read()))
            if response.status >= 300:
                raise Unanswered(f"{STRANGE}: HTTP {response.status}")
            opened()
            yield from _lines(response)

    def _rest(self, seconds: float, error: Exception) -> None:
        """Wait a moment before asking again, or give up when the moment lies past the end."""
        if clock.monotonic() + seconds >= self.ends:
            raise error
        clock.sleep(seconds)

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Manifest | None,
        content_type: str,
        accept: str,
        read_s: float,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Send one request; whatever goes wrong on the wire is silence."""
        connection = self.transport.connection()
        asked = urlencode({name: value for name, value in (query or {}).items() if value})
        headers = {"Accept": accept, "User-Agent": "gpubroker"}
        if token := connection.authorization():
            headers["Authorization"] = token
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = connection.pool.request(
                method,
                f"{connection.host}{path}" + (f"?{asked}" if asked else ""),
                body=None if body is None else msgspec.json.encode(body),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=min(CONNECT_S, read_s), read=read_s),
            )
        except (HTTPError, OSError) as error:
            raise Unanswered(_plain(error)) from error
        try:
            yield response
        except (HTTPError, OSError) as error:
            response.close()
            raise Unanswered(_plain(error)) from error
        except BaseException:
            response.close()  # half read: of no use to the next request
            raise
        else:
            response.release_conn()


def _from_kubernetes(answer: Answer) -> Answer:
    """Let pass what may be an object: a page to sign in to something else is sent with a success, too."""
    if not answer.body.lstrip().startswith(b"{"):
        raise Unanswered(f"{STRANGE}: {answer.body[:100].decode(errors='replace')!r}")
    return answer


def _decoded(answer: Answer, kind: type[objects.T]) -> objects.T:
    try:
        return objects.read(answer.body, kind)
    except msgspec.DecodeError as error:
        raise Unanswered(f"{STRANGE}: {error}") from error


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Cut a stream into lines; what the network calls chunks has nothing to do with them."""
    rest = b""
    for chunk in response.stream(65536, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)


def _backed_off(pause: float) -> float:
    return min(pause, LONGEST_S) * _jitter.uniform(0.5, 1.0)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds a server asks us to wait; a date or nonsense counts as nothing said."""
    said = headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else 0.0


def _status(body: bytes) -> objects.Status:
    """Read the server's refusal; a proxy in between may answer in something else."""
    try:
        return objects.read(body, objects.Status)
    except msgspec.DecodeError:
        return objects.Status(message=body[:200].decode(errors="replace"))


def _plain(error: Exception) -> str:
    """Say what broke, without the object's address that the library's own words carry."""
    return f"{type(error).__name__}: {str(error).split('>: ')[-1]}"[:200]
