"""May we do all that we must, and nothing that we must not?"""

from broker.provisioners.kubernetes.doctor.findings import Answer, Check, bad, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, Unseen, seen
from broker.provisioners.kubernetes.render import access

INSTALL = "Install what a cluster is given once: `manage.py kube_setup --kubeconfig ADMIN.yaml`."


def _needed(s: Snapshot) -> Answer:
    rights = seen(s.rights)
    lacking = [str(right) for right in access.rights(access.BROKER) if not rights[right]]
    if lacking:
        return bad(f"not allowed: {names(lacking)}", INSTALL)
    return ok(f"all {len(access.rights(access.BROKER))} rights it needs")


def _examining(s: Snapshot) -> Answer:
    rights = seen(s.rights)
    lacking = [str(right) for right in access.rights(access.DOCTOR) if not rights[right]]
    return warn(f"cannot read: {names(lacking)}", INSTALL) if lacking else ok("every check can look")


def _too_many(s: Snapshot) -> Answer:
    rights = seen(s.rights)
    wide = [str(right) for right in access.NEVER if rights[right]]
    if wide:
        return warn(
            f"also allowed: {names(wide)}",
            "Register the broker's own account, not an administrator's: `manage.py kube_setup` makes it.",
        )
    return ok(f"{len(access.NEVER)} dangerous rights are refused")


def _installed(kind: str, s: Snapshot) -> Answer:
    """Judge all objects of a kind that a cluster is given once."""
    states = {name: state for name, state in s.installed.items() if name.startswith(f"{kind} ")}
    if unseen := next((state for state in states.values() if isinstance(state, Unseen)), None):
        seen(unseen)
    if not states:
        return ok("none is needed")
    absent = [name for name, state in states.items() if state is None]
    if absent:
        return bad(f"not there: {names(absent)}", INSTALL)
    old = [name for name, state in states.items() if state is False]
    return warn(f"changed or outdated: {names(old)}", INSTALL) if old else ok(f"{len(states)} current")


def _policies(s: Snapshot) -> Answer:
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        said = _installed(kind, s)
        if said.fix:
            return said
    return ok("ours are there and current")


def _policies_refuse(s: Snapshot) -> Answer:
    if isinstance(s.policies_refuse, Unseen):
        return unknown(s.policies_refuse.why, "Ask again when the first project has a namespace here.")
    if not s.policies_refuse:
        return bad(
            "a Service of type NodePort was let through",
            f"Look at the policy gpub-services and its binding. {INSTALL}",
        )
    return ok("a Service of type NodePort was refused on trial")


def _priorities(s: Snapshot) -> Answer:
    return _installed("PriorityClass", s)


def _reaper(s: Snapshot) -> Answer:
    said = _installed("CronJob", s)
    return warn(said.seen, said.fix) if said.fix else said


CHECKS = (
    Check("rights", "Without one of them some leases would never start, or never end.", _needed),
    Check("rights-to-examine", "What cannot be read is not checked.", _examining),
    Check("rights-too-wide", "Stolen credentials are worth what they allow.", _too_many),
    Check("priority-classes", "Pods name them; without them no pod is admitted.", _priorities),
    Check(
        "admission-policies", "They are the last wall against what the broker should never make.", _policies
    ),
    Check("admission-works", "A policy that refuses nothing is no wall.", _policies_refuse),
    Check("reaper", "With the broker dead it ends what nobody pays for any longer.", _reaper),
)
