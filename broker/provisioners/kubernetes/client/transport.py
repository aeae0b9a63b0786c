"""HTTP transport to one cluster's API.

It uses the official client's authentication, TLS and connection pool, with our own timeouts. The client
is imported and connected on first use, so that it is never shared across a fork. Its typed models are
not used: they cost two hundred times what our decoding costs.
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

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.api_connection import ApiConnection, connect_api
from broker.provisioners.kubernetes.client.api_errors import (
    ApiThrottled,
    ObjectConflict,
    ObjectInvalid,
    ObjectMissing,
    error_from_status,
)
from broker.provisioners.kubernetes.client.kinds import Kind, Manifest, ObjectRef, object_ref
from broker.provisioners.kubernetes.client.rate_limit import RateLimiter
from ports import clock, rng

CONNECT_S, RESPONSE_S = 3.0, 6.0  # one call ends well within a worker's claim on its lease
WATCH_SILENCE_S = 90.0  # a watch without a byte for this long is dead: bookmarks come every minute
PAGE = 500
BACK_OFF_S, LONGEST_S = 0.1, 2.0
RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504})
NOT_KUBERNETES = "it does not answer like Kubernetes"
APPLY_CONTENT_TYPE = "application/apply-patch+yaml"
STRATEGIC_CONTENT_TYPE = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_jitter = rng.Rng()
_connect_lock = Lock()  # concurrent imports of the client see it half initialised


class Transport:
    """One cluster's API connection.

    It is cheap to create, and connects when first used and again in every forked process.
    """

    def __init__(
        self,
        kubeconfig: Callable[[], Mapping[str, Any]],
        *,
        connecting: Callable[[Mapping[str, Any]], ApiConnection] = connect_api,
    ) -> None:
        self._kubeconfig, self._connecting = kubeconfig, connecting
        self._connection: ApiConnection | None = None
        self._pid = 0
        self.account = ""  # what the cluster calls us, once asked
        self.pace = RateLimiter()

    def within(self, seconds: float = RESPONSE_S) -> "KubernetesApi":
        """Return the API for a few calls with a common time limit."""
        return KubernetesApi(self, clock.monotonic() + seconds)

    def connection(self) -> ApiConnection:
        with _connect_lock:
            if self._connection is None or self._pid != os.getpid():
                self._connection, self._pid = self._connecting(self._kubeconfig()), os.getpid()
            return self._connection

    def forget(self) -> None:
        """Authenticate again before the next call: a token was rotated or a certificate expired."""
        self._connection = None


@dataclass(frozen=True)
class ApiResponse:
    """A successful response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class KubernetesApi:
    """The API verbs, all of which end at one deadline."""

    transport: Transport
    deadline: float

    def with_deadline(self, seconds: float) -> "KubernetesApi":
        """Return the same API with an earlier deadline."""
        return replace(self, deadline=min(self.deadline, clock.monotonic() + seconds))

    def apply(
        self, manifest: Manifest, *, manager: str, force: bool = False, uid: str = ""
    ) -> objects.ClusterObjectHeader:
        """Apply an object; with `uid`, only if it is still that very object."""
        body = dict(manifest)
        if uid:
            body["metadata"] = {**manifest["metadata"], "uid": uid}
        query = {"fieldManager": manager, "force": str(force).lower()}
        answer = self.send("PATCH", object_ref(manifest).path, query=query, body=body, content_type=APPLY_CONTENT_TYPE)
        return _decoded(answer, objects.ClusterObjectHeader)

    def create(self, manifest: Manifest, *, manager: str) -> objects.ClusterObjectHeader:
        """Create an object; raise ObjectConflict if it exists."""
        ref = object_ref(manifest)
        path = ref.kind.path(ref.namespace)
        answer = self.send("POST", path, query={"fieldManager": manager}, body=manifest)
        return _decoded(answer, objects.ClusterObjectHeader)

    def merge(
        self, ref: ObjectRef, patch: Manifest, *, manager: str, subresource: str = ""
    ) -> objects.ClusterObjectHeader:
        """Change only the fields in `patch`.

        Put metadata.resourceVersion in it to change only the version that was read.
        """
        path = f"{ref.path}/{subresource}" if subresource else ref.path
        kind = "application/merge-patch+json"
        answer = self.send("PATCH", path, query={"fieldManager": manager}, body=patch, content_type=kind)
        return _decoded(answer, objects.ClusterObjectHeader)

    def let_go(self, ref: ObjectRef, *, finalizer: str, uid: str) -> None:
        """Remove one finalizer from exactly the object with this uid.

        All other finalizers stay; an object that is gone is not an error.
        """
        patch = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer]}}
        try:
            self.send("PATCH", ref.path, body=patch, content_type=STRATEGIC_CONTENT_TYPE)
        except (ObjectMissing, ObjectConflict):
            return
        except ObjectInvalid as error:
            if "metadata.uid" not in str(error):  # then it is a successor of the same name
                raise

    def get(self, ref: ObjectRef) -> bytes | None:
        """Return an object, or None when it does not exist."""
        try:
            return self.send("GET", ref.path).body
        except ObjectMissing:
            return None

    def list_all(
        self, kind: Kind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> tuple[list[msgspec.Raw], str]:
        """Return every object of a kind and the list's version."""
        pages = list(self.pages(kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only))
        return [item for items, _ in pages for item in items], pages[-1][1]

    def pages(
        self, kind: Kind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Iterator[tuple[list[msgspec.Raw], str]]:
        """Yield the same page by page, for callers that need not hold everything."""
        query = {"limit": str(PAGE), "labelSelector": labels, "fieldSelector": fields}
        accept = METADATA_ONLY if metadata_only else "application/json"
        going_on = True
        while going_on:
            answer = self.send("GET", kind.path(namespace), query=query, accept=accept)
            page = _decoded(answer, objects.KubernetesListPage)
            if not page.metadata.resource_version:  # an empty list without a version does not prove that nothing exists
                raise ClusterUnreachable(f"{NOT_KUBERNETES}: the response is not a list")
            yield page.items or [], page.metadata.resource_version
            query["continue"] = page.metadata.continue_
            going_on = bool(page.metadata.continue_)

    def delete(self, ref: ObjectRef, *, uid: str, propagation: str = "Foreground") -> None:
        """Delete exactly the object with this uid, never a successor of its name.

        An object that is gone is no error.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation,
        }
        try:
            self.send("DELETE", ref.path, body=options)
        except ObjectMissing:
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
        is_json: bool = True,
        retried: bool = True,
    ) -> ApiResponse:
        """Send a request, retry while the server is busy, and raise unsuccessful responses.

        Every call we make may be repeated: an apply states the wanted result, a delete names the uid,
        and a second create is told that the first one worked.
        """
        pause, renewed = BACK_OFF_S, False
        error: Exception = ApiThrottled("the time limit was reached before the request")
        while True:
            left = self.deadline - clock.monotonic()
            if left <= 0:  # at once, or because the pause before the retry took longer than planned
                raise error
            self.transport.pace.take(self.deadline)
            try:
                with self._open(method, path, query, body, content_type, accept, left) as response:
                    answer = ApiResponse(response.status, response.read(), response.headers)
            except ClusterUnreachable as no_response:
                error = no_response
                self._rest(_backoff(pause), error)
                pause *= 2
                continue
            if answer.status < 300:
                return _check_json(answer) if is_json else answer
            if answer.status < 400:  # redirects are not followed: a token is only for its own server
                raise ClusterUnreachable(
                    f"{NOT_KUBERNETES}: HTTP {answer.status} to {answer.headers.get('Location', 'nowhere')}"[:200]
                )
            error = error_from_status(answer.status, _status(answer.body))
            if answer.status == 401 and not renewed:
                self.transport.forget()
                renewed = True
            elif answer.status in RETRIED_STATUSES and retried:
                wanted = _retry_after(answer.headers)
                if isinstance(error, ApiThrottled):
                    self.transport.pace.slow_down(wanted)
                if wanted:
                    error = ApiThrottled(str(error), again_in_s=wanted)
                # Never earlier than asked; a little later, so that clients do not retry together.
                self._rest(wanted * _jitter.uniform(1.0, 1.1) if wanted else _backoff(pause), error)
                pause *= 2
            else:
                raise error

    def account_name(self) -> str:
        """Return the name of the account that we are in this cluster."""
        if not self.transport.account:
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            answer = self.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body)
            self.transport.account = _decoded(answer, objects.SelfSubjectReview).status.user_info.username
        return self.transport.account

    def read_text(self, path: str, query: Mapping[str, str]) -> bytes:
        """Return a response that is not JSON, such as a container's log.

        It is not tried again: the server passes on what a node answers, and the next read comes soon.
        """
        return self.send("GET", path, query=query, accept="*/*", is_json=False, retried=False).body

    def watch(
        self, kind: Kind, *, version: str, labels: str = "", seconds: float, opened: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        """Yield the lines of a watch until the server ends it.

        Raises ClusterUnreachable when it goes silent or breaks. `opened` is called as soon as the server has
        accepted the watch: the first line may take long.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(seconds)),
            "labelSelector": labels,
            "resourceVersion": version,
        }
        with self._open("GET", kind.path(), query, None, "", "application/json", WATCH_SILENCE_S) as response:
            if response.status >= 400:
                raise error_from_status(response.status, _status(response.read()))
            if response.status >= 300:
                raise ClusterUnreachable(f"{NOT_KUBERNETES}: HTTP {response.status}")
            opened()
            yield from _lines(response)

    def _rest(self, seconds: float, error: Exception) -> None:
        """Pause before a retry, or raise the error if the deadline would pass."""
        if clock.monotonic() + seconds >= self.deadline:
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
        """Send one request; raise every network failure as ClusterUnreachable."""
        connection = self.transport.connection()
        wanted = urlencode({name: value for name, value in (query or {}).items() if value})
        headers = {"Accept": accept, "User-Agent": "gpubroker"}
        if token := connection.authorization():
            headers["Authorization"] = token
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = connection.pool.request(
                method,
                f"{connection.host}{path}" + (f"?{wanted}" if wanted else ""),
                body=None if body is None else msgspec.json.encode(body),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=min(CONNECT_S, read_s), read=read_s),
            )
        except (HTTPError, OSError) as error:
            raise ClusterUnreachable(_error_text(error)) from error
        try:
            yield response
        except (HTTPError, OSError) as error:
            response.close()
            raise ClusterUnreachable(_error_text(error)) from error
        except BaseException:
            response.close()  # half read: the connection cannot be reused
            raise
        else:
            response.release_conn()


def _check_json(answer: ApiResponse) -> ApiResponse:
    """Return a response that may be an object; raise ClusterUnreachable for anything else.

    A sign-in page of something else also comes with a success status.
    """
    if not answer.body.lstrip().startswith(b"{"):
        raise ClusterUnreachable(f"{NOT_KUBERNETES}: {answer.body[:100].decode(errors='replace')!r}")
    return answer


def _decoded(answer: ApiResponse, kind: type[objects.T]) -> objects.T:
    try:
        return objects.decode(answer.body, kind)
    except msgspec.DecodeError as error:
        raise ClusterUnreachable(f"{NOT_KUBERNETES}: {error}") from error


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Split a stream into lines; network chunks do not match them."""
    rest = b""
    for chunk in response.stream(65536, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)


def _backoff(pause: float) -> float:
    return min(pause, LONGEST_S) * _jitter.uniform(0.5, 1.0)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds in Retry-After; 0 for a date or anything else."""
    seconds = headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _status(body: bytes) -> objects.ApiStatus:
    """Decode the server's refusal; a proxy in between may send something else."""
    try:
        return objects.decode(body, objects.ApiStatus)
    except msgspec.DecodeError:
        return objects.ApiStatus(message=body[:200].decode(errors="replace"))


def _error_text(error: Exception) -> str:
    """Return a short error text, without the object address in the library's message."""
    return f"{type(error).__name__}: {str(error).split('>: ')[-1]}"[:200]
