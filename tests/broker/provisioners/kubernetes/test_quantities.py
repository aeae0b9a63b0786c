"""Kubernetes quantities in every notation."""

import msgspec
import pytest

from broker.provisioners.kubernetes.client.objects import ObservedQuota, decode, reencode
from broker.provisioners.kubernetes.client.quantities import exhausted_names, parse_quantity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1024Gi", "1Ti"),
        ("1000m", "1"),
        ("1e3", "1k"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("1E", "1e18"),
        ("2Ei", "2048Pi"),
        ("0", ""),
        ("0", "plenty"),
    ],
)
def test_equal_quantities_compare_equal_across_notations(one: str, other: str) -> None:
    assert parse_quantity(one) == parse_quantity(other)


def test_quantities_are_ordered_across_notations() -> None:
    texts = ["1n", "1u", "1m", "1", "1k", "1Ki", "1M", "1Mi", "1G", "1Gi"]
    assert [parse_quantity(text) for text in texts] == sorted(parse_quantity(text) for text in texts)


def test_a_quota_of_zero_is_not_reported_as_exhausted() -> None:
    most = {"pods": "2", "requests.memory": "1Gi", "services.nodeports": "0"}
    assert exhausted_names(most, {"pods": "2", "requests.memory": "1023Mi"}) == ["pods"]
    assert exhausted_names(most, {"requests.memory": "1024Mi"}) == ["requests.memory"]
    assert exhausted_names(most, {}) == []


def test_only_exhausted_resource_names_of_a_quota_are_stored() -> None:
    def kept(pods: str) -> tuple[bytes, ObservedQuota]:
        status = {"hard": {"pods": "9"}, "used": {"pods": pods}}
        body = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}, "status": status}
        small = bytes(reencode(msgspec.json.encode(body), ObservedQuota))
        return small, decode(small, ObservedQuota)

    assert kept("1")[0] == kept("8")[0]
    assert (kept("9")[1].used_up, kept("9")[1].status.used) == (["pods"], {})
    assert b"used" in kept("9")[0] and b'"used":' not in kept("9")[0]  # noqa: PT018
