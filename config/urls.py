"""Every address of the product, wired from the apps."""

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
    path("api/v1/", include("tenants.api.urls")),
    path("api/v1/", include("broker.api.urls")),
    path("api/v1/", include("billing.api.urls")),
    path("webhooks/", include("billing.api.webhooks")),
    path("", include("billing.portal.urls")),
    path("ops/", include("billing.portal.ops.urls")),
    path("", include("broker.portal.urls")),
    path("", include("tenants.portal.urls")),
]
