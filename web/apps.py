"""Register the web layer as a Django app."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """The app of everything that speaks HTTP to people and programs."""

    name = "web"
