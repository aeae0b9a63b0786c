"""Addresses of the operators' pages about the fleet that show no money."""

from django.urls import path

from broker.portal import clusters, doctor, layouts, nodes, orphans, plans, switches, waiting

urlpatterns = [
    path("ops/clusters/", clusters.clusters, name="ops-clusters"),
    path("ops/clusters/add/", doctor.add, name="ops-cluster-add"),
    path("ops/clusters/<str:pk>/doctor/", doctor.doctor, name="ops-doctor"),
    path("ops/clusters/<str:pk>/doctor/again/", doctor.again, name="ops-doctor-again"),
    path("ops/clusters/<str:pk>/credentials/", doctor.credentials, name="ops-credentials"),
    path("ops/clusters/<str:pk>/ways/", doctor.ways, name="ops-ways"),
    path("ops/clusters/<str:pk>/believe/", doctor.believe, name="ops-believe"),
    path("ops/clusters/<str:pk>/share/", switches.share, name="ops-cluster-share"),
    path("ops/clusters/<str:pk>/unshare/", switches.unshare, name="ops-cluster-unshare"),
    path("ops/clusters/<str:pk>/layouts/", layouts.layouts, name="ops-layouts"),
    path("ops/clusters/<str:pk>/layouts/plan/", layouts.plan, name="ops-layouts-plan"),
    path("ops/clusters/<str:pk>/layouts/begin/", switches.begin, name="ops-layouts-begin"),
    path("ops/clusters/<str:pk>/layouts/wait/", switches.wait, name="ops-layouts-wait"),
    path("ops/layouts/<str:pk>/", layouts.change, name="ops-layout"),
    path("ops/layouts/<str:pk>/approve/", layouts.approve, name="ops-layout-approve"),
    path("ops/layouts/<str:pk>/cancel/", layouts.cancel, name="ops-layout-cancel"),
    path("ops/layouts/<str:pk>/again/", layouts.again, name="ops-layout-again"),
    path("ops/layouts/<str:pk>/back/", layouts.back, name="ops-layout-back"),
    path("ops/plans/", plans.plans, name="ops-plans"),
    path("ops/plans/propose/", plans.propose, name="ops-plans-propose"),
    path("ops/plans/<str:pk>/", plans.plan, name="ops-plan"),
    path("ops/plans/<str:pk>/accept/", plans.accept, name="ops-plan-accept"),
    path("ops/plans/<str:pk>/decline/", plans.decline, name="ops-plan-decline"),
    path("ops/plans/<str:pk>/cancel/", plans.cancel, name="ops-plan-cancel"),
    path("ops/nodes/<str:pk>/", nodes.node, name="ops-node"),
    path("ops/nodes/<str:pk>/cordon/", nodes.cordon, name="ops-node-cordon"),
    path("ops/nodes/<str:pk>/drain/", nodes.drain, name="ops-node-drain"),
    path("ops/nodes/<str:pk>/ready/", nodes.ready, name="ops-node-ready"),
    path("ops/nodes/<str:pk>/lose/", nodes.lose, name="ops-node-lose"),
    path("ops/nodes/<str:pk>/release/", nodes.release_all, name="ops-node-release"),
    path("ops/clusters/<str:pk>/thaw/", orphans.thaw, name="ops-cluster-thaw"),
    path("ops/clusters/<str:pk>/orphans/", orphans.agree, name="ops-orphans"),
    path("ops/queue/", waiting.queue, name="ops-queue"),
    path("ops/leases/<str:pk>/", waiting.lease, name="ops-lease"),
    path("ops/leases/<str:pk>/release/", waiting.release, name="ops-lease-release"),
]
