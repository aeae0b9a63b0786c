"""What the API server itself refuses in projects' namespaces, whoever asks: the last wall, and it needs no webhook."""

from collections.abc import Mapping, Sequence

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render.priorities import PRIORITIES
from broker.provisioners.kubernetes.spec import Manifest

GROUP = "admissionregistration.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"
MARKED = "has(object.metadata.labels)"


def policies(schedulers: Sequence[str] = ()) -> list[Manifest]:
    """Return the policies with their bindings; `schedulers` are those that pods may name beside the cluster's own."""
    rules = {
        "gpub-pods": (["pods"], ["CREATE"], _pods([DEFAULT_SCHEDULER, *schedulers])),
        "gpub-services": (["services"], ["CREATE", "UPDATE"], _services()),
    }
    found = []
    for name, (resources, operations, expressions) in sorted(rules.items()):
        found += [_policy(name, resources, operations, expressions), _binding(name)]
    return found


def _pods(schedulers: Sequence[str]) -> dict[str, str]:
    """Map what a pod must fulfil to what is said when it does not."""
    gpu = f"{_asks('containers')} || {_asks('initContainers')} || has(object.spec.resourceClaims)"
    leased = f"{MARKED} && '{labels.LEASE}' in object.metadata.labels"
    ranks = ["", *sorted(PRIORITIES)]
    return {
        f"!({gpu}) || ({leased})": f"a pod that asks for GPUs carries the label {labels.LEASE}",
        _same(labels.TENANT): f"a pod carries the {labels.TENANT} of its namespace or none",
        _same(labels.PROJECT): f"a pod carries the {labels.PROJECT} of its namespace or none",
        "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))": "no hostPath volumes",
        " && ".join(
            f"(!has(object.spec.{each}) || !object.spec.{each})"
            for each in ("hostIPC", "hostNetwork", "hostPID")
        ): "no namespaces of the host",
        _no_privileged("containers"): "no privileged containers",
        _no_privileged("initContainers"): "no privileged containers to begin with",
        _one_of("priorityClassName", ranks): f"the priority class is one of {', '.join(sorted(PRIORITIES))}",
        _one_of("schedulerName", schedulers): f"the scheduler is {' or '.join(schedulers)}",
        "!has(object.spec.tolerations) || object.spec.tolerations.all(t,"
        f" has(t.key) && t.key != '' && t.key != '{labels.REPARTITION}')": (
            "no toleration of every taint, nor of a node that is being cut anew"
        ),
        "!has(object.spec.nodeName) || object.spec.nodeName == ''": "the scheduler places pods: no nodeName",
    }


def _services() -> dict[str, str]:
    return {
        "!has(object.spec.type) || object.spec.type == 'ClusterIP'": "people come in by the gateway: ClusterIP only",
        "!has(object.spec.externalIPs) || size(object.spec.externalIPs) == 0": "no external addresses",
    }


def _asks(containers: str) -> str:
    return (
        f"(has(object.spec.{containers}) && object.spec.{containers}.exists(c, has(c.resources) &&"
        " has(c.resources.limits) && c.resources.limits.exists(name, name.startsWith('nvidia.com/'))))"
    )


def _same(label: str) -> str:
    return (
        f"!({MARKED}) || !('{label}' in object.metadata.labels) ||"
        f" object.metadata.labels['{label}'] == namespaceObject.metadata.labels['{label}']"
    )


def _no_privileged(containers: str) -> str:
    return (
        f"!has(object.spec.{containers}) || object.spec.{containers}.all(c, !has(c.securityContext) ||"
        " !has(c.securityContext.privileged) || !c.securityContext.privileged)"
    )


def _one_of(field: str, words: Sequence[str]) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"!has(object.spec.{field}) || object.spec.{field} in [{listed}]"


def _policy(
    name: str, resources: list[str], operations: list[str], expressions: Mapping[str, str]
) -> Manifest:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"labels": {labels.MANAGED_BY: labels.US}, "name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": expression, "message": message} for expression, message in expressions.items()
            ],
        },
    }


def _binding(name: str) -> Manifest:
    ours = {"matchLabels": {labels.MANAGED_BY: labels.US}}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"labels": {labels.MANAGED_BY: labels.US}, "name": name},
        "spec": {
            "matchResources": {"namespaceSelector": ours},
            "policyName": name,
            "validationActions": ["Deny"],
        },
    }
