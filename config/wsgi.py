"""The portal and the API."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# All views are read now, not by the first visitor. And what is loaded stays for good: a full collection that walks it
# each time costs every few pages 70 ms.
get_resolver().url_patterns  # noqa: B018
gc.collect()
gc.freeze()
