from django.apps import AppConfig

from ports import payments


class BillingConfig(AppConfig):
    name = "billing"

    def ready(self) -> None:
        """Stop the start where the setting names no payment gateway, rather than the first payment."""
        payments.gateway()
