"""Checks of permissions: everything needed is allowed, nothing dangerous is."""

from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, bad, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, UnreadablePart, require_readable
from broker.provisioners.kubernetes.render import rbac

INSTALL_FIX = "Run `manage.py kube_setup --kubeconfig ADMIN.yaml`, which installs all objects that a cluster needs."


def _check_rights(s: ClusterSnapshot) -> CheckResult:
    rights = require_readable(s.rights)
    lacking = [str(right) for right in rbac.list_rights(rbac.BROKER_RULES) if not rights[right]]
    if lacking:
        return bad(f"not allowed: {list_some(lacking)}", INSTALL_FIX)
    return ok(f"all {len(rbac.list_rights(rbac.BROKER_RULES))} required rights")


def _check_doctor_rights(s: ClusterSnapshot) -> CheckResult:
    rights = require_readable(s.rights)
    lacking = [str(right) for right in rbac.list_rights(rbac.DOCTOR_RULES) if not rights[right]]
    return warn(f"cannot read: {list_some(lacking)}", INSTALL_FIX) if lacking else ok("every check can read")


def _check_excess_rights(s: ClusterSnapshot) -> CheckResult:
    rights = require_readable(s.rights)
    wide = [str(right) for right in rbac.FORBIDDEN_RIGHTS if rights[right]]
    if wide:
        return warn(
            f"also allowed: {list_some(wide)}",
            "Register the broker's own account, not an administrator's: `manage.py kube_setup` creates it.",
        )
    return ok(f"{len(rbac.FORBIDDEN_RIGHTS)} dangerous rights are refused")


def _check_installed(kind: str, s: ClusterSnapshot) -> CheckResult:
    """Check all objects of one kind that are installed once in a cluster."""
    states = {name: state for name, state in s.installed.items() if name.startswith(f"{kind} ")}
    if unseen := next((state for state in states.values() if isinstance(state, UnreadablePart)), None):
        require_readable(unseen)
    if not states:
        return ok("not needed")
    absent = [name for name, state in states.items() if state is None]
    if absent:
        return bad(f"missing: {list_some(absent)}", INSTALL_FIX)
    old = [name for name, state in states.items() if state is False]
    return warn(f"changed or outdated: {list_some(old)}", INSTALL_FIX) if old else ok(f"{len(states)} current")


def _check_policies(s: ClusterSnapshot) -> CheckResult:
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        result = _check_installed(kind, s)
        if result.fix:
            return result
    return ok("all are current")


def _check_policies_work(s: ClusterSnapshot) -> CheckResult:
    if isinstance(s.policies_refuse, UnreadablePart):
        return unknown(s.policies_refuse.reason, "Run the check again when the first project has a namespace here.")
    if not s.policies_refuse:
        return bad(
            "in a test, a Service of type NodePort was accepted",
            f"Check the policy gpub-services and its binding. {INSTALL_FIX}",
        )
    return ok("in a test, a Service of type NodePort was refused")


def _check_priority_classes(s: ClusterSnapshot) -> CheckResult:
    return _check_installed("PriorityClass", s)


def _check_reaper(s: ClusterSnapshot) -> CheckResult:
    result = _check_installed("CronJob", s)
    return warn(result.seen, result.fix) if result.fix else result


CHECKS = (
    ClusterCheck("rights", "Without them, leases may never start or end.", _check_rights),
    ClusterCheck("rights-to-examine", "Objects that cannot be read are not checked.", _check_doctor_rights),
    ClusterCheck("rights-too-wide", "Unneeded rights make stolen credentials more dangerous.", _check_excess_rights),
    ClusterCheck("priority-classes", "Pods that name a missing class are refused.", _check_priority_classes),
    ClusterCheck("admission-policies", "They refuse objects that the broker must never create.", _check_policies),
    ClusterCheck("admission-works", "A policy must refuse what it forbids.", _check_policies_work),
    ClusterCheck("reaper", "It ends leases after their paid time if the broker is down.", _check_reaper),
)
