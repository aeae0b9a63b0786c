from django.apps import AppConfig


class BrokerConfig(AppConfig):
    name = "broker"

    def ready(self) -> None:
        """Stop the start where a setting names no gate or no GPU model, rather than the first launch."""
        from broker.services import catalogue, gates  # their models are there only now

        gates.load()
        catalogue.specs()
