from django.apps import AppConfig


class PortsConfig(AppConfig):
    name = "ports"
