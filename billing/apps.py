from django.apps import AppConfig

from ports import payments


class BillingConfig(AppConfig):
    name = "billing"

    def ready(self) -> None:
        """Stop the start where settings name no payment gateway or no supplier, not the first payment or invoice."""
        from billing.services.tax import standings  # models are there only now

        payments.gateway()
        standings.supplier()
