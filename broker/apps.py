from django.apps import AppConfig


class BrokerConfig(AppConfig):
    name = "broker"

    def ready(self) -> None:
        """Stop the start where the setting names no gate, rather than the first launch."""
        from broker.services import gates  # its models are there only now

        gates.load()
