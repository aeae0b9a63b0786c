"""Life cycle of a pod on a simulated node."""

from tests.controlplane.stages import Stage, act, plays, stage, status, unless, warning, when

LIVES = unless(".metadata.deletionTimestamp")
DYING = when(".metadata.deletionTimestamp")
PENDING, RUNNING = when(".status.phase", "Pending"), when(".status.phase", "Running")
RUNS = ".status.containerStatuses[]?.state.running.startedAt"
IS_READY = "(.status.containerStatuses | length > 0) and all(.status.containerStatuses[]; .ready)"
SAID_READY = '.status.conditions[]? | select(.type == "Ready") | .status'
WAITS = ".status.containerStatuses[]?.state.waiting.reason"
# An image that cannot be pulled has no moment at which it starts.
STARTS = f"(.status.containerStatuses | length > 0) or ({plays('pull')} | not)"
RESTARTED = "(.status.containerStatuses[0].restartCount | tostring)"
KEPT_AFTER_END = f'if .spec.restartPolicy == "Always" then {RESTARTED} else "end" end'


def conditions(ready: str) -> str:
    """Return a pod's conditions, all of them dated now."""
    lines = [
        f'- {{type: {name}, status: "{value}", lastTransitionTime: {{{{ Now | Quote }}}}}}'
        for name, value in (
            ("PodReadyToStartContainers", "True"),
            ("Initialized", "True"),
            ("ContainersReady", ready),
            ("Ready", ready),
        )
    ]
    return "conditions:\n" + "\n".join(lines) + "\n"


def containers(state: str, *, restarts: str = "0", ready: str = "false", last: str = "") -> str:
    """Return the status of every container since `$started`."""
    return f"""
{{{{ $root := . }}}}
containerStatuses:
{{{{ range $i, $container := .spec.containers }}}}
{{{{ $started := Now }}}}
{{{{ with $root.status.containerStatuses }}}}
{{{{ with (index . $i).state.running }}}}{{{{ $started = .startedAt }}}}{{{{ end }}}}
{{{{ end }}}}
- name: {{{{ $container.name | Quote }}}}
  image: {{{{ $container.image | Quote }}}}
  imageID: {{{{ printf "played://%s" $container.image | Quote }}}}
  containerID: {{{{ printf "played://%s/%s" $root.metadata.uid $container.name | Quote }}}}
  ready: {ready}
  started: {ready}
  restartCount: {restarts}
  state: {state}
  {f"lastState: {last}" if last else ""}
{{{{ end }}}}
"""


def waiting(reason: str, words: str) -> str:
    return f'{{waiting: {{reason: {reason}, message: "{words}"}}, running: null, terminated: null}}'


def terminated(reason: str, code: int) -> str:
    return (
        f"{{terminated: {{reason: {reason}, exitCode: {code}, startedAt: {{{{ $started | Quote }}}},"
        " finishedAt: {{ Now | Quote }}}, running: null, waiting: null}"
    )


RUNNING_NOW = "{running: {startedAt: {{ Now | Quote }}}, waiting: null, terminated: null}"
PLACE = """
startTime: {{ or .status.startTime Now | Quote }}
{{ with NodeIPWith .spec.nodeName }}
hostIP: {{ . | Quote }}
hostIPs: [{ip: {{ . | Quote }}}]
{{ end }}
"""
ADDRESS = """
{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ . | Quote }}
podIPs: [{ip: {{ . | Quote }}}]
{{ end }}
"""
PREPARED = """
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state: {terminated: {reason: Completed, exitCode: 0, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}
{{ end }}
"""


def begins() -> list[Stage]:
    """From scheduled to running."""
    pulling = status(conditions("False") + containers(waiting("ContainerCreating", "")) + PLACE)
    denied = containers(waiting("ErrImagePull", "the registry knows no such image"))
    backing_off = containers(waiting("ImagePullBackOff", "Back-off pulling image"))
    running = status(
        conditions("True") + containers(RUNNING_NOW, ready="true") + PLACE + ADDRESS + PREPARED + "phase: Running"
    )
    return [
        stage(
            "Pod",
            "image-is-pulled",
            [LIVES, PENDING, when(plays("pull"), "true"), unless(WAITS)],
            [pulling],
        ),
        stage(
            "Pod",
            "image-is-refused",
            [LIVES, PENDING, when(plays("never"), "true"), unless(WAITS, "ErrImagePull", "ImagePullBackOff")],
            [warning("Failed", "Failed to pull image"), status(conditions("False") + denied + PLACE)],
        ),
        stage(
            "Pod",
            "image-is-refused-again",
            [LIVES, PENDING, when(WAITS, "ErrImagePull")],
            [warning("BackOff", "Back-off pulling image"), status(backing_off)],
            after_ms=300,
        ),
        stage(
            "Pod",
            "starts",
            [LIVES, PENDING, unless(RUNS), unless(plays("never"), "true"), when(STARTS, "true")],
            [running],
            after=act("pull"),
        ),
        # Its node was believed dead and is not: on a busy machine that happens to anybody.
        stage(
            "Pod",
            "is-ready-again",
            [LIVES, RUNNING, when(RUNS), when(IS_READY, "true"), when(SAID_READY, "False")],
            [status(conditions("True"))],
            after_ms=300,
        ),
    ]


def ends(word: str, reason: str, code: int) -> list[Stage]:
    """From running to terminated or restart back-off."""
    over = terminated(reason, code)
    phase = "Succeeded" if code == 0 else "Failed"
    again = containers(RUNNING_NOW, restarts="1", ready="true", last=over)
    held = containers(waiting("CrashLoopBackOff", "back-off restarting failed container"), restarts="1", last=over)
    outcomes = {
        "end": conditions("False") + containers(over) + f"phase: {phase}",
        "0": conditions("True") + again,
        "1": conditions("False") + held,
    }
    return [
        stage(
            "Pod",
            f"{word}-{kept}",
            [LIVES, RUNNING, when(RUNS), when(plays(word), "true"), when(KEPT_AFTER_END, kept)],
            [status(template)],
            after=act(word),
        )
        for kept, template in outcomes.items()
    ]


def leaves() -> list[Stage]:
    """From deletion to removal; with a finalizer, from deletion to terminated."""
    over = conditions("False") + containers(terminated("Error", 143)) + "phase: Failed"
    return [
        stage("Pod", "is-told-to-end", [DYING, when(RUNS)], [status(over)], after=act("hang")),
        stage(
            "Pod",
            "is-gone",
            [DYING, unless(RUNS), when(".metadata.deletionGracePeriodSeconds > 0", "true")],
            [{"delete": True}],
        ),
    ]


def all_of_a_pod() -> list[Stage]:
    """Return every stage of a pod."""
    own_ends = [*ends("succeed", "Completed", 0), *ends("fail", "Error", 1), *ends("oom", "OOMKilled", 137)]
    return [*begins(), *own_ends, *leaves()]
