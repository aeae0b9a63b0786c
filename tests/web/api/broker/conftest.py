"""Authenticated API client fixtures."""

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

if TYPE_CHECKING:
    from django.http import HttpResponse

    from tests.simulation import Simulation, TenantContext

_keys = itertools.count()


class Api:
    """JSON API client with a token; `.body` is the parsed response."""

    def __init__(self, token: str) -> None:
        self.client, self.token = Client(), token

    def get(self, path: str, **headers: str) -> Any:
        return self._ask("get", path, None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        headers.setdefault("Idempotency_Key", f"key-{next(_keys)}")
        return self._ask("post", path, body, headers)

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self._ask("patch", path, body, headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self._ask("delete", path, None, headers)

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items() if value}
        answer: HttpResponse = getattr(self.client, method)(
            f"/api/v1/{path}",
            data=body if isinstance(body, bytes) else json.dumps(body) if body is not None else None,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.token}", **named},
        )
        answer.body = json.loads(answer.content) if answer.content else None  # type: ignore[attr-defined]
        return answer


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests.simulation import create_gpus, create_tenant

    create_gpus(2)
    return create_tenant("Kestrel")


@pytest.fixture
def api(kestrel: "TenantContext") -> Api:
    return Api(kestrel.token())


@pytest.fixture
def other_tenant_api(kestrel: "TenantContext") -> Api:
    from tests.simulation import create_tenant

    return Api(create_tenant("Swift").token())
