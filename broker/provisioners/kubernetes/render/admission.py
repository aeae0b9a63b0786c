"""Admission policies: what the API server itself refuses in projects' namespaces.

They apply to whoever asks, are the last line of defence, and need no webhook.
"""

from collections.abc import Mapping, Sequence

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.priority_classes import PRIORITY_CLASSES
from broker.provisioners.kubernetes.render.spec import Manifest

GROUP = "admissionregistration.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"
HAS_LABELS = "has(object.metadata.labels)"


def admission_policies(schedulers: Sequence[str] = ()) -> list[Manifest]:
    """Return the policies with their bindings.

    `schedulers` are those that pods may name besides the cluster's default.
    """
    rules = {
        "gpub-pods": (["pods"], ["CREATE"], _pod_rules([DEFAULT_SCHEDULER, *schedulers])),
        "gpub-services": (["services"], ["CREATE", "UPDATE"], _service_rules()),
    }
    found = []
    for name, (resources, operations, expressions) in sorted(rules.items()):
        found += [_policy(name, resources, operations, expressions), _binding(name)]
    for name, (group, resource, operations, expressions) in sorted(_rules_everywhere().items()):
        policy = _policy(name, [resource], operations, expressions, group=group)
        found += [policy, _binding(name, everywhere=True)]
    return found


def _rules_everywhere() -> dict[str, tuple[str, str, list[str], dict[str, str]]]:
    """Return rules for all namespaces that protect pods of others.

    Without them, stolen credentials of the broker could bind its access to pods in any namespace, or call
    that namespace one of its projects first.
    """
    ours = f"'{labels.MANAGED_BY}' in {{}}.metadata.labels && {{}}.metadata.labels['{labels.MANAGED_BY}']"
    ours = f"has({{}}.metadata.labels) && {ours} == '{labels.MANAGER_NAME}'"
    bound = f"object.roleRef.kind != 'ClusterRole' || object.roleRef.name != '{rbac.POD_ACCESS}'"
    here, before, after = (ours.replace("{}", each) for each in ("namespaceObject", "oldObject", "object"))
    return {
        "gpub-pod-access": (
            rbac.RBAC,
            "rolebindings",
            ["CREATE", "UPDATE"],
            {f"{bound} || ({here})": f"{rbac.POD_ACCESS} may be bound in namespaces of projects only"},
        ),
        "gpub-namespaces": (
            "",
            "namespaces",
            ["UPDATE"],
            {
                f"!({after}) || ({before})": "an existing namespace cannot become that of a project;"
                " the broker creates its own"
            },
        ),
    }


def _pod_rules(schedulers: Sequence[str]) -> dict[str, str]:
    """Return the rules for pods, each with its error message."""
    gpu = f"{_requests_gpu('containers')} || {_requests_gpu('initContainers')} || has(object.spec.resourceClaims)"
    leased = f"{HAS_LABELS} && '{labels.LEASE}' in object.metadata.labels"
    ranks = ["", *sorted(PRIORITY_CLASSES)]
    return {
        f"!({gpu}) || ({leased})": f"a pod that requests GPUs must have the label {labels.LEASE}",
        _label_matches_namespace(labels.TENANT): f"the label {labels.TENANT} of a pod must match its namespace",
        _label_matches_namespace(labels.PROJECT): f"the label {labels.PROJECT} of a pod must match its namespace",
        "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))": "hostPath volumes are not allowed",
        " && ".join(
            f"(!has(object.spec.{each}) || !object.spec.{each})" for each in ("hostIPC", "hostNetwork", "hostPID")
        ): "host namespaces are not allowed",
        _no_privileged("containers"): "privileged containers are not allowed",
        _no_privileged("initContainers"): "privileged init containers are not allowed",
        _one_of("priorityClassName", ranks): f"the priority class must be one of {', '.join(sorted(PRIORITY_CLASSES))}",
        _one_of("schedulerName", schedulers): f"the scheduler must be {' or '.join(schedulers)}",
        "!has(object.spec.tolerations) || object.spec.tolerations.all(t,"
        f" has(t.key) && t.key != '' && t.key != '{labels.REPARTITION_TAINT}')": (
            "tolerations of all taints or of the repartition taint are not allowed"
        ),
        "!has(object.spec.nodeName) || object.spec.nodeName == ''": "nodeName is not allowed; the scheduler sets it",
    }


def _service_rules() -> dict[str, str]:
    return {
        "!has(object.spec.type) || object.spec.type == 'ClusterIP'": "only Services of type ClusterIP are allowed",
        "!has(object.spec.externalIPs) || size(object.spec.externalIPs) == 0": "external IPs are not allowed",
    }


def _requests_gpu(containers: str) -> str:
    return (
        f"(has(object.spec.{containers}) && object.spec.{containers}.exists(c, has(c.resources) &&"
        " has(c.resources.limits) && c.resources.limits.exists(name, name.startsWith('nvidia.com/'))))"
    )


def _label_matches_namespace(label: str) -> str:
    return (
        f"!({HAS_LABELS}) || !('{label}' in object.metadata.labels) ||"
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
    name: str, resources: list[str], operations: list[str], expressions: Mapping[str, str], *, group: str = ""
) -> Manifest:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": expression, "message": message} for expression, message in expressions.items()
            ],
        },
    }


def _binding(name: str, *, everywhere: bool = False) -> Manifest:
    ours = {"matchLabels": {labels.MANAGED_BY: labels.MANAGER_NAME}}
    places = {} if everywhere else {"matchResources": {"namespaceSelector": ours}}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": name},
        "spec": {**places, "policyName": name, "validationActions": ["Deny"]},
    }
