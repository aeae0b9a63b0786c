"""Stripe SDK transport over our own HTTP client: always a timeout, never a silent retry."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from stripe import APIConnectionError, HTTPClient

from ports import http

CALL_S = 6  # a charge makes at most five calls and must return within half a minute


class StripeTransport(HTTPClient):
    name = "gpubroker"

    @cached_property
    def _web(self) -> Any:
        return http.client(timeout_s=CALL_S)

    def request(  # type: ignore[override]  # the SDK's own has one more argument, which it never uses
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        try:
            answer = self._web.request(method, url, headers=headers, content=post_data)
        except http.HttpFailed as failed:
            name = type(failed).__name__  # its text may contain addresses
            raise APIConnectionError(name) from None  # type: ignore[no-untyped-call]
        return answer.content, answer.status_code, answer.headers

    def close(self) -> None:
        self._web.close()
