"""Valid and refused container image references."""

import pytest

from broker.domain.workloads.image_references import image_reference_fault

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "python:3",
        "pytorch/pytorch:2.9-cuda13",
        "jupyter/pytorch-notebook",
        "ghcr.io/acme/solver:v1.2",
        "registry.example:5000/team/a__b/c-d.e:Latest_1",
        f"registry.example/team/solver@{DIGEST}",
        f"solver:v1@{DIGEST}",
        "refuse/nothing:1",
        "svc/tool",
        "10.example/solver",
    ],
)
def test_a_valid_image_reference_is_accepted(image: str) -> None:
    assert image_reference_fault(image) == ""


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("", "not an image reference"),
        (" python", "cannot contain spaces"),
        ("py thon", "cannot contain spaces"),
        ("python:3\n", "cannot contain spaces"),
        ("https://registry.example/a", "no scheme"),
        ("docker://python", "no scheme"),
        ("Python:3", "lowercase"),
        ("Acme/solver", "lowercase"),
        ("ghcr.io/Acme/solver", "lowercase"),
        ("solver@sha256:abc", "64 hexadecimal digits"),
        ("solver@md5:" + "0" * 32, "64 hexadecimal digits"),
        (f"a@b@{DIGEST}", "not an image reference"),
        ("solver:", "not an image reference"),
        ("solver:-1", "not an image reference"),
        ("../../etc/passwd", "not an image reference"),
        ("/etc/passwd", "not an image reference"),
        ("a//b", "not an image reference"),
        ("solver:v1:v2", "not an image reference"),
        ("registry.example:0/a", "not a valid port"),
        ("registry.example:99999/a", "not a valid port"),
        ("a" * 256, "at most 255"),
        ("pythön", "not an image reference"),
    ],
)
def test_an_invalid_image_reference_is_refused_with_the_reason(image: str, words: str) -> None:
    assert words in image_reference_fault(image)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:5000",
        "LOCALHOST:5000",
        "registry.localhost",
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1:443",
        "[::1]:5000",
        "[fd00::1]",
        "2130706433:80",
        "127.1",
        "0x7f.0x1",
        "registry.default.svc",
        "registry.default.svc.cluster.local",
        "api.svc.example",
        "vault.internal",
        "printer.local",
    ],
)
def test_images_from_cluster_hosts_or_ip_addresses_are_refused(host: str) -> None:
    assert "inside the cluster or an IP address" in image_reference_fault(f"{host}/team/solver:1")
