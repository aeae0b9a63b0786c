"""Simulated storage with a provisioning default class."""

from tests.controlplane.api import Object
from tests.controlplane.stages import Stage, stage, unless, when

CLASS, DRIVER = "played", "storage.played.test"
PLACED = '.metadata.annotations["volume.kubernetes.io/selected-node"]'

VOLUME = f"""
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-{{{{ .metadata.uid }}}}
  annotations: {{pv.kubernetes.io/provisioned-by: {DRIVER}}}
spec:
  storageClassName: {CLASS}
  accessModes: {{{{ .spec.accessModes | toJson }}}}
  capacity: {{storage: {{{{ .spec.resources.requests.storage | Quote }}}}}}
  volumeMode: {{{{ or .spec.volumeMode "Filesystem" }}}}
  persistentVolumeReclaimPolicy: Delete
  csi: {{driver: {DRIVER}, volumeHandle: {{{{ .metadata.uid | Quote }}}}}}
  claimRef:
    apiVersion: v1
    kind: PersistentVolumeClaim
    namespace: {{{{ .metadata.namespace | Quote }}}}
    name: {{{{ .metadata.name | Quote }}}}
    uid: {{{{ .metadata.uid | Quote }}}}
"""


def installed() -> list[Object]:
    """Return the storage class that an administrator installs."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVER},
            "spec": {"attachRequired": False},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS, "annotations": default},
            "provisioner": DRIVER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
        },
    ]


def all_of_storage() -> list[Stage]:
    """Return the stages that bind and remove volumes."""
    ours = when(".spec.storageClassName", CLASS)
    return [
        stage(
            "PersistentVolumeClaim",
            "is-provisioned",
            [ours, when(".status.phase", "Pending"), when(PLACED), unless(".metadata.deletionTimestamp")],
            [{"apply": {"template": VOLUME}}],
        ),
        stage(
            "PersistentVolume",
            "goes-with-its-claim",
            [ours, when(".status.phase", "Released"), unless(".metadata.deletionTimestamp")],
            [{"delete": True}],
        ),
    ]
