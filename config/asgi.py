"""ASGI application for server-sent events only."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from web.http.event_stream import EventStreamApp  # noqa: E402  # models may only be imported once Django is set up

application = EventStreamApp()
