"""Refused chart values."""

from typing import Any

import pytest

from tests.chart.rendering import ADDRESS, Refused, text

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"web": {"replicas": 0}}, "/web/replicas", "got 0, want 1"),
    ({"web": {"replica": 3}}, "/web", "'replica' not allowed"),
    ({"wbe": {}}, "", "'wbe' not allowed"),
    ({"user": 0}, "/user", "got 0, want 1"),
    ({"user": "root"}, "/user", "got string, want integer"),
    ({"settings": {"NEW_TENANT_UNIT": 3}}, "/settings", "'NEW_TENANT_UNIT' not allowed"),
    (
        {"settings": {"DEFAULT_TENANT_QUOTA_UNITS": "many"}},
        "/settings/DEFAULT_TENANT_QUOTA_UNITS",
        "got string, want integer",
    ),
    ({"settings": {"SECRET_KEY": "abc"}}, "/settings", "'SECRET_KEY' not allowed"),
    ({"settings": {"MAIL_URL": "smtp://a"}}, "/settings", "'MAIL_URL' not allowed"),
    ({"settings": {"DEBUG": True}}, "/settings", "'DEBUG' not allowed"),
    ({"image": {"digest": "abc"}}, "/image/digest", "does not match"),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy", "'Always', 'IfNotPresent', 'Never'"),
    ({"publicUrl": "ftp://x"}, "/publicUrl", "does not match"),
    ({"publicUrl": "https://x/portal"}, "/publicUrl", "does not match"),
    ({"agent": {"clusters": ["Nord_1"]}}, "/agent/clusters/0", "does not match"),
    ({"agent": {"clusters": ["a", "a"]}}, "/agent/clusters", "items at 0 and 1 are equal"),
    ({"networkPolicy": {"database": {"port": 99999}}}, "/networkPolicy/database/port", "maximum"),
    ({"secrets": {"valkey": {"name": ""}}}, "/secrets/valkey/name", "minLength"),
    ({"serviceMonitor": {"interval": "often"}}, "/serviceMonitor/interval", "does not match"),
]
# What a schema cannot say is said by the chart: what happened, why, what next.
MISSING: list[tuple[dict[str, Any], str]] = [
    ({"publicUrl": ""}, "--set publicUrl=https://gpus.example.com"),
    ({"publicUrl": "http://gpus.example.com"}, "settings.SECURE_COOKIES=false"),
    ({"serviceMonitor": {"enabled": True}}, "--set secrets.application.keys.metricsToken=metrics-token"),
    ({"web": {"autoscaling": {"enabled": True, "minReplicas": 9}}}, "Raise maxReplicas"),
    ({"secrets": {"extra": [{"name": "a", "key": "b", "setting": "DATABASE_URL"}]}}, "secrets.database"),
    ({"secrets": {"extra": [{"name": "a", "key": "b", "setting": "MAIL_URL"}]}}, "settings.MAIL_FROM"),
]


@pytest.mark.parametrize(("values", "place", "why"), BAD)
def test_invalid_values_are_refused_with_their_path(values: dict[str, Any], place: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        text({**ADDRESS, **values})
    assert f"at '{place}'" in str(refused.value)
    assert why in str(refused.value)


@pytest.mark.parametrize(("values", "fix"), MISSING)
def test_missing_values_are_refused_with_a_fix(values: dict[str, Any], fix: str) -> None:
    with pytest.raises(Refused, match=fix):
        text({**ADDRESS, **values})
