"""ASGI application of live connections: events and terminals."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

# Models may only be imported once Django is set up.
from web.http.event_stream import EventStreamApp  # noqa: E402
from web.http.terminal import LiveConnectionsApp, TerminalApp  # noqa: E402

application = LiveConnectionsApp(EventStreamApp(), TerminalApp())
