"""Convert a provision spec to the specs that are rendered for Kubernetes."""

from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.domain.workloads.templates import Workload, template_name_for, template_of
from broker.provisioners.base import ProvisionSpec
from broker.provisioners.kubernetes.render.spec import LeaseSpec, OfferingSpec, ProjectSpec, RouteSpec, SliceSpec
from broker.provisioners.kubernetes.tolerations import parse_tolerations
from broker.provisioners.kubernetes.volume_claims import volume_specs


def lease_spec(spec: ProvisionSpec, installation: str = "") -> LeaseSpec:
    """Return the lease spec of a provision spec of an installation."""
    workload = Workload(
        template=spec.workload or template_name_for(spec.image),
        image=spec.image,
        command=spec.command,
        env=spec.env,
        secrets=spec.secrets,
        ssh_keys=spec.ssh_keys,
        custom=spec.template,
        pull_secret=spec.pull_secret,
    )
    return LeaseSpec(
        lease_id=spec.lease_id,
        generation=spec.generation,
        project=project_spec(spec, installation),
        offering=OfferingSpec(
            gpu_model=spec.gpu_model,
            profile=spec.profile,
            isolation=Isolation(spec.isolation),
            price_class=PriceClass(spec.price_class),
            resources=spec.resources,
        ),
        workload=workload,
        access_token=spec.access_token,
        volumes=volume_specs(spec.volume, template_of(workload)),
        slices=tuple(
            SliceSpec(
                node=each.host,
                gpu_uuid=each.uuid,
                profile=each.profile,
                start=each.start,
                size=each.size,
                grid=each.grid,
                gpu_memory_gb=each.memory_gb,
                resource_name=each.resource_name,
                driver=each.driver,
            )
            for each in spec.slices
        ),
        pull_always=spec.pull_always,
        placed_at=spec.placed_at,
        paid_until=spec.paid_until or spec.placed_at,
        route=route_spec(spec.ingress, spec.domain),
        tolerations=parse_tolerations(spec.tolerations),
    )


def route_spec(ingress: str, domain: str) -> RouteSpec | None:
    """Parse `ingress/<class>` or `gateway/<namespace>/<name>`; None if people have no access."""
    kind, _, rest = ingress.partition("/")
    if not domain or not rest:
        return None
    namespace, _, name = rest.rpartition("/")
    return RouteSpec(kind, name, domain, namespace or "gateway")


def project_spec(spec: ProvisionSpec, installation: str = "") -> ProjectSpec:
    """Return the project a provision spec belongs to."""
    return ProjectSpec(tenant_id=spec.tenant_id, project_id=spec.project_id, installation=installation)
