"""The marks on everything of ours, by which it is found, counted and told from a stranger's."""

from collections.abc import Mapping

from broker.provisioners.kubernetes.spec import LeaseSpec, ProjectSpec

DOMAIN = "gpubroker.dev"
MANAGED_BY, US = "app.kubernetes.io/managed-by", "gpubroker"
TENANT, PROJECT = f"{DOMAIN}/tenant", f"{DOMAIN}/project"
INSTALLATION = f"{DOMAIN}/installation"  # whose it is, where two brokers share a cluster
LEASE, GENERATION, RANK = f"{DOMAIN}/lease", f"{DOMAIN}/generation", f"{DOMAIN}/rank"
VOLUME = f"{DOMAIN}/volume"
ROLE, ANCHOR_ROLE, PULSE_ROLE = f"{DOMAIN}/role", "anchor", "pulse"
PAID_UNTIL, SPEC_HASH = f"{DOMAIN}/paid-until", f"{DOMAIN}/spec-hash"  # annotations
METERING = f"{DOMAIN}/metering"  # the finalizer of pods: what ended stays until our books know when
REPARTITION = f"{DOMAIN}/repartition"  # the taint of a node that is being cut anew
OURS = f"{MANAGED_BY}={US}"  # as a selector
# Where mig-managers look: their operator's namespace, our ConfigMap of layouts, and whose legal layouts one tells.
OPERATOR, LAYOUTS, OF_NODE = "gpu-operator", "gpubroker-mig", "nvidia.com/node-name"

LEASES, PROJECTS, INSTALLER = "gpubroker-lease", "gpubroker-project", "gpubroker-install"  # field managers


def of_project(project: ProjectSpec) -> dict[str, str]:
    mine = {INSTALLATION: project.installation} if project.installation else {}
    return {MANAGED_BY: US, TENANT: project.tenant_id, PROJECT: project.project_id, **mine}


def of_lease(lease: LeaseSpec) -> dict[str, str]:
    return {**of_project(lease.project), LEASE: lease.lease_id, GENERATION: str(lease.generation)}


def fit(marks: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether an object carries the marks it should; one without an installation's is from before there were any.

    Ids are never given twice, so what carries ours is ours unless it says that it is another's.
    """
    return all(
        marks.get(name, value if name == INSTALLATION else None) == value for name, value in wanted.items()
    )
