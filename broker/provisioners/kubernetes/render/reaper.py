"""The dead man's switch: with the broker dead, the cluster itself takes down what nobody pays for any longer."""

from broker.domain.workloads import USER_ID
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.spec import Manifest

NAME = "gpubroker-reaper"
COMMAND = ["python", "-m", "broker.provisioners.kubernetes.reaper"]
EVERY_MINUTE = "* * * * *"


def reaper(*, image: str, namespace: str) -> list[Manifest]:
    """Return the CronJob that deletes overdue anchors, and the little it may do."""
    return [
        access.account(NAME, namespace=namespace),
        access.role(NAME, access.REAPER),
        access.binding(NAME, account=NAME, namespace=namespace),
        _cron_job(image, namespace),
    ]


def _cron_job(image: str, namespace: str) -> Manifest:
    marks = {labels.MANAGED_BY: labels.US, "app.kubernetes.io/name": NAME}
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
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": NAME,
    }
