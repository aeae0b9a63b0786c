"""Writer of the page on why pods end or do not start.

`python -m tests.architecture.pod_faults` writes docs/reference/pod-faults.md.
"""

from collections.abc import Iterable
from pathlib import Path

from broker.provisioners.kubernetes.observe.pod_faults import CONTAINER_RULES, POD_RULES, FaultRule, PodFault

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "pod-faults.md"
HEAD = """# Why pods end or do not start

Whose fault it is decides what happens to a lease. The first row that matches decides; every driver uses this table
(`broker/provisioners/kubernetes/observe/pod_faults.py`). A program that ends by itself matches no row, also if its pod
is evicted later.

Nothing that a tenant writes matches a row. A message counts only with a reason that a kubelet or runtime gives for a
container that never started: the message of any other reason may be the last words of the program. Quoted names, the
command and the answer of a registry are left out before a message is compared. Only while a node offers fewer devices
than its leases hold does an error of CUDA or NVML in a program's output count, for its own lease.

| whose fault | charged | what happens |
|---|---|---|
| the provider's | until it last ran | lost: placed again before its start, else ended as `device_lost` |
| the tenant's | until its end | the lease ends as a failed command does |

A failed pod with any other reason, in which no container ever started, was rejected by its node: the provider's.

A container that cannot start on its node is lost after 60 seconds, so that a restarting driver harms nobody.

A pod that the scheduler does not place after 45 seconds is refused by its node, which is closed for 5 minutes, unless
the reason is the lease's own volume: then the lease waits for it, or is placed elsewhere, and the node stays in sale. A
lease closes at most two nodes.

Written by `python -m tests.architecture.pod_faults`; a test compares the page with the table.
"""
COLUMNS = "| Reason | Message contains | Whose fault | The tenant reads | Written by |\n|---|---|---|---|---|\n"


def to_markdown() -> str:
    """Return the page as Markdown."""
    pods, containers = (_table(rules) for rules in (POD_RULES, CONTAINER_RULES))
    return f"{HEAD}\n## Reasons of a pod\n{pods}\n## Reasons of a container\n{containers}"


def _table(rules: Iterable[FaultRule]) -> str:
    return COLUMNS + "".join(map(_row, rules))


def _row(rule: FaultRule) -> str:
    whose = "the tenant's" if rule.fault is PodFault.TENANT else "the provider's"
    reason, message = (each.replace("|", "<br>") for each in (rule.reason.pattern, rule.message.pattern))
    return f"| {reason} | {message} | {whose} | {rule.text} | {rule.source} |\n"


if __name__ == "__main__":
    DOCUMENT.write_text(to_markdown())
