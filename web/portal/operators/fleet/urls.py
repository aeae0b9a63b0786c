"""URLs of the operators' fleet pages that show no money."""

from django.urls import path

from web.portal.operators.fleet import (
    cluster_list_page,
    cluster_pages,
    cluster_recovery,
    cluster_switches,
    image_pages,
    node_pages,
)
from web.portal.operators.launch_templates import template_pages
from web.portal.operators.layouts import layout_pages
from web.portal.operators.leases import lease_list_page
from web.portal.operators.queue import queue_pages
from web.portal.operators.relocations import relocation_plan_pages
from web.portal.operators.search import search_page

urlpatterns = [
    path("ops/clusters/", cluster_list_page.list_clusters, name="ops-clusters"),
    path("ops/clusters/add/", cluster_pages.add_cluster, name="ops-cluster-add"),
    path("ops/clusters/<str:pk>/checks/", cluster_pages.show_cluster_checks, name="ops-cluster-checks"),
    path("ops/clusters/<str:pk>/checks/rerun/", cluster_pages.rerun_cluster_checks, name="ops-cluster-checks-rerun"),
    path("ops/clusters/<str:pk>/credentials/", cluster_pages.replace_credentials, name="ops-cluster-credentials"),
    path("ops/clusters/<str:pk>/access/", cluster_pages.edit_access, name="ops-cluster-access"),
    path(
        "ops/clusters/<str:pk>/accept-inventory/", cluster_pages.accept_inventory, name="ops-cluster-accept-inventory"
    ),
    path("ops/clusters/<str:pk>/allow-sharing/", cluster_switches.allow_sharing, name="ops-cluster-allow-sharing"),
    path("ops/clusters/<str:pk>/forbid-sharing/", cluster_switches.forbid_sharing, name="ops-cluster-forbid-sharing"),
    path("ops/clusters/<str:pk>/images/", image_pages.list_images, name="ops-cluster-images"),
    path("ops/image-prepulls/<str:pk>/remove/", image_pages.remove_image, name="ops-image-remove"),
    path("ops/templates/", template_pages.list_templates, name="ops-templates"),
    path("ops/templates/new/", template_pages.create_template, name="ops-template-create"),
    path("ops/templates/<str:pk>/", template_pages.edit_template, name="ops-template"),
    path("ops/templates/<str:pk>/delete/", template_pages.delete_template, name="ops-template-delete"),
    path("ops/clusters/<str:pk>/layouts/", layout_pages.show_layouts, name="ops-layouts"),
    path("ops/clusters/<str:pk>/layouts/plan/", layout_pages.plan_layouts, name="ops-layouts-plan"),
    path(
        "ops/clusters/<str:pk>/layouts/enable-automatic/",
        cluster_switches.enable_auto_repartition,
        name="ops-layouts-enable-automatic",
    ),
    path(
        "ops/clusters/<str:pk>/layouts/disable-automatic/",
        cluster_switches.disable_auto_repartition,
        name="ops-layouts-disable-automatic",
    ),
    path("ops/layout-changes/<str:pk>/", layout_pages.show_layout_change, name="ops-layout-change"),
    path("ops/layout-changes/<str:pk>/approve/", layout_pages.approve_layout_change, name="ops-layout-change-approve"),
    path("ops/layout-changes/<str:pk>/cancel/", layout_pages.cancel_layout_change, name="ops-layout-change-cancel"),
    path("ops/layout-changes/<str:pk>/retry/", layout_pages.retry_layout_change, name="ops-layout-change-retry"),
    path(
        "ops/layout-changes/<str:pk>/roll-back/",
        layout_pages.roll_back_layout_change,
        name="ops-layout-change-roll-back",
    ),
    path("ops/relocation-plans/", relocation_plan_pages.list_plans, name="ops-relocation-plans"),
    path("ops/relocation-plans/propose/", relocation_plan_pages.propose_plans, name="ops-relocation-plans-propose"),
    path("ops/relocation-plans/<str:pk>/", relocation_plan_pages.show_plan, name="ops-relocation-plan"),
    path("ops/relocation-plans/<str:pk>/accept/", relocation_plan_pages.accept_plan, name="ops-relocation-plan-accept"),
    path(
        "ops/relocation-plans/<str:pk>/decline/", relocation_plan_pages.decline_plan, name="ops-relocation-plan-decline"
    ),
    path("ops/relocation-plans/<str:pk>/cancel/", relocation_plan_pages.cancel_plan, name="ops-relocation-plan-cancel"),
    path("ops/nodes/<str:pk>/", node_pages.show_node, name="ops-node"),
    path("ops/nodes/<str:pk>/cordon/", node_pages.cordon_node, name="ops-node-cordon"),
    path("ops/nodes/<str:pk>/drain/", node_pages.drain_node, name="ops-node-drain"),
    path("ops/nodes/<str:pk>/return/", node_pages.return_node, name="ops-node-return"),
    path("ops/nodes/<str:pk>/mark-lost/", node_pages.mark_node_lost, name="ops-node-mark-lost"),
    path("ops/nodes/<str:pk>/release-leases/", node_pages.release_node_leases, name="ops-node-release-leases"),
    path("ops/clusters/<str:pk>/unfreeze/", cluster_recovery.unfreeze_cluster, name="ops-cluster-unfreeze"),
    path(
        "ops/clusters/<str:pk>/orphans/delete/",
        cluster_recovery.approve_orphan_deletion,
        name="ops-cluster-orphans-delete",
    ),
    path("ops/queue/", queue_pages.show_queue, name="ops-queue"),
    path("ops/leases/", lease_list_page.list_leases, name="ops-leases"),
    path("ops/search/", search_page.search, name="ops-search"),
    path("ops/leases/<str:pk>/", queue_pages.show_lease, name="ops-lease"),
    path("ops/leases/<str:pk>/release/", queue_pages.release_lease, name="ops-lease-release"),
]
