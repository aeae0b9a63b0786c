"""URLs of offerings, leases and inventory under /api/v1/."""

from django.urls import path

from web.api.events import EventViewSet
from web.api.lease_arrays import LeaseArrayViewSet
from web.api.lease_logs import LeaseLogViewSet
from web.api.lease_metrics import LeaseMetricsViewSet
from web.api.lease_schedules import LeaseScheduleViewSet
from web.api.leases import LeaseViewSet
from web.api.offerings import GpuModelViewSet, OfferingViewSet
from web.api.operators.fleet import ClusterViewSet, GpuViewSet, NodeViewSet
from web.api.operators.image_prepulls import ImagePrepullViewSet
from web.api.operators.layout_changes import LayoutChangeViewSet
from web.api.operators.leases import OperatorAllocationViewSet, OperatorLeaseViewSet
from web.api.operators.relocation_plans import RelocationPlanViewSet
from web.api.operators.templates import OperatorTemplateViewSet
from web.api.queue_entries import QueueEntryViewSet
from web.api.secrets import SecretViewSet
from web.api.templates import TemplateViewSet
from web.api.volumes import VolumeViewSet
from web.http.routers import ApiRouter

router = ApiRouter()
router.register("leases", LeaseViewSet, "api-lease")
router.register("lease-arrays", LeaseArrayViewSet, "api-lease-array")
router.register("lease-schedules", LeaseScheduleViewSet, "api-lease-schedule")
router.register("volumes", VolumeViewSet, "api-volume")
router.register("secrets", SecretViewSet, "api-secret")
router.register("templates", TemplateViewSet, "api-template")
router.register("queue-entries", QueueEntryViewSet, "api-queue-entry")
router.register("events", EventViewSet, "api-event")
router.register("offerings", OfferingViewSet, "api-offering")
router.register("gpu-models", GpuModelViewSet, "api-gpu-model")
router.register("clusters", ClusterViewSet, "api-cluster")
router.register("nodes", NodeViewSet, "api-node")
router.register("gpus", GpuViewSet, "api-gpu")
router.register("ops/layout-changes", LayoutChangeViewSet, "api-ops-layout-change")
router.register("ops/leases", OperatorLeaseViewSet, "api-ops-lease")
router.register("ops/relocation-plans", RelocationPlanViewSet, "api-ops-relocation-plan")
router.register("ops/templates", OperatorTemplateViewSet, "api-ops-template")
router.register("ops/image-prepulls", ImagePrepullViewSet, "api-ops-image-prepull")
router.register("ops/allocations", OperatorAllocationViewSet, "api-ops-allocation")

# Collections with one row for each lease.
urlpatterns = [
    path("leases/<str:pk>/metrics", LeaseMetricsViewSet.as_view({"get": "retrieve"}), name="api-lease-metrics"),
    path("leases/<str:pk>/logs", LeaseLogViewSet.as_view({"get": "retrieve"}), name="api-lease-logs"),
    path("leases/<str:pk>/logs/download", LeaseLogViewSet.as_view({"get": "download"}), name="api-lease-log-download"),
    *router.urls,
]
