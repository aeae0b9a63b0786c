"""Labels on all our objects, by which they are found, counted and recognised."""

from collections.abc import Mapping

from broker.provisioners.kubernetes.render.spec import LeaseSpec, ProjectSpec

DOMAIN = "gpubroker.dev"
MANAGED_BY, MANAGER_NAME = "app.kubernetes.io/managed-by", "gpubroker"
TENANT, PROJECT = f"{DOMAIN}/tenant", f"{DOMAIN}/project"
INSTALLATION = f"{DOMAIN}/installation"  # its owner, where two brokers share a cluster
LEASE, GENERATION, RANK = f"{DOMAIN}/lease", f"{DOMAIN}/generation", f"{DOMAIN}/rank"
VOLUME = f"{DOMAIN}/volume"
ROLE, ANCHOR_ROLE, PULSE_ROLE = f"{DOMAIN}/role", "anchor", "pulse"
PAID_UNTIL, SPEC_HASH = f"{DOMAIN}/paid-until", f"{DOMAIN}/spec-hash"  # annotations
SELL_CPU = f"{DOMAIN}/sell-cpu"  # set to true by operators on nodes without GPUs
METERING_FINALIZER = f"{DOMAIN}/metering"  # finalizer of pods: an ended pod stays until we recorded its end
REPARTITION_TAINT = f"{DOMAIN}/repartition"  # taint of a node that is being repartitioned
OURS_SELECTOR = f"{MANAGED_BY}={MANAGER_NAME}"  # as a selector
# mig-manager: the operator's namespace, our ConfigMap of layouts, the node a ConfigMap of legal layouts is about.
OPERATOR_NAMESPACE, LAYOUT_CONFIG_MAP, NODE_NAME_LABEL = ("gpu-operator", "gpubroker-mig", "nvidia.com/node-name")

LEASES, PROJECTS, INSTALLER = "gpubroker-lease", "gpubroker-project", "gpubroker-install"  # field managers


def project_labels(project: ProjectSpec) -> dict[str, str]:
    mine = {INSTALLATION: project.installation} if project.installation else {}
    return {MANAGED_BY: MANAGER_NAME, TENANT: project.tenant_id, PROJECT: project.project_id, **mine}


def lease_labels(lease: LeaseSpec) -> dict[str, str]:
    return {**project_labels(lease.project), LEASE: lease.lease_id, GENERATION: str(lease.generation)}


def labels_match(marks: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether an object carries the labels it should.

    One without the installation label is from before it was introduced. Ids are never reused, so an
    object with our ids is ours unless it names another installation.
    """
    return all(marks.get(name, value if name == INSTALLATION else None) == value for name, value in wanted.items())
