"""Isolation of 100,000 hostile workloads from one seed."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.domain.workloads.templates import TEMPLATES, Workload
from broker.domain.workloads.validation import find_workload_faults
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.priority_classes import PRIORITY_CLASSES
from broker.provisioners.kubernetes.render.spec import LeaseSpec, ProjectSpec
from tests.broker.provisioners.kubernetes.lease_specs import DRIVERS, GANG, KEY, LEASE, VOLUME, WHOLE, pods
from tests.broker.provisioners.kubernetes.restricted_standard import violations

SEED, SPECS = 20260701, 100_000
IMAGES = (
    "", "python:3", "acme/solver:1", "ghcr.io/acme/a@sha256:" + "a" * 64, "../../host", "localhost/a", "a b",
    "169.254.169.254/x", "https://evil.example/x", "x" * 300, "Acme/A", "$(cat /etc/passwd)", "a:b:c", "\x00", "-v",
)  # fmt: skip
COMMANDS = (
    "", "sleep 1", "--privileged", "'open", "$(NVIDIA_VISIBLE_DEVICES)", "$$(X)", "a\x00b", "; rm -rf /",
    '{"hostPath": "/"}', "---\nkind: Pod", "x" * 2001, "`id`", "--v=/:/host", "\u202e", "$(GPUBROKER_LEASE)",
)  # fmt: skip
NAMES = (
    "A", "PATH", "HOME", "NVIDIA_VISIBLE_DEVICES", "nvidia_visible_devices", "LD_PRELOAD", "LD_AUDIT", "1A", "A=B",
    "GPUBROKER_LEASE", "KUBERNETES_SERVICE_HOST", "CUDA_DISABLE_CONTROL", "", "A\nB", "JUPYTER_TOKEN", "PASSWORD",
    "VLLM_API_KEY", "HF_HOME", "securityContext", "gpubroker.dev/lease", "x" * 200,
)  # fmt: skip
VALUES = (
    "",
    "all",
    "$(SECRET)",
    "../..",
    "privileged: true",
    "\x00",
    "x" * 9000,
    "void",
    "a\nb: c",
    "{{ x }}",
)
KEYS = (
    KEY,
    "",
    'command="sh" ' + KEY,
    KEY + "\n" + KEY,
    "-----BEGIN PRIVATE KEY-----",
    "ssh-rsa x",
    "x" * 9000,
)
# Of tenants who would like to be called as another is, once both are cut to what a name may have.
SLUGS = ("acme", "a" * 80, "a" * 79 + "b", "ACME", "acme-", "kube-system", "../..", "", "\u0430cme")
OWNERS, LONG = 64, "0" * 34
LETTERS = "abcXYZ019 -_.:/@$(){}[]'\"\\\n\t\x00\x7f;|&=,äß\u202e#%*~`!"
FORBIDDEN = ("NVIDIA_", "LD_PRELOAD", "LD_AUDIT", "KUBERNETES_", "CUDA_DISABLE_CONTROL")
OWN_ENV = {"GPUBROKER_LEASE", "GPUBROKER_RANK", "GPUBROKER_RANKS", "GPUBROKER_FIRST"}
POD_FIELDS = {
    "affinity", "automountServiceAccountToken", "containers", "enableServiceLinks", "hostname", "priorityClassName",
    "resourceClaims", "restartPolicy", "schedulerName", "securityContext", "serviceAccountName", "subdomain",
    "terminationGracePeriodSeconds", "tolerations", "volumes",
}  # fmt: skip
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class Attacker:
    """A generator of workloads with hostile, random and harmless values."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.drivers = list(DRIVERS.values())
        self.leases = 0

    def workload(self) -> Workload:
        dice = self.dice
        image, command = self._pick(IMAGES, harmless=2), self._pick(COMMANDS, harmless=2)
        many = 1000 if dice.random() < 0.001 else dice.choice((0, 0, 0, 1, 1, 2, 4))
        env = tuple(
            (self._pick(NAMES, harmless=3, suffix=many > 9), self._pick(VALUES, harmless=2)) for _ in range(many)
        )
        keys = tuple(self._pick(KEYS, harmless=1) for _ in range(dice.choice((0, 1, 1, 1, 2, 30))))
        template = dice.choice((*TEMPLATES, *TEMPLATES, "root", ""))
        return Workload(template, image, command, env, keys)

    def _pick(self, words: tuple[str, ...], *, harmless: int, suffix: bool = False) -> str:
        roll = self.dice.random()
        if roll < 0.7:
            word = words[self.dice.randrange(harmless)]
        elif roll < 0.9:
            word = self.dice.choice(words)
        else:
            word = "".join(self.dice.choices(LETTERS, k=self.dice.randrange(1, 12)))
        return f"{word}{self.dice.randrange(10**6)}" if suffix else word

    def lease(self, workload: Workload) -> tuple[LeaseSpec, SliceDriver]:
        base = GANG if self.dice.random() < 0.1 else LEASE
        price_class = self.dice.choice(list(PriceClass))
        offering = WHOLE if base is GANG else replace(LEASE.offering, isolation=Isolation.HARDWARE)
        volumes = (VOLUME,) if self.dice.random() < 0.1 else ()
        offering = replace(offering, price_class=price_class)
        project, lease_id = self._name()
        lease = replace(
            base,
            lease_id=lease_id,
            generation=self.dice.choice((1, 11, 10**9)),
            project=project,
            workload=workload,
            offering=offering,
            volumes=volumes,
        )
        return lease, self.dice.choice(self.drivers)

    def _name(self) -> tuple[ProjectSpec, str]:
        """Name a lease and a project by new ids of full length."""
        self.leases += 1
        owner = self.dice.randrange(OWNERS)
        tail = f"{LONG}{owner:06d}"
        project = ProjectSpec(f"ten_{tail}", f"prj_{tail}", SLUGS[owner % len(SLUGS)])
        return project, f"lse_{LONG}{self.leases:06d}"


class Names:
    """Owners of all names and namespaces rendered so far."""

    def __init__(self) -> None:
        self.owners: dict[tuple[str, ...], str] = {}

    def breaches(self, objects: list[dict[str, Any]], lease: LeaseSpec) -> Iterator[str]:
        for each in objects:
            space, name = each["metadata"]["namespace"], each["metadata"]["name"]
            if not NAME.fullmatch(name) or not NAME.fullmatch(space):
                yield f"{space}/{name} is no name"
            if self.owners.setdefault((space,), lease.project.project_id) != lease.project.project_id:
                yield f"the namespace {space} is another project's"
            key = each["kind"], space, name
            # A volume outlives its leases.
            whose = "" if each["kind"] == "PersistentVolumeClaim" else lease.lease_id
            if self.owners.setdefault(key, whose) != whose:
                yield f"{key} is another lease's"


def breaches(objects: list[dict[str, Any]], lease: LeaseSpec = LEASE) -> list[str]:
    """List the isolation rules that these objects of one lease break."""
    found, ours = [], labels.lease_labels(lease)
    for each in objects:
        meta = each["metadata"]
        if each["kind"] != "PersistentVolumeClaim" and meta["labels"] != ours:
            found.append(f"foreign labels {meta['labels']}")
        if meta.get("annotations") or not meta["namespace"].endswith(lease.project.project_id[4:]):
            found.append("foreign annotations or another namespace")
        found += [f"selects {selector}" for selector in _selectors(each) if not _own(selector, lease)]
    for pod in pods(objects):
        found += violations(pod)
        found += _pod_breaches(pod, ours)
    return found


def _pod_breaches(pod: dict[str, Any], ours: dict[str, str]) -> list[str]:
    found, spec = [], pod["spec"]
    (container,) = spec["containers"]
    carried = {name: value for name, value in pod["metadata"]["labels"].items() if name != labels.RANK}
    if carried != ours or set(pod["metadata"]) - {"labels", "annotations", "finalizers"}:
        found.append("foreign labels on the pod")
    if set(pod["metadata"].get("annotations", {})) - {"nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode"}:
        found.append("foreign annotations on the pod")
    if set(spec) - POD_FIELDS or set(spec.get("resources", ())):
        found.append(f"fields {set(spec) - POD_FIELDS}")
    if (
        spec["priorityClassName"] not in PRIORITY_CLASSES
        or spec.get("schedulerName", "hami-scheduler") != "hami-scheduler"
    ):
        found.append("foreign priority or scheduler")
    if spec["automountServiceAccountToken"] is not False or spec["serviceAccountName"] != "tenant":
        found.append("an account with rights")
    if [each["key"] for each in spec["tolerations"]] != ["nvidia.com/gpu"]:
        found.append("foreign tolerations")
    names = [each["name"] for each in container["env"]]
    if len(set(names)) < len(names) or len(names) > 110:
        found.append("doubled or too many variables")
    found += [f"sets {name}" for name in names if name.upper().startswith(FORBIDDEN)]
    found += [f"sets {name}" for name in names if name.startswith("GPUBROKER_") and name not in OWN_ENV]
    written = [*container.get("command", ()), *container.get("args", ())]
    written += [each["value"] for each in container["env"] if "value" in each]
    found += ["expands a variable" for text in written if "$" in text.replace("$$", "")]
    found += ["holds NUL" for text in (*written, *names, container["image"]) if "\x00" in text]
    return found


def _selectors(each: dict[str, Any]) -> list[dict[str, str]]:
    spec = each.get("spec", {})
    match each["kind"]:
        case "Service":
            return [spec["selector"]]
        case "StatefulSet" | "Deployment":
            return [spec["selector"]["matchLabels"]]
        case "NetworkPolicy":
            sides = [peer for rule in spec["ingress"] for peer in rule["from"]]
            sides += [peer for rule in spec["egress"] for peer in rule["to"]]
            if any(set(peer) != {"podSelector"} for peer in sides):
                return [{}]
            return [peer["podSelector"]["matchLabels"] for peer in (*sides, spec)]
    return []


def _own(selector: dict[str, str], lease: LeaseSpec) -> bool:
    return selector.get(labels.LEASE) == lease.lease_id


def test_the_checker_finds_broken_isolation_rules() -> None:
    objects = lease_objects(LEASE, DRIVERS["device_plugin"], anchor_uid="uid")
    assert breaches(objects) == []
    for each in objects:
        each["metadata"]["labels"] = {**labels.lease_labels(LEASE), "team": "red"}
        if each["kind"] == "Service":
            each["spec"]["selector"] = {labels.TENANT: "ten_other"}
    (pod,) = pods(objects)
    pod["metadata"]["labels"]["app"] = "victim"
    pod["spec"] |= {
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "tolerations": [{"key": ""}],
    }
    pod["spec"]["containers"][0]["env"].append({"name": "LD_PRELOAD", "value": "$(X)\x00"})
    assert len(breaches(objects)) == 3 + 9


def test_a_name_collision_with_another_lease_is_detected() -> None:
    known, project = Names(), replace(LEASE.project, project_id="prj_other")
    other = replace(LEASE, lease_id="lse_other", project=project)
    objects = lease_objects(LEASE, DRIVERS["device_plugin"], anchor_uid="uid")
    assert list(known.breaches(objects, LEASE)) == []
    assert list(known.breaches(objects, LEASE)) == []
    assert len(list(known.breaches(objects, other))) == 2 * len(objects)


@pytest.mark.deep
def test_no_workload_breaks_an_isolation_rule() -> None:
    attacker, rendered, known = Attacker(SEED), 0, Names()
    for number in range(SPECS):
        workload = attacker.workload()
        if find_workload_faults(workload):
            continue
        lease, driver = attacker.lease(workload)
        objects = lease_objects(lease, driver, anchor_uid="uid")
        broken = [*breaches(objects, lease), *known.breaches(objects, lease)]
        assert broken == [], f"workload {number} of seed {SEED}: {workload} breaks {broken}"
        rendered += 1
    print(f"\nseed {SEED}: {SPECS:,} workloads, {rendered:,} rendered, the others refused; 0 isolation rules broken")
    assert SPECS // 20 < rendered < SPECS - SPECS // 20  # many of both, or nothing was proved


def test_even_an_unvalidated_workload_breaks_no_isolation_rule_of_the_pod() -> None:
    """Rendering stays safe even without validation."""
    attacker, said = Attacker(SEED + 1), ("sets ", "holds NUL", "doubled")
    for _ in range(2000):
        workload = replace(attacker.workload(), template=attacker.dice.choice(list(TEMPLATES)))
        lease, driver = attacker.lease(replace(workload, command=workload.command.replace("'", "").replace('"', "")))
        try:
            objects = lease_objects(lease, driver, anchor_uid="uid")
        except ValueError:  # a command that cannot be split
            continue
        assert [each for each in breaches(objects, lease) if not each.startswith(said)] == []
