from django.apps import AppConfig

from ports import payments


class BillingConfig(AppConfig):
    name = "billing"

    def ready(self) -> None:
        """Fail at startup, not at the first payment or invoice, if settings are invalid."""
        from billing.services.payments.dunning import dunning_plan  # models are loaded only now
        from billing.services.tax import tax_determination

        payments.gateway()
        tax_determination.get_supplier()
        dunning_plan.dunning_stages()
