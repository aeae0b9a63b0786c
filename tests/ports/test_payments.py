"""The payment gateway setting, and its replacement within a block."""

from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from pydantic import ValidationError

from ports import payments
from ports.payments import GatewayCharge, GatewayOutcome, GatewayRefund, Succeeded

SIMULATED = "billing.gateways.simulated.SimulatedGateway"


class FakeGateway:
    name = "stand"

    def charge(self, charge: GatewayCharge, *, now: object) -> GatewayOutcome:
        return Succeeded("x")

    def withdraw(self, charge: GatewayCharge, *, now: object) -> GatewayOutcome:
        return Succeeded("x")

    def refund(self, back: GatewayRefund, *, now: object) -> GatewayOutcome:
        return Succeeded("y")


def test_an_empty_setting_disables_the_payment_gateway(settings: Any) -> None:
    settings.PAYMENT_GATEWAY = ""
    assert payments.gateway() is None


def test_the_setting_selects_the_payment_gateway(settings: Any) -> None:
    settings.PAYMENT_GATEWAY = SIMULATED
    found = payments.gateway()
    assert found is not None
    assert found.name == "simulated"
    assert payments.gateway() is found


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("billing.gateways.nowhere.Gateway", "No module named"),
        ("billing.gateways.simulated.Nobody", "does not define"),
        ("ports.payments.GatewayCharge", "missing 5 required"),
        ("ports.payments.OutcomeUnknown", "missing 1 required"),
        ("decimal.Decimal", "it has no name or cannot charge, withdraw and refund"),
    ],
)
def test_an_invalid_payment_gateway_setting_stops_the_start(settings: Any, path: str, why: str) -> None:
    settings.PAYMENT_GATEWAY = path
    with pytest.raises(ImproperlyConfigured, match=why) as refused:
        apps.get_app_config("billing").ready()
    assert "leave it empty to collect nothing" in str(refused.value)


def test_a_malformed_payment_gateway_path_is_refused_when_settings_load() -> None:
    from config.env import EnvironmentSettings

    for path in ("SimulatedGateway", "billing/gateways.py", "a..b", "a.b "):
        with pytest.raises(ValidationError, match="payment_gateway"):
            EnvironmentSettings(payment_gateway=path)  # type: ignore[call-arg]


def test_using_gateway_replaces_the_payment_gateway_within_its_block(settings: Any) -> None:
    settings.PAYMENT_GATEWAY = SIMULATED
    outer, inner = FakeGateway(), FakeGateway()
    with payments.using_gateway(outer):
        with payments.using_gateway(inner):
            assert payments.gateway() is inner
        assert payments.gateway() is outer
    found = payments.gateway()
    assert found is not None
    assert found.name == "simulated"
