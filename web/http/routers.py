"""URL routes of the API's collections."""

from typing import Any

from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import ViewSetMixin


class ApiRouter(SimpleRouter):
    """Router without trailing slashes, where a PUT on a collection publishes a row."""

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)

    def get_method_map(self, viewset: type[ViewSetMixin], method_map: Any) -> dict[str, str]:
        if ("get", "list") in method_map.items():
            method_map = {**method_map, "put": "publish"}
        return super().get_method_map(viewset, method_map)
