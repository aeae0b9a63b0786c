from django.apps import AppConfig


class BrokerConfig(AppConfig):
    name = "broker"

    def ready(self) -> None:
        """Fail at start-up when a setting names an unknown gate or GPU model."""
        from broker.services.inventory import gpu_catalogue
        from broker.services.leases import lease_requests  # imported here because models must be loaded first

        lease_requests.load_gates()
        gpu_catalogue.gpu_model_specs()
