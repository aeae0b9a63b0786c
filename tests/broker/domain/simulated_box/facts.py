"""Facts of the boxes that the tests use."""

from datetime import UTC, datetime

from broker.domain.simulated_box.box_facts import BoxFacts, BoxGpu

STARTED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SLICE = BoxGpu("NVIDIA H100 SXM 80GB", "GPU-1a", 9856, 81559, profile="1g.10gb", mig_uuid="MIG-7b")
WHOLE = BoxGpu("NVIDIA L40S 48GB", "GPU-9c", 46068)
BOX = BoxFacts(
    gpus=(SLICE,),
    hostname="lse-1",
    env=(("HF_TOKEN", "hf_secret"),),
    cpu_milli=1500,
    memory_mib=12_288,
    scratch_mib=20_480,
)
