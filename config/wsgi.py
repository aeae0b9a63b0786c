"""WSGI application of the portal and the API."""

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
application.events_upstream = settings.EVENTS_UPSTREAM  # type: ignore[attr-defined]  # read by config/web_worker.py
# Import all views now, not on the first request. And freeze what is loaded: a full garbage collection that walks it
# would cost 70 ms every few pages.
get_resolver().url_patterns  # noqa: B018
gc.collect()
gc.freeze()
