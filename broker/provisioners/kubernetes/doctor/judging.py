"""All that is asked about a cluster, in the order in which people read it."""

from broker.provisioners.kubernetes.doctor import cards, house, reaching, rights, telemetry, walls
from broker.provisioners.kubernetes.doctor.findings import Check, Finding, Outcome, answer
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, Unseen

REACHED = "reachable"
CHECKS: tuple[Check, ...] = (
    *reaching.CHECKS,
    *rights.CHECKS,
    *cards.CHECKS,
    *walls.CHECKS,
    *house.CHECKS,
    *telemetry.CHECKS,
)
# What a server's silence mostly means, by a word of the error.
MEANS = (
    (
        "like Kubernetes",
        "Something else listens there, or stands in between: look at `server`, its port, and proxies on the way.",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "`certificate-authority-data` is not of the authority that signed this server.",
    ),
    ("NameResolution", "Nobody knows a host of this name: look at `server`, and at the DNS where we run."),
    ("refused", "Nothing listens there: look at the port in `server`, and whether the API server runs."),
    ("Timeout", "Nothing answers: a firewall stands in between, or the address is private."),
    ("SSL", "It does not speak TLS as we do: look at `server`."),
    (
        "Unauthorized",
        "The credentials ran out or were revoked: make new ones, for instance with `manage.py kube_setup`.",
    ),
    ("kubeconfig", "Look at the user of this kubeconfig: its program or files must exist where we run."),
)
OTHERWISE = "Try `kubectl --kubeconfig FILE get --raw /version` from where we run."


def examine(snapshot: Snapshot) -> list[Finding]:
    """Answer every check, or only why there is nothing to check when the server was not reached."""
    why = "Nothing can be asked of a cluster that does not let us in."
    if isinstance(snapshot.version, Unseen):
        said = snapshot.version.why
        fix = next((fix for word, fix in MEANS if word in said), OTHERWISE)
        return [Finding(REACHED, Outcome.BAD, said, why, fix)]
    here = Finding(REACHED, Outcome.OK, "it answers and knows us", why, "")
    return [here, *(answer(check, snapshot) for check in CHECKS)]


def fits(findings: list[Finding]) -> bool:
    """Tell whether leases may run there: nothing is bad."""
    return all(each.outcome is not Outcome.BAD for each in findings)
