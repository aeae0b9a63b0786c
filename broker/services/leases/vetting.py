"""Refuses a workload that could never run, or must not, before anything is taken for it."""

from collections.abc import Mapping, Sequence

from broker.domain.vetting import workload_faults
from broker.domain.workloads import Workload, template_for
from tenants.services.refusals import Fix, Invalid


def check(workload: str, image: str, command: str, env: Mapping[str, str], ssh_keys: Sequence[str]) -> None:
    """Raise Invalid with everything that is wrong with it, the first of it in full."""
    wish = Workload(workload or template_for(image), image, command, tuple(env.items()), tuple(ssh_keys))
    faults = workload_faults(wish)
    if not workload and not ssh_keys:  # no template was chosen, so nobody said that it is entered by key
        faults = tuple(fault for fault in faults if fault.field != "ssh_keys")
    if not faults:
        return
    refused = Invalid(faults[0].field, faults[0].text, fix=Fix(faults[0].fix))
    refused.extra["errors"] = [
        {"field": fault.field, "code": "invalid", "message": fault.text} for fault in faults
    ]
    raise refused
