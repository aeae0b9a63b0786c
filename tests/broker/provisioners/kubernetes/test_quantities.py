"""Amounts as Kubernetes writes them: equal however they are written."""

import msgspec
import pytest

from broker.provisioners.kubernetes.objects import Quota, narrow, read
from broker.provisioners.kubernetes.quantities import amount, used_up


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
def test_what_is_as_much_is_equal(one: str, other: str) -> None:
    assert amount(one) == amount(other)


def test_more_is_more() -> None:
    texts = ["1n", "1u", "1m", "1", "1k", "1Ki", "1M", "1Mi", "1G", "1Gi"]
    assert [amount(text) for text in texts] == sorted(amount(text) for text in texts)


def test_what_nobody_may_have_is_not_used_up() -> None:
    most = {"pods": "2", "requests.memory": "1Gi", "services.nodeports": "0"}
    assert used_up(most, {"pods": "2", "requests.memory": "1023Mi"}) == ["pods"]
    assert used_up(most, {"requests.memory": "1024Mi"}) == ["requests.memory"]
    assert used_up(most, {}) == []


def test_of_what_is_used_of_a_quota_only_what_is_used_up_is_kept() -> None:
    def kept(pods: str) -> tuple[bytes, Quota]:
        status = {"hard": {"pods": "9"}, "used": {"pods": pods}}
        body = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}, "status": status}
        small = bytes(narrow(msgspec.json.encode(body), Quota))
        return small, read(small, Quota)

    assert kept("1")[0] == kept("8")[0]
    assert (kept("9")[1].used_up, kept("9")[1].status.used) == (["pods"], {})
    assert b"used" in kept("9")[0] and b'"used":' not in kept("9")[0]  # noqa: PT018
