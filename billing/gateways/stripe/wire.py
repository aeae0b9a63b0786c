"""The SDK's calls over the product's own HTTP client: every one has a timeout, and none is repeated unseen."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from stripe import APIConnectionError, HTTPClient

from ports import web

CALL_S = 6  # a charge is at most five calls, and has to answer within half a minute


class Wire(HTTPClient):
    name = "gpubroker"

    @cached_property
    def _web(self) -> Any:
        return web.client(timeout_s=CALL_S)

    def request(  # type: ignore[override]  # the SDK's own hands it one argument more, and never uses it
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        try:
            answer = self._web.request(method, url, headers=headers, content=post_data)
        except web.Failed as failed:
            name = type(failed).__name__  # its text may name addresses
            raise APIConnectionError(name) from None  # type: ignore[no-untyped-call]
        return answer.content, answer.status_code, answer.headers

    def close(self) -> None:
        self._web.close()
