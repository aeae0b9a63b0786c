"""The small process that keeps browsers and programs up to date: server-sent events, and nothing else."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from config.events import Stream  # noqa: E402  # models may only be imported once Django is set up

application = Stream()
