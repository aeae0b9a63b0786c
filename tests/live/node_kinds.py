"""Kinds of nodes that an ordinary cluster has, with ordinary amounts, and prices of what they sell."""

from datetime import datetime, timedelta

from billing.models import PriceVersion
from billing.services.catalogue import price_list
from broker.models import Offering, OfferingState
from broker.provisioners.kubernetes.labels import SELL_CPU
from broker.services.inventory import gpu_catalogue
from tests.chaos.world import OPERATOR
from tests.controlplane import devices
from tests.controlplane.nodes import A100, H100, L40S, GpuHardware, GpuNode, Nodes, PlainNode

T4 = GpuHardware("Tesla-T4", 15360, "turing", "7.5", mig_capable=False)
SMALL = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "80Gi"}
LARGE = {"cpu": "96", "memory": "1Ti", "ephemeral-storage": "3Ti"}
CPU_ONLY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "400Gi"}
AMD_LABELS = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.family": "AI"}
NODES = {
    "t4": GpuNode(gpus=1, gpu=T4, amounts=SMALL),
    "l40s": GpuNode(gpus=4, gpu=L40S, amounts={**LARGE, "cpu": "48"}),
    "a100-mig": GpuNode(gpus=2, gpu=A100, cut=1, mig={"1g.10gb": 7}, amounts={**LARGE, "cpu": "32"}),
    "h100-single": GpuNode(
        gpus=1, gpu=H100, cut=1, strategy="single", mig={"3g.40gb": 2}, amounts={**LARGE, "cpu": "16"}
    ),
    "h100-dra": GpuNode(gpus=0, amounts=LARGE),
    "mi300x": PlainNode(labels=AMD_LABELS, amounts={"amd.com/gpu": "8"}),
    "cpu": PlainNode(labels={SELL_CPU: "true"}, amounts=CPU_ONLY),
}
DRA_GPUS, CPU_BLOCKS = 8, 2
DEVICES = sum(node.gpus for node in NODES.values()) + DRA_GPUS + CPU_BLOCKS  # what is sold of them
CENTS_PER_GB = {"on_demand": 4, "spot": 2, "reserved": 3}  # an hour, of a GPU's or slice's memory
CENTS_PER_VCPU = {"on_demand": 5, "spot": 2, "reserved": 4}


def add_nodes(nodes: Nodes) -> None:
    """Add a node of each kind, named after the cluster and its kind."""
    for kind, node in NODES.items():
        nodes.add(node, name=f"{nodes.prefix}-{kind}")
    for made in (devices.GPU_CLASS, devices.MIG_CLASS, *devices.published(f"{nodes.prefix}-h100-dra", gpus=DRA_GPUS)):
        nodes.api.create(made)


def sell_everything(*, now: datetime) -> None:
    """Publish all offerings, each at a price by its GPU memory or its CPUs unless it has one."""
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
    priced = PriceVersion.objects.values("offering")
    for offering in Offering.objects.published().exclude(pk__in=priced):
        cents = offering.memory_gb * CENTS_PER_GB[offering.price_class]
        cents = cents or offering.cpu_milli * CENTS_PER_VCPU[offering.price_class] // 1000
        price_list.publish_price(
            offering=offering,
            currency="EUR",
            nano_per_hour=cents * 10**7,
            since=now - timedelta(hours=1),
            actor=OPERATOR,
            now=now,
        )
