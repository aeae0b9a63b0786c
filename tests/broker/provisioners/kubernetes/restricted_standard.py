"""The restricted Pod Security Standard, checked on rendered pods."""

from collections.abc import Iterator
from typing import Any

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
SECCOMP = {"RuntimeDefault", "Localhost"}


def violations(template: dict[str, Any]) -> list[str]:
    """Name everything by which a pod template would be refused."""
    return list(_pod(template.get("metadata", {}), template["spec"]))


def _pod(metadata: dict[str, Any], spec: dict[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield field
    for volume in spec.get("volumes", []):
        if kinds := set(volume) - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is a {kinds}"
    for name in metadata.get("annotations", {}):
        if "apparmor" in name or "seccomp" in name:
            yield f"annotation {name}"
    own = spec.get("securityContext", {})
    for field in ("sysctls", "seLinuxOptions", "appArmorProfile", "windowsOptions"):
        if own.get(field):
            yield f"pod sets {field}"
    for each in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(each, []):
            yield from _container(container, own)


def _container(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    own = container.get("securityContext", {})
    if own.get("privileged"):
        yield "privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    capabilities = own.get("capabilities", {})
    if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "capabilities are kept"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield "may run as root"
    if 0 in (own.get("runAsUser"), pod.get("runAsUser")):
        yield "runs as root"
    seccomp = own.get("seccompProfile", pod.get("seccompProfile", {}))
    if seccomp.get("type") not in SECCOMP:
        yield "no seccomp profile"
    if own.get("procMount", "Default") != "Default":
        yield "procMount"
    for field in ("seLinuxOptions", "appArmorProfile", "windowsOptions"):
        if own.get(field):
            yield f"container sets {field}"
    for port in container.get("ports", []):
        if port.get("hostPort"):
            yield "hostPort"
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        check = container.get(probe, {})
        if any(check.get(kind, {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield f"{probe} names a host"
