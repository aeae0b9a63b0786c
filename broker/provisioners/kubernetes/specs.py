"""From the order every provisioner gets to what is rendered for Kubernetes."""

from broker.domain.states import Isolation, PriceClass
from broker.domain.workloads import Workload, template_for
from broker.provisioners.base import Order
from broker.provisioners.kubernetes.spec import LeaseSpec, OfferingSpec, ProjectSpec, RouteSpec, SliceSpec
from broker.provisioners.kubernetes.volumes import mounted


def lease_spec(order: Order, installation: str = "") -> LeaseSpec:
    """Say what an order of an installation wants of a cluster."""
    return LeaseSpec(
        lease_id=order.lease_id,
        generation=order.generation,
        project=project_spec(order, installation),
        offering=OfferingSpec(
            gpu_model=order.gpu_model,
            profile=order.profile,
            isolation=Isolation(order.isolation),
            price_class=PriceClass(order.price_class),
        ),
        workload=Workload(
            template=order.workload or template_for(order.image),
            image=order.image,
            command=order.command,
            env=order.env,
            ssh_keys=order.ssh_keys,
        ),
        access_token=order.access_token,
        volumes=mounted(order.volume, order.workload or template_for(order.image)),
        slices=tuple(
            SliceSpec(
                node=each.host,
                card_uuid=each.uuid,
                profile=each.profile,
                start=each.start,
                size=each.size,
                grid=each.grid,
                card_memory_gb=each.memory_gb,
                asks=each.asks,
            )
            for each in order.slices
        ),
        placed_at=order.placed_at,
        paid_until=order.paid_until or order.placed_at,
        route=route_spec(order.door, order.domain),
    )


def route_spec(door: str, domain: str) -> RouteSpec | None:
    """Read how people come in, `ingress/<class>` or `gateway/<namespace>/<name>`; None where they do not."""
    kind, _, rest = door.partition("/")
    if not domain or not rest:
        return None
    namespace, _, name = rest.rpartition("/")
    return RouteSpec(kind, name, domain, namespace or "gateway")


def project_spec(order: Order, installation: str = "") -> ProjectSpec:
    """Say which project an order belongs to."""
    return ProjectSpec(tenant_id=order.tenant_id, project_id=order.project_id, installation=installation)
