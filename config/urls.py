"""Root URL configuration."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from config import health
from web.http import openapi
from web.ui.styleguide import StyleguideView

handler400 = "web.http.errors.bad_request"
handler403 = "web.http.errors.forbidden"
handler404 = "web.http.errors.not_found"
handler500 = "web.http.errors.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.health, name="health"),
    path("ready", health.ready, name="ready"),
    path("metrics", health.metrics_view, name="metrics"),
    path("api/v1/openapi.json", openapi.serve_openapi, name="openapi"),
    path("styleguide/", StyleguideView.as_view(), name="styleguide"),
    path("api/v1/", include("web.api.urls.tenants")),
    path("api/v1/", include("web.api.urls.broker")),
    path("api/v1/", include("web.api.urls.billing")),
    path("webhooks/", include("web.api.stripe_webhook")),
    path("", include("web.portal.urls")),
    path("ops/", include("web.portal.operators.urls")),
    path("", include("web.portal.operators.fleet.urls")),
    path("", include("web.portal.account.urls")),
]
if settings.LOCAL_MAIL:
    urlpatterns.append(path("local-mail/", include("web.portal.local_mail.urls")))
