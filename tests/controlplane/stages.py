"""kwok stages of the simulated kubelets.

A pod's script says what becomes of it, in its annotation or as the tag of an image named …/acts, so that also what a
tenant launches can play: `registry.example/acts:pull-2s_oom-1s` pulls for two seconds, runs for one and is killed.

    pull-2s        the image takes two seconds to come
    never-pulls    the image cannot be pulled
    succeed-2s     the program ends well after two seconds
    fail-2s        the program ends with 1 after two seconds
    oom-2s         the kernel kills the program after two seconds
    hang-2s        when told to end, the program takes two seconds
"""

from collections.abc import Sequence
from typing import Any

SCRIPT = "kubelet.test/script"
Stage = dict[str, Any]

_SCRIPT = (
    f'([.metadata.annotations["{SCRIPT}"] // empty,'
    ' (.spec.containers[0].image | capture("/acts:(?<script>.+)$") | .script)] | first // "" | split("_")[])'
)


def act(name: str) -> str:
    """Return the expression of a script step's duration."""
    return f'{_SCRIPT} | select(startswith("{name}-")) | ltrimstr("{name}-")'


def plays(name: str) -> str:
    """Return the question whether a script has a word."""
    return f'[{_SCRIPT}] | any(. == "{name}" or startswith("{name}-"))'


def when(question: str, *answers: str) -> dict[str, Any]:
    """Match objects for which the question's answers have one of these; without answers, any."""
    how: dict[str, Any] = {"operator": "In", "values": list(answers)} if answers else {"operator": "Exists"}
    return {"key": question, **how}


def unless(question: str, *answers: str) -> dict[str, Any]:
    """Match objects for which they do not."""
    how = {"operator": "NotIn", "values": list(answers)} if answers else {"operator": "DoesNotExist"}
    return {"key": question, **how}


def status(template: str) -> dict[str, Any]:
    """Change an object's status."""
    return {"patch": {"subresource": "status", "root": "status", "template": template}}


def metadata(template: str) -> dict[str, Any]:
    """Change an object's labels and annotations."""
    return {"patch": {"root": "metadata", "template": template}}


def warning(reason: str, words: str) -> dict[str, Any]:
    """Write an event."""
    return {"event": {"type": "Warning", "reason": reason, "message": words}}


def stage(
    kind: str,
    name: str,
    selector: Sequence[dict[str, Any]],
    steps: Sequence[dict[str, Any]],
    *,
    after: str = "",
    after_ms: int = 0,
) -> Stage:
    """Return a kwok stage; `after` reads its delay from the object."""
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": list(selector)},
        "steps": list(steps),
    }
    if after or after_ms:
        spec["delay"] = {"durationMilliseconds": after_ms}
    if after:
        spec["delay"]["durationFrom"] = {"expressionFrom": after}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}
