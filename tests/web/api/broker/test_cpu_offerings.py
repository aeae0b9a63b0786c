"""CPU-only offerings over the API: fields, quotas, quotes, requests and refusals."""

from typing import Any

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.models import Offering
from tenants.models import QuotaKind
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.simulation import Simulation, TenantContext, create_cpu_nodes, offering
from tests.web.api.broker.conftest import Api


@pytest.fixture
def cpus(sim: Simulation, kestrel: TenantContext) -> Offering:
    create_cpu_nodes()
    found = offering("4vcpu", model=CPU_MODEL_NAME)
    set_price(found, EURO // 5, since=LONG_AGO)
    return found


def body(kestrel: TenantContext, cpus: Offering, **more: Any) -> dict[str, Any]:
    return {"project": kestrel.project.pk, "offering": cpus.pk, "name": "prepare", "max_duration_s": 3600, **more}


def test_a_cpu_offering_says_that_it_has_no_gpu(api: Api, cpus: Offering) -> None:
    read = api.get(f"offerings/{cpus.pk}").body
    assert (read["has_gpu"], read["memory_gb"], read["gpu_model"], read["quota_units"]) == (False, 0, "CPU", "0.000")
    assert (read["cpu_milli"], read["host_memory_mib"], read["scratch_mib"]) == (4000, 16_384, 25_600)
    assert api.get(f"offerings/{offering('1g.10gb').pk}").body["has_gpu"] is True


def test_no_quota_of_units_limits_cpus(api: Api, cpus: Offering, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 0)
    found = api.get(f"offerings/{cpus.pk}/availability").body
    assert (found["free_now"], found["quota_left"]) == (8, None)


def test_offerings_can_be_filtered_for_cpus(api: Api, cpus: Offering) -> None:
    page = api.get("offerings?gpu_model=CPU&price_class=on_demand").body
    assert {each["label"] for each in page["items"]} == {f"CPU {n} vCPU" for n in (2, 4, 8, 16)}


def test_cpu_is_a_model_without_a_gpu(api: Api, cpus: Offering) -> None:
    model = api.get("gpu-models/CPU").body
    assert (model["has_gpu"], model["memory_gb"], model["memory_slices"]) == (False, 0, 8)
    assert api.get("gpu-models/H100-80GB").body["has_gpu"] is True


def test_a_cpu_lease_is_requested_as_any_other(api: Api, cpus: Offering, kestrel: TenantContext) -> None:
    answer = api.post("leases", body(kestrel, cpus, workload="jupyter"))
    assert (answer.status_code, answer.body["status"]["state"]) == (202, "queued")


def test_a_topology_without_a_gpu_is_refused_with_its_field(api: Api, cpus: Offering, kestrel: TenantContext) -> None:
    answer = api.post("leases", body(kestrel, cpus, quantity=2, topology="nvlink"))
    assert answer.status_code == 400
    assert "CPU 4 vCPU has no GPU, so there is no interconnect." in answer.body["detail"]


@pytest.mark.parametrize("more", [{"workload": "vllm"}, {"image": "vllm/vllm-openai"}])
def test_a_model_server_is_refused_without_a_gpu(
    api: Api, cpus: Offering, kestrel: TenantContext, more: dict[str, str]
) -> None:
    answer = api.post("leases", body(kestrel, cpus, **more))
    assert answer.status_code == 400
    assert "vLLM endpoint needs a GPU, and CPU 4 vCPU has none." in answer.body["detail"]


def test_the_quote_of_cpus_has_its_price_and_no_gpu_as_alternative(
    api: Api, cpus: Offering, kestrel: TenantContext
) -> None:
    set_price(offering("1g.10gb"), EURO, since=LONG_AGO)
    quote = api.post("quotes", body(kestrel, cpus)).body
    assert (quote["feasible"], quote["total_price_per_hour"]["amount"]) == (True, "0.200000000")
    assert quote["alternatives"] == []
