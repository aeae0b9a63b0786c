"""Kubernetes kinds that only the doctor reads."""

from broker.provisioners.kubernetes.client.kinds import BY_NAME, Kind

DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
INGRESS_CLASS = Kind("networking.k8s.io/v1", "IngressClass", "ingressclasses", namespaced=False)
MUTATING = Kind(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
CLUSTER_POLICY = Kind("nvidia.com/v1", "ClusterPolicy", "clusterpolicies", namespaced=False)
GPU_CLUSTER = Kind("nvidia.com/v1alpha1", "GPUCluster", "gpuclusters", namespaced=False)
REVIEW = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
SERVICE, QUOTA = BY_NAME["v1", "Service"], BY_NAME["v1", "ResourceQuota"]
SLICE = BY_NAME["resource.k8s.io/v1", "ResourceSlice"]
DEVICE_CLASS = BY_NAME["resource.k8s.io/v1", "DeviceClass"]
