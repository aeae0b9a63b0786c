"""URL routes of the API's collections."""

from rest_framework.routers import SimpleRouter


class ApiRouter(SimpleRouter):
    """Router without trailing slashes."""

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)
