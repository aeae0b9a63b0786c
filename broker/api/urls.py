"""Addresses of the catalogue, leases and the fleet under /api/v1/."""

from rest_framework.routers import SimpleRouter

from broker.api.all_leases import OpsAllocations, OpsLeases
from broker.api.cuts import LayoutChanges
from broker.api.events import Events
from broker.api.fleet import Clusters, Gpus, Nodes
from broker.api.leases import Leases
from broker.api.moves import MovePlans
from broker.api.offerings import GpuModels, Offerings
from broker.api.queue import QueueEntries
from broker.api.volumes import Volumes

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("leases", Leases, "api-lease")
router.register("volumes", Volumes, "api-volume")
router.register("queue-entries", QueueEntries, "api-queue-entry")
router.register("events", Events, "api-event")
router.register("offerings", Offerings, "api-offering")
router.register("gpu-models", GpuModels, "api-gpu-model")
router.register("clusters", Clusters, "api-cluster")
router.register("nodes", Nodes, "api-node")
router.register("gpus", Gpus, "api-gpu")
router.register("layout-changes", LayoutChanges, "api-layout-change")
router.register("ops/leases", OpsLeases, "api-ops-lease")
router.register("ops/plans", MovePlans, "api-ops-plan")
router.register("ops/allocations", OpsAllocations, "api-ops-allocation")

urlpatterns = router.urls
