"""A simulated mig-manager that obeys, delays, fails or wedges.

In: the node's label nvidia.com/mig.config. Out: nvidia.com/mig.config.state, and what the node has to give. While it
works, everything that speaks to the GPUs is paused and the node gives nothing. It notices only that the label's
*value* changed: whoever finds it wedged has to set another value and come back.
"""

from tests.controlplane.stages import Stage, metadata, stage, status, when

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
# What each name of a layout gives, as JSON; the real one reads this from a ConfigMap.
LAYOUTS = "mig.test/layouts"
# obeys, fails, wedges, or wedges-once; and how long a change takes, such as 300ms.
MANNERS, TAKES, SEEN = "mig.test/manners", "mig.test/takes", "mig.test/seen"
CLIENTS = ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm")

_OPENING = f"""
{{{{ $notes := or .metadata.annotations dict }}}}
{{{{ $wanted := index .metadata.labels "{CONFIG}" }}}}
{{{{ $manners := or (index $notes "{MANNERS}") "obeys" }}}}
"""
_DEPLOYS = "".join(f'\n  nvidia.com/gpu.deploy.{client}: "%s"' for client in CLIENTS)


def _deploys(value: str) -> str:
    return _DEPLOYS.replace("%s", value)


NOTICES = f"""{_OPENING}
annotations:
  {SEEN}: {{{{ $wanted | Quote }}}}
  {{{{ if eq $manners "wedges-once" }}}}
  {MANNERS}: wedged
  {{{{ else if eq $manners "wedged" }}}}
  {MANNERS}: obeys
  {{{{ end }}}}
labels:
  {STATE}: pending{_deploys("paused-for-mig-change")}
"""
GIVES_NOTHING = """
allocatable:
{{ range $name, $count := .status.allocatable }}
  {{ if hasPrefix "nvidia.com/" $name }}{{ $name | Quote }}: "0"{{ end }}
{{ end }}
  pods: {{ .status.allocatable.pods | Quote }}
"""
GIVES_LAYOUT = f"""{_OPENING}
{{{{ $layout := index (fromJson (or (index $notes "{LAYOUTS}") "{{}}")) $wanted }}}}
{{{{ $status := .status }}}}
{{{{ range $kind := list "capacity" "allocatable" }}}}
{{{{ $kind }}}}:
  pods: {{{{ $status.allocatable.pods | Quote }}}}
  {{{{ range $name, $count := $status.allocatable }}}}
  {{{{ if and (hasPrefix "nvidia.com/" $name) (not (hasKey $layout $name)) }}}}{{{{ $name | Quote }}}}: "0"{{{{ end }}}}
  {{{{ end }}}}
  {{{{ range $name, $count := $layout }}}}
  {{{{ $name | Quote }}}}: {{{{ $count | Quote }}}}
  {{{{ end }}}}
{{{{ end }}}}
"""
DONE = f"""
labels:
  {STATE}: success{_deploys("true")}
"""
FAILED = f"""
labels:
  {STATE}: failed{_deploys("true")}
"""
_WANTED = f'.metadata.labels["{CONFIG}"]'
_KNOWN = f'.metadata as $m | ($m.annotations["{LAYOUTS}"] // "{{}}" | fromjson | has($m.labels["{CONFIG}"]))'
_WILL = (
    f'(.metadata.annotations["{MANNERS}"] // "obeys") as $manners'
    f' | if $manners == "obeys" and ({_KNOWN} | not) then "fails" else $manners end'
)


def all_of_a_mig_manager() -> list[Stage]:
    """Return the stages of a node's mig-manager."""
    takes = f'.metadata.annotations["{TAKES}"]'
    at_work = [
        when(_WANTED),
        when(f'{_WANTED} == .metadata.annotations["{SEEN}"]', "true"),
        when(f'.metadata.labels["{STATE}"]', "pending"),
    ]
    return [
        stage(
            "Node",
            "mig-is-noticed",
            [when(_WANTED), when(f'{_WANTED} == .metadata.annotations["{SEEN}"]', "false")],
            [metadata(NOTICES), status(GIVES_NOTHING)],
        ),
        stage(
            "Node",
            "mig-is-changed",
            [*at_work, when(_WILL, "obeys")],
            [status(GIVES_LAYOUT), metadata(DONE)],
            after=takes,
            after_ms=200,
        ),
        stage(
            "Node",
            "mig-fails",
            [*at_work, when(_WILL, "fails")],
            [metadata(FAILED)],
            after=takes,
            after_ms=200,
        ),
    ]
