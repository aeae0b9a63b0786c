"""Every address of the product, wired from the apps."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from config import health, openapi
from config.style import StylePage

handler400 = "config.problems.bad_request"
handler403 = "config.problems.forbidden"
handler404 = "config.problems.not_found"
handler500 = "config.problems.surprise"

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.health, name="health"),
    path("ready", health.ready, name="ready"),
    path("metrics", health.figures, name="metrics"),
    path("api/v1/openapi.json", openapi.openapi, name="openapi"),
    path("style/", StylePage.as_view(), name="style"),
    *(
        path(prefix, include(rooms))
        for prefix, rooms in (
            ("api/v1/", "tenants.api.urls"),
            ("api/v1/", "broker.api.urls"),
            ("api/v1/", "billing.api.urls"),
            ("", "billing.portal.urls"),
            ("ops/", "billing.portal.ops.urls"),
            ("", "broker.portal.urls"),
            ("", "tenants.portal.urls"),
        )
        if find_spec(rooms)  # until every room is there
    ),
]
