"""Addresses of the operators' pages about the fleet that show no money."""

from django.urls import path

from broker.portal import clusters, nodes, waiting

urlpatterns = [
    path("ops/clusters/", clusters.clusters, name="ops-clusters"),
    path("ops/nodes/<str:pk>/", nodes.node, name="ops-node"),
    path("ops/nodes/<str:pk>/cordon/", nodes.cordon, name="ops-node-cordon"),
    path("ops/nodes/<str:pk>/drain/", nodes.drain, name="ops-node-drain"),
    path("ops/nodes/<str:pk>/ready/", nodes.ready, name="ops-node-ready"),
    path("ops/nodes/<str:pk>/lose/", nodes.lose, name="ops-node-lose"),
    path("ops/nodes/<str:pk>/release/", nodes.release_all, name="ops-node-release"),
    path("ops/queue/", waiting.queue, name="ops-queue"),
    path("ops/leases/<str:pk>/", waiting.lease, name="ops-lease"),
    path("ops/leases/<str:pk>/release/", waiting.release, name="ops-lease-release"),
]
