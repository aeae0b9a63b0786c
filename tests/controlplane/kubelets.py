"""Simulated kubelets: a node reports ready or not ready."""

from tests.controlplane.stages import Stage, stage, status, unless, warning, when

SICK = "kubelet.test/sick"
READY = '.status.conditions[]? | select(.type == "Ready") | .status'


def reports(ready: str, reason: str, words: str) -> str:
    """Return a node's status as its kubelet posts it."""
    return f"""
conditions:
{{{{ range NodeConditions }}}}
- type: {{{{ .type | Quote }}}}
  lastHeartbeatTime: {{{{ Now | Quote }}}}
  lastTransitionTime: {{{{ Now | Quote }}}}
  {{{{ if eq .type "Ready" }}}}
  status: "{ready}"
  reason: {reason}
  message: {words}
  {{{{ else }}}}
  status: {{{{ .status | Quote }}}}
  reason: {{{{ .reason | Quote }}}}
  message: {{{{ .message | Quote }}}}
  {{{{ end }}}}
{{{{ end }}}}
"""


def all_of_a_node() -> list[Stage]:
    """Return the stages of a node's own health."""
    sick = f'.metadata.annotations["{SICK}"]'
    well = status(reports("True", "KubeletReady", "kubelet is posting ready status"))
    ill = status(reports("False", "KubeletNotReady", "container runtime is down"))
    return [
        stage("Node", "reports-ready", [unless(sick, "true"), unless(READY, "True")], [well]),
        stage(
            "Node",
            "reports-sick",
            [when(sick, "true"), unless(READY, "False")],
            [ill, warning("NodeNotReady", "container runtime is down")],
        ),
    ]
