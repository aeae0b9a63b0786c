from django.apps import AppConfig

from ports import payments


class BillingConfig(AppConfig):
    name = "billing"

    def ready(self) -> None:
        """Stop the start where settings name what there is not, rather than the first payment or invoice."""
        from billing.services.dunning import plan  # models are there only now
        from billing.services.tax import standings

        payments.gateway()
        standings.supplier()
        plan.steps()
