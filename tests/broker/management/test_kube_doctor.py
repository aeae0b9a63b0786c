"""The kube_doctor command and its network probe."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.services.clusters.registration import cluster_examination
from tests.web.portal.operators.fleet.test_cluster_pages import kubeconfig


def test_network_probe_pods_need_an_administrator_kubeconfig(db: None) -> None:
    with pytest.raises(CommandError, match="administrator's --kubeconfig"):
        call_command("kube_doctor", "north", try_network="gpubroker:1")


@pytest.mark.parametrize("image", ["", "gpubroker:1"])
def test_the_network_probe_image_is_passed_on(
    db: None, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    def examined(kubeconfig: Any, **rest: Any) -> list[ClusterFinding]:
        requests.append(rest["tries"])
        return [ClusterFinding("network-policies", CheckOutcome.OK, "in a test", "why", "")]

    monkeypatch.setattr(cluster_examination, "examine_kubeconfig", examined)
    file = tmp_path / "admin.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(kubeconfig())))
    said = StringIO()
    call_command("kube_doctor", kubeconfig=file, stdout=said, **({"try_network": image} if image else {}))
    assert requests == [image]
    assert "Leases can run in this cluster." in said.getvalue()
