"""The dead man's switch: a CronJob that deletes unpaid leases without the broker."""

from broker.domain.workloads.templates import USER_ID
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.spec import Manifest

NAME = "gpubroker-reaper"
COMMAND = ["python", "-m", "broker.provisioners.kubernetes.reaper"]
EVERY_MINUTE = "* * * * *"


def reaper_objects(*, image: str, namespace: str) -> list[Manifest]:
    """Return the CronJob that deletes overdue anchors, and its narrow rights."""
    return [
        rbac.service_account(NAME, namespace=namespace),
        rbac.cluster_role(NAME, rbac.REAPER_RULES),
        rbac.cluster_role_binding(NAME, account=NAME, namespace=namespace),
        _cron_job(image, namespace),
    ]


def _cron_job(image: str, namespace: str) -> Manifest:
    marks = {labels.MANAGED_BY: labels.MANAGER_NAME, "app.kubernetes.io/name": NAME}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"labels": marks, "name": NAME, "namespace": namespace},
        "spec": {
            "concurrencyPolicy": "Forbid",
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {
                    "activeDeadlineSeconds": 50,
                    "backoffLimit": 0,
                    "template": {"metadata": {"labels": marks}, "spec": _pod(image)},
                }
            },
            "schedule": EVERY_MINUTE,
            "successfulJobsHistoryLimit": 1,
        },
    }


def _pod(image: str) -> Manifest:
    little = {"cpu": "100m", "memory": "128Mi"}
    container = {
        "command": COMMAND,
        "image": image,
        "name": "reaper",
        "resources": {"limits": little, "requests": little},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    return {
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER_ID, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": NAME,
    }
